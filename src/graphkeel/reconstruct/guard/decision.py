"""The guard: candidates are judged on held-back labels, and a paired test decides whether anything
changes at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from torch import Tensor

from graphkeel.core.statistics import percent
from graphkeel.reconstruct.candidates.builder import Candidate, Steered
from graphkeel.reconstruct.candidates.prototype import Prototype
from graphkeel.reconstruct.guard.statement import (
    Statement,
    approximate_statement,
    chosen_without_each_fold,
)
from graphkeel.reconstruct.labels import balanced_error, balanced_gain

RISK = 0.5  # see "The rule of the guard" in docs/research.md
PAPERS_RISK = 0.05  # of the paper's protocol, where validation labels only judge
AGAINST = 0.2  # the p-value up to which labels speak against presumed candidates
SURE = 2.0  # standard errors of balanced accuracy, where signs speak against a change
BORROWED = 5.0  # labels that every class borrows from all, when small ones are looked after
SLACK = 1e-9  # points of balanced accuracy that rounding may take
MIN_LABELS = 10  # labels to judge by, below which the guard does not try
ENOUGH_TO_CHOOSE = 50  # labels, below which presumed candidates have no rivals
NONE = "none"
AVERAGED = (Prototype, Steered)  # kinds of candidates whose mean is a candidate

# From the leaders and all candidates so far to further candidates.
Round = Callable[[Sequence[Candidate], Sequence[Candidate]], Iterable[Candidate]]


@dataclass(frozen=True)
class Evaluation:
    """What became of the held-back labels: which were predicted rightly, and how many nodes are
    predicted otherwise."""

    correct: Tensor  # bool, one entry per held-back label
    changed: int
    classes: Tensor  # the held-back labels, int64
    scores: Tensor  # the logits they were predicted from, shape (labels, n_classes)


class Judge(Protocol):
    """Tries candidates on labels that their making has not seen."""

    source: str
    folds: list[Tensor]  # positions among the labels, in parts
    served: float  # the share of the labels at hand that judged features are made from

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """


@dataclass(frozen=True)
class Score:
    """A candidate against the untouched model, on the same held-back labels."""

    name: str
    accuracy: float  # percent
    wins: int  # right where the untouched model is wrong
    losses: int
    p_value: float


@dataclass(frozen=True)
class GuardDecision:
    """What was chosen, and why.

    Attributes:
        chosen: names of the candidates used (averaged when several); empty when the features are
            left alone.
        reason: a sentence.
        source: the labels it was judged on.
        n_labels: how many those were.
        untouched, accuracy: percent of them right, before and after (equal when left alone); None
            where no label judged.
        p_value: exact one-sided McNemar test of the chosen features against the untouched ones; 1
            when left alone without a test.
        scores: every candidate, *none* first.
        statement: what can be said of the choice; None where no label judged.
    """

    chosen: tuple[str, ...]
    reason: str
    source: str
    n_labels: int
    untouched: float | None
    accuracy: float | None
    p_value: float
    scores: tuple[Score, ...]
    statement: Statement | None = None

    @property
    def left_alone(self) -> bool:
        return not self.chosen

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "chosen": list(self.chosen),
            "scores": [asdict(score) for score in self.scores],
            "statement": None if self.statement is None else asdict(self.statement),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> GuardDecision:
        """The decision that `to_dict` gave.

        Args:
            stored: what `to_dict` gave.
        """
        scores = tuple(Score(**score) for score in stored["scores"])
        statement = stored.get("statement")  # folders of 0.1 have none
        restored = {
            "chosen": tuple(stored["chosen"]),
            "scores": scores,
            "statement": None if statement is None else Statement(**statement),
        }
        return cls(**{**stored, **restored})


def decide(
    candidates: Sequence[Candidate],
    judge: Judge,
    *,
    risk: float = RISK,
    average: bool = True,
    presumed: tuple[Candidate, ...] = (),
    rounds: Sequence[Round] = (),
    n_predicted: int | None = None,
    doubted: bool = False,
    steered_first: bool = False,
) -> tuple[tuple[Candidate, ...], GuardDecision]:
    """Choose among the candidates and *none*.

    The candidates that are not measurably worse than the best one (within one standard error of the
    paired difference) are averaged: with few labels to judge by, their mean is steadier than the
    luckiest of them. The average is then tried like any candidate, and kept only if McNemar's test
    says that it beats *none*, and if it does not trade small classes for large ones.

    Args:
        candidates: to choose from.
        judge: tries them on held-back labels.
        risk: the p-value up to which the change is accepted; 1 accepts whatever is not worse.
        average: take the mean of the leading prototypes rather than the single best candidate.
        presumed: candidates, averaged, that signs without labels speak for. The labels' own
            favourites have to beat them, and they are taken unless labels speak against them.
        rounds: each gives further candidates, made from the leaders of those before.
        n_predicted: how many nodes the statement is about; None: very many.
        doubted: signs without labels speak against a change, so the labels have to be surer of it;
            only candidates count of which they are sure that no class is outvoted by the others.
        steered_first: neighbours differ, so what is steered against them wins unless it is
            measurably worse: of so many other candidates one is lucky.
    """
    base = judge.evaluate(())
    if len(base.correct) < MIN_LABELS:
        return (), _left_alone(
            base,
            judge,
            f"left unchanged: {len(base.correct)} labels are too few to judge by "
            f"(at least {MIN_LABELS})",
        )
    if presumed and len(base.correct) < ENOUGH_TO_CHOOSE:
        candidates = ()
    trials = _tried(candidates, judge, rounds)
    if doubted:  # the best of many has to be better than the luckiest of as many that are alike
        risk = min(risk, PAPERS_RISK / math.sqrt(max(1, len(trials))))
    scores = (
        _score(NONE, base, base),
        *(_score(c.name, trial, base) for c, trial in trials.items()),
    )
    taste = _Taste(base, average, steered_first, doubted)
    members, final = _favourites(trials, judge, presumed, taste)
    result = _score("chosen", final, base)
    balance = taste.balance(final)
    if not _accepted(result, balance, risk, members == presumed):
        reason = _refusal(result, balance, risk, judge.source)
        return (), _left_alone(base, judge, reason, scores, result.p_value, n_predicted)
    reason = (
        f"changed: {result.wins} labels won and {result.losses} lost against the untouched model "
        f"on {judge.source} (p = {result.p_value:.2g})"
    )
    names = tuple(member.name for member in members)
    return members, GuardDecision(
        names,
        reason,
        judge.source,
        len(base.correct),
        scores[0].accuracy,
        result.accuracy,
        result.p_value,
        scores,
        approximate_statement(
            final.correct
            if members == presumed
            else _without_luck(judge, trials, members, final, risk, taste),
            base.correct,
            n_predicted=n_predicted,
            served=judge.served,
        ),
    )


def _tried(
    candidates: Sequence[Candidate], judge: Judge, rounds: Sequence[Round]
) -> dict[Candidate, Evaluation]:
    """How every candidate does, those of later rounds among them."""
    trials = {candidate: judge.evaluate((candidate,)) for candidate in candidates}
    for further in rounds if trials else ():
        for candidate in further(leaders(trials, best_of(trials)), list(trials)):
            trials[candidate] = judge.evaluate((candidate,))
    return trials


@dataclass(frozen=True)
class _Taste:
    """What is liked of candidates that were tried."""

    base: Evaluation  # the untouched model
    average: bool
    steered_first: bool
    doubted: bool

    def preferred(self, trials: dict[Candidate, Evaluation]) -> tuple[Candidate, ...]:
        """The best and those as good; where a change is doubted, the best alone that outvotes no
        class."""
        if self.doubted:
            fair = {one: trial for one, trial in trials.items() if self.balance(trial) >= -SLACK}
            return (best_of(fair or trials),)
        best = best_of(trials, self.steered_first)
        return leaders(trials, best) if self.average else (best,)

    def balance(self, trial: Evaluation) -> float:
        """Points of class-balanced accuracy gained; as many as are sure where a change is
        doubted."""
        base = self.base
        if not self.doubted:
            return balanced_gain(trial.correct, base.correct, base.classes, BORROWED)
        gain = balanced_gain(trial.correct, base.correct, base.classes, 0.0)
        return gain - SURE * balanced_error(trial.correct, base.correct, base.classes)

    def at(self, seen: Tensor) -> _Taste:
        """The same, of some of the labels."""
        return replace(self, base=_at(self.base, seen))


def _favourites(
    trials: dict[Candidate, Evaluation],
    judge: Judge,
    presumed: tuple[Candidate, ...],
    taste: _Taste,
) -> tuple[tuple[Candidate, ...], Evaluation]:
    """What the labels prefer; the presumed candidates, unless something clearly beats them."""
    if not trials:
        return presumed, judge.evaluate(presumed)
    members = taste.preferred(trials)
    final = trials[members[0]] if len(members) == 1 else judge.evaluate(members)
    if not presumed:
        return members, final
    incumbent = judge.evaluate(presumed)
    rival = _score("rival", final, incumbent)
    beaten = rival.wins > rival.losses and rival.p_value <= PAPERS_RISK
    return (members, final) if beaten else (presumed, incumbent)


def _without_luck(
    judge: Judge,
    trials: dict[Candidate, Evaluation],
    members: tuple[Candidate, ...],
    final: Evaluation,
    risk: float,
    taste: _Taste,
) -> Tensor:
    """Which labels are predicted rightly, each by what the other folds would have chosen, leaving
    the model alone included."""
    base = judge.evaluate(())
    known = {members: final.correct, (): base.correct}

    def choose(seen: Tensor) -> tuple[Candidate, ...]:
        part = {candidate: _at(trial, seen) for candidate, trial in trials.items()}
        chosen = taste.at(seen).preferred(part)
        wins, losses = _paired(correct_of(chosen)[seen], base.correct[seen])
        is_better = wins > losses and mcnemar(wins, losses) <= risk
        return chosen if is_better else ()

    def correct_of(chosen: tuple[Candidate, ...]) -> Tensor:
        if chosen not in known:
            known[chosen] = judge.evaluate(chosen).correct
        return known[chosen]

    return chosen_without_each_fold(judge.folds, choose, correct_of)


def _at(trial: Evaluation, seen: Tensor) -> Evaluation:
    return Evaluation(trial.correct[seen], trial.changed, trial.classes[seen], trial.scores[seen])


def best_of(trials: dict[Candidate, Evaluation], steered_first: bool = False) -> Candidate:
    """Most labels right; of several, the one that changes least.

    Args:
        trials: for each candidate how it did.
        steered_first: the best that is steered, unless it is measurably worse.
    """
    best = min(trials, key=lambda c: (-int(trials[c].correct.sum()), trials[c].changed))
    steered: dict[Candidate, Evaluation] = {
        one: trial for one, trial in trials.items() if isinstance(one, Steered)
    }
    if not steered_first or not steered:
        return best
    rival = best_of(steered)
    return rival if _as_good(trials[rival].correct, trials[best].correct) else best


def _accepted(result: Score, balance: float, risk: float, presumed: bool) -> bool:
    if presumed:
        return mcnemar(result.losses, result.wins) > AGAINST
    better = result.wins > result.losses and result.p_value <= risk
    return better and balance >= -SLACK


def _refusal(result: Score, balance: float, risk: float, source: str) -> str:
    seen = f"{result.wins} labels won, {result.losses} lost, p = {result.p_value:.2g}"
    if result.wins > result.losses and result.p_value <= risk:
        return (
            f"left unchanged: the best candidate would trade small classes for large ones on "
            f"{source} ({seen}, {balance:.1f} points of class-balanced accuracy)"
        )
    return f"left unchanged: no candidate beat the untouched model on {source} (best: {seen})"


def leaders(trials: dict[Candidate, Evaluation], best: Candidate) -> tuple[Candidate, ...]:
    """The best and all of its kind within one standard error of it; the best alone if it is of a
    kind that is not averaged.

    Args:
        trials: for each candidate how it did.
        best: the best of them.
    """
    if not isinstance(best, AVERAGED):
        return (best,)
    top = trials[best].correct
    return tuple(
        c for c, trial in trials.items() if type(c) is type(best) and _as_good(trial.correct, top)
    )


def _as_good(correct: Tensor, top: Tensor) -> bool:
    """(losses − wins) / √(losses + wins) ≤ 1: the paired difference is within its own standard
    error."""
    wins, losses = _paired(correct, top)
    return losses - wins <= math.sqrt(wins + losses)


def mcnemar(wins: int, losses: int) -> float:
    """Exact one-sided McNemar test: the chance of at least so many wins if both sides were equally
    good.

    Args:
        wins: labels that only the candidate got right.
        losses: labels that only the untouched model got right.

    >>> mcnemar(wins=9, losses=1)
    0.0107421875
    """
    n = wins + losses
    return sum(math.comb(n, k) for k in range(wins, n + 1)) / 2**n


def _paired(correct: Tensor, other: Tensor) -> tuple[int, int]:
    return int((correct & ~other).sum()), int((other & ~correct).sum())


def _score(name: str, trial: Evaluation, base: Evaluation) -> Score:
    wins, losses = _paired(trial.correct, base.correct)
    return Score(name, percent(trial.correct), wins, losses, mcnemar(wins, losses))


def _left_alone(
    base: Evaluation,
    judge: Judge,
    reason: str,
    scores: tuple[Score, ...] = (),
    p_value: float = 1.0,
    n_predicted: int | None = None,
) -> GuardDecision:
    accuracy = percent(base.correct) if len(base.correct) else None
    statement = approximate_statement(base.correct, base.correct, n_predicted=n_predicted)
    return GuardDecision(
        (), reason, judge.source, len(base.correct), accuracy, accuracy, p_value, scores, statement
    )
