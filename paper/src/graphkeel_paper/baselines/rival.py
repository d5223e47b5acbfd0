"""The contract of the methods we are compared with, and how labels choose among a rival's settings.

Every rival gets the labels that we get and chooses its settings by them, as we do: on validation
nodes in the paper's protocol, by cross-fitting where every label both serves and judges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import Labels
from graphkeel.models import accuracy
from graphkeel.runs.method import CheckedMethod, Given, MethodResult

Setting = dict[str, Any]


class Candidate(NamedTuple):
    """One setting of a rival, and what it comes to."""

    setting: Setting
    result: MethodResult


class Rival(CheckedMethod):
    """A baseline with settings among which labels choose; the first one is the published default.

    Attributes:
        uses_labels: whether its scores depend on labels; if not, every label can judge them.
    """

    uses_labels: bool = True

    @abstractmethod
    def candidates(self, given: Given) -> Iterator[Candidate]:
        """Every setting with its scores, the published default first."""

    def candidates_of(self, given: Given, sets: Sequence[Tensor]) -> list[list[Candidate]]:
        """The candidates of several sets of labels; a method that trains may train them
        together."""
        return [list(self.candidates(given._replace(labelled=one))) for one in sets]

    def _fit_predict(self, given: Given) -> MethodResult:
        if len(given.validation):
            return self._judged(given, given.validation)
        return self._cross_fitted(given)

    def _judged(self, given: Given, judges: Tensor) -> MethodResult:
        made = self.candidates(given)
        return self.choose([Judged.on(one, given.task, judges) for one in made])

    def choose(self, judged: Sequence[Judged]) -> MethodResult:
        """The candidate with most labels right; the first one on ties or without labels."""
        best = max(judged, key=lambda one: int(one.correct.sum()))
        return best.result(chosen=[best.candidate])

    def _cross_fitted(self, given: Given) -> MethodResult:
        """Every label serves and judges: candidates for a fold are made from all other labels, the
        choice is judged on the pooled folds, the scores are made from all labels. Labels that the
        model was trained on serve, but do not judge."""
        task, labelled = given.task, given.labelled
        judges = labelled[~task.train_mask[labelled]]
        if self.uses_labels and len(judges) < 2:
            judges = judges[:0]  # a label that serves cannot judge
        if not self.uses_labels or not len(judges):
            return self._judged(given, judges)
        parts = folds(judges, given.seed)
        others = [labelled[~torch.isin(labelled, fold)] for fold in parts]
        whole, *left_out = self.candidates_of(given, [labelled, *others])
        correct: dict[str, list[Tensor]] = {str(c.setting): [] for c in whole}
        for fold, made_without in zip(parts, left_out, strict=True):
            known = {str(c.setting): c for c in made_without}
            for setting, right in correct.items():
                # with fewer labels a setting may not exist: then it has nothing right
                candidate = known.get(setting, Candidate({}, MethodResult()))
                right.append(Judged.on(candidate, task, fold).correct)
        return self.choose([Judged(c, torch.cat(correct[str(c.setting)])) for c in whole])


def scored(setting: Setting, scores: Tensor) -> Candidate:
    """A candidate that is nothing but its scores."""
    return Candidate(setting, MethodResult(scores))


def left_alone(reason: str) -> Candidate:
    """A candidate that leaves the model as it is."""
    return Candidate({}, MethodResult(decision={"reason": reason}))


class Judged(NamedTuple):
    """A candidate, and which of the judging labels it has right."""

    candidate: Candidate
    correct: Tensor  # bool, shape (n,)

    @classmethod
    def on(cls, candidate: Candidate, task: GraphTask, nodes: Tensor) -> Judged:
        """Compare a candidate's classes with labels."""
        scores = candidate.result.scores
        if scores is None:
            return cls(candidate, torch.zeros(len(nodes), dtype=torch.bool))
        return cls(candidate, scores[nodes].argmax(dim=1) == task.y[nodes])

    def result(self, chosen: Sequence[Candidate]) -> MethodResult:
        """This candidate's result, with what was chosen and by how many labels."""
        result = self.candidate.result
        decision = {
            **result.decision,
            "chosen": [str(candidate.setting) for candidate in chosen],
            "validation_right": int(self.correct.sum()),
            "n_labels": len(self.correct),
        }
        return MethodResult(result.scores, result.features, decision)


def folds(nodes: Tensor, seed: int, most: int = 5) -> list[Tensor]:
    """A partition of the judging nodes into at most so many parts."""
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))
    return list(nodes[order].chunk(min(most, len(nodes))))


def percent_right(scores: Tensor, task: GraphTask, nodes: Tensor) -> float:
    """Accuracy in percent on nodes whose labels may be compared; 0 when there are none."""
    return accuracy(scores, task, nodes) if len(nodes) else 0.0


def clamped(posterior: Tensor, labels: Labels) -> Tensor:
    """A copy whose labelled rows say what is known."""
    known = posterior.clone()
    known[labels.nodes] = labels.one_hot()
    return known


def drawn_node(labelled: Tensor, seed: int) -> int:
    """A labelled node, drawn uniformly."""
    draw = torch.randint(len(labelled), (1,), generator=torch.Generator().manual_seed(seed))
    return int(labelled[draw])


def drawn_class(task: GraphTask, labelled: Tensor, seed: int) -> int:
    """The class that one-class methods replace: that of a drawn labelled node."""
    return int(task.y[drawn_node(labelled, seed)])


# ---- Our averaging rule for methods that are not ours.
#
# `auto` does not take its luckiest candidate: it averages those that are not measurably worse
# than the best one. A rival's row `NAME+avg` gets the same, over the same settings that its own
# row chooses from, and `rivals+avg` pools the settings of all of them, so that nothing of our
# lead is owed to the rule or to the number of settings.


class Averaged(Rival):
    """The settings of one rival or of several, averaged by our rule."""

    def __init__(self, name: str, rivals: Sequence[Rival]) -> None:
        self.name = name
        self.rivals = tuple(rivals)
        self.retrains = any(rival.retrains for rival in rivals)
        self.needs_labels = all(rival.needs_labels for rival in rivals)
        self.uses_labels = any(rival.uses_labels for rival in rivals)

    def candidates(self, given: Given) -> Iterator[Candidate]:
        for rival in self.rivals:
            for candidate in rival.candidates(given):
                setting = {"rival": rival.name, **candidate.setting}
                scores = candidate.result.scores
                if scores is not None and len(self.rivals) > 1:
                    yield Candidate(setting, MethodResult(votes(scores)))
                else:
                    yield Candidate(setting, candidate.result)

    def choose(self, judged: Sequence[Judged]) -> MethodResult:
        return average(judged)


def average(judged: Sequence[Judged]) -> MethodResult:
    """The mean belief of the candidates that are not measurably worse than the best one."""
    best = max(judged, key=lambda one: int(one.correct.sum()))
    members = [one for one in judged if not measurably_worse(one.correct, best.correct)]
    scores = [one.candidate.result.scores for one in members]
    known = [as_beliefs(one) for one in scores if one is not None]
    if not known:
        return best.result([best.candidate])
    mean = MethodResult(torch.stack(known).mean(dim=0))
    together = Judged(Candidate({}, mean), best.correct)
    return together.result([one.candidate for one in members])


def measurably_worse(correct: Tensor, best: Tensor) -> bool:
    """Whether fewer are right (bool, shape (n,)), by more than one standard error of the paired
    difference."""
    if not len(best):
        return False
    difference = best.double() - correct.double()
    error = float(difference.std(correction=0)) / math.sqrt(len(best))
    return float(difference.mean()) > error


def votes(scores: Tensor, tie: float = 1e-3) -> Tensor:
    """One vote a node, so that rivals whose scores are flatter than others' count as much; beliefs,
    of weight `tie`, break ties."""
    chosen = torch.nn.functional.one_hot(scores.argmax(dim=1), scores.shape[1])
    return chosen + tie * as_beliefs(scores)


def as_beliefs(scores: Tensor) -> Tensor:
    """Scores of any scale as rows that sum to one: shares where none is negative, else a
    softmax."""
    if bool((scores < 0).any()):
        return scores.softmax(dim=1)
    total = scores.sum(dim=1, keepdim=True)
    even = torch.full_like(scores, 1.0 / scores.shape[1])
    return torch.where(total > 0, scores / total.clamp_min(1e-30), even)


# ---- A self-training round for methods that are not ours.
#
# One source of `auto`'s evidence is a round of self-training. A rival's row `NAME+self` gets one,
# too, so that nothing of our lead is owed to it: each of its settings stands to choice twice, as
# it is and with the surest predictions of each class among the labels.


SHARE = 0.3  # of the nodes predicted as a class, the surest so many


class SelfTrained(Rival):
    """The settings of a rival, each before and after one round of self-training.

    What becomes a label is decided by the mean of all its settings, so that no label judges twice.
    """

    def __init__(self, name: str, rival: Rival) -> None:
        self.name = name
        self.rivals = (rival,)
        self.retrains = rival.retrains
        self.needs_labels = rival.needs_labels

    def candidates(self, given: Given) -> Iterator[Candidate]:
        (rival,) = self.rivals
        first = list(rival.candidates(given))
        yield from (_in_round(1, one) for one in first)
        known = [as_beliefs(c.result.scores) for c in first if c.result.scores is not None]
        if known:
            taught = with_pseudo_labels(given, torch.stack(known).mean(dim=0))
            yield from (_in_round(2, one) for one in rival.candidates(taught))


def _in_round(number: int, candidate: Candidate) -> Candidate:
    return Candidate({"round": number, **candidate.setting}, candidate.result)


def with_pseudo_labels(given: Given, beliefs: Tensor, share: float = SHARE) -> Given:
    """The given case, with the surest predictions of each class as labels beside the known ones.

    Validation nodes keep their labels for choosing and get none."""
    free = torch.ones(given.task.n_nodes, dtype=torch.bool)
    free[torch.cat([given.labelled, given.validation])] = False
    sureness, predicted = beliefs.max(dim=1)
    added: Sequence[Tensor] = [
        _surest(sureness, ((predicted == label) & free).nonzero().flatten(), share)
        for label in range(given.task.n_classes)
    ]
    pseudo = torch.cat(list(added))
    classes = given.task.y.clone()
    classes[pseudo] = predicted[pseudo]
    labelled = torch.cat([given.labelled, pseudo])
    return given._replace(task=replace(given.task, y=classes), labelled=labelled)


def _surest(sureness: Tensor, nodes: Tensor, share: float) -> Tensor:
    order = sureness[nodes].argsort(descending=True, stable=True)
    return nodes[order[: round(share * len(nodes))]]
