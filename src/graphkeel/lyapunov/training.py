"""Algorithm 1: train on the states known so far, ask the verifier, learn from its counterexamples,
repeat.

All classes are trained as one tensor program; a class leaves it once it is proved. The verifier is
asked about the weights as they will be shipped, rounded once to float32 and collapsed exactly.
Ending without a proof is an outcome like any other: every class's report says which of the three it
is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from graphkeel.control.base import Plant
from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.loop_batch import LoopBatch
from graphkeel.lyapunov.result import ClassOutcome, RoundLog, TrainResult
from graphkeel.models.aggregation import Aggregation
from graphkeel.verify import (
    CONDITIONS,
    Budget,
    ConditionReport,
    Problem,
    Verdict,
    VerifyReport,
    load_engine,
    verify,
)
from graphkeel.verify.portfolio import AutoVerifier
from graphkeel.verify.problem import Region

OnRound = Callable[[RoundLog], None]
_Factor = Callable[[Sequence[NeuralWeights]], float]


class Oracle(Protocol):
    """The verifier as training sees it; `complete=False` is for quick counterexamples and cheap
    proofs."""

    def __call__(self, problem: Problem, *, seconds: float, complete: bool) -> VerifyReport: ...


def portfolio_oracle(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """Closed forms first, then a search for violations and, if `complete`, branch and bound to the
    end.

    Args:
        problem: the question.
        seconds: for all of it.
        complete: whether to search to the end.
    """
    return AutoVerifier(complete).solve(problem, Budget(seconds=seconds))


def engine_oracle(name: str, conditions: Sequence[str] = tuple(CONDITIONS)) -> Oracle:
    """One engine alone as the verifier for training; `auto` is the portfolio.

    Args:
        name: of the engine.
        conditions: what it is asked; the others are reported as not asked. Where there are any, one
            counterexample to any condition is enough, as in the paper's set 𝒞.
    """
    everything = len(conditions) == len(CONDITIONS)
    if name == "auto" and everything:
        return portfolio_oracle
    load_engine(name)  # an unknown name, or a package that is not there, is said at once
    left_out = [condition for condition in CONDITIONS if condition not in conditions]

    def oracle(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:  # noqa: ARG001
        budget = Budget(seconds=seconds, first_refutation=not everything)
        report = verify(problem, name, budget, conditions)
        others = [
            ConditionReport(condition, Verdict.UNKNOWN, name, "not asked") for condition in left_out
        ]
        return VerifyReport((*report.conditions, *others), report.seconds)

    return oracle


def train(
    plant: Plant,
    logits: Tensor,
    classes: Sequence[int] | None = None,
    config: LyapunovConfig | None = None,
    *,
    oracle: Oracle,
    regions: bool = True,
    on_round: OnRound | None = None,
    anchors: Tensor | None = None,
    constant: bool = False,
    passing: Aggregation | None = None,
) -> TrainResult:
    """Train and prove a controller and a Lyapunov function for each class, as `certify` asks.

    With `regions` the portfolio is also asked if each class keeps its decision region. The loss
    knows the factor of the loop with message passing, `passing`; where training leaves it above
    `FitSettings.passing`, the controllers are scaled down, unless that costs a proof.

    Args:
        logits: of every node, shape (nodes, n); they span the domain and are the first states.
    """
    settings = config or LyapunovConfig()
    labels = list(range(plant.n_out)) if classes is None else list(classes)
    batch = LoopBatch(plant, logits, labels, settings, anchors, passing)
    log: list[RoundLog] = []
    verification = _Verification(batch, oracle, regions)

    while not (stopped := verification.stopped(len(log))):
        active, started = verification.open(), time.monotonic()
        losses, steps = batch.fit(active, verification.in_time)
        fitted = time.monotonic()
        found = verification.all(active, complete=len(log) >= settings.falsify_rounds)
        log.append(
            RoundLog(
                round=len(log),
                classes=[labels[k] for k in active],
                losses={name: term.tolist() for name, term in losses.items()},
                steps=steps,
                verdicts=[verification.verdict(k).value for k in active],
                engines=[verification.engine(k) for k in active],
                counterexamples=[found[k][0] for k in active],
                not_reproduced=[found[k][1] for k in active],
                fit_seconds=fitted - started,
                verify_seconds=time.monotonic() - fitted,
            )
        )
        if on_round is not None:
            on_round(log[-1])
    if constant:
        verification.make_constant()
    if batch.passing is not None:
        verification.scale_down(batch.passing.factor)
    seconds = time.monotonic() - verification.started
    return TrainResult(verification.outcomes(), tuple(log), settings, seconds, stopped)


class _Verification:
    """Questions to the verifier, the newest answer for every class, and the clock."""

    def __init__(self, batch: LoopBatch, oracle: Oracle, regions: bool) -> None:
        self.batch, self.oracle, self.regions = batch, oracle, regions
        self.reports: dict[int, VerifyReport] = {}
        self.problems: dict[int, Problem] = {}
        self.seconds = [0.0] * len(batch.classes)
        self.patience = [batch.config.verify_seconds] * len(batch.classes)
        self.started = time.monotonic()
        self.deadline = self.started + batch.config.seconds
        self.constant: set[int] = set()
        self.scaled = 1.0

    def all(self, active: Sequence[int], *, complete: bool) -> dict[int, tuple[int, int]]:
        """Ask about each class; count the counterexamples learnt, and those the shipped model
        denies."""
        return {k: self._one(k, complete) for k in active}

    def _one(self, k: int, complete: bool) -> tuple[int, int]:
        self.problems[k] = self.batch.problem(k)
        report = self._query(k, complete)
        if not complete and report.verdict is Verdict.UNKNOWN and report.counterexample is None:
            report = self._query(k, complete=True)  # the quick search came back empty-handed
        self.reports[k] = report
        goals = self._goals(report)
        found = [
            (c.condition, c.counterexample)
            for c in goals
            if c.counterexample is not None and c.condition != "region"  # trained by bounds alone
        ]
        confirmed = sum(self.batch.learn(k, condition, state) for condition, state in found)
        if not found and any(c.verdict is not Verdict.PROVED for c in goals):
            # Neither a proof nor anything to learn from: an easier question, and more time.
            self.batch.tighten(k)
            self.patience[k] *= 2
        return confirmed, len(found) - confirmed

    def _query(self, k: int, complete: bool) -> VerifyReport:
        started = time.monotonic()
        left = max(self.deadline - started, 0.5)
        seconds = min(self.patience[k], left)
        report = self.oracle(self.problems[k], seconds=seconds, complete=complete)
        if self.regions:
            # Nothing follows from a region alone.
            worth = complete and report.verdict is Verdict.PROVED
            answer = self._ask_region(k, seconds, worth)
            report = replace(
                report,
                conditions=(*report.conditions, answer),
                seconds=report.seconds + answer.seconds,
            )
        self.seconds[k] += time.monotonic() - started
        return report

    def _ask_region(self, k: int, seconds: float, complete: bool) -> ConditionReport:
        """Whether a class keeps its states: one bound for the whole box, then violations, then
        branch and bound."""
        region = Region(self.batch.classes[k], self.batch.config.margin)
        problem = replace(self.problems[k], region=region)
        budget = Budget(seconds=seconds)
        return AutoVerifier(complete).solve(problem, budget, ("region",))["region"]

    def _ask_anew(self, k: int) -> None:
        """About weights that changed after training."""
        self.problems[k] = self.batch.problem(k)
        self.reports[k] = self._query(k, complete=True)

    def open(self) -> list[int]:
        """The classes for which a condition that training works for is not proved yet."""
        done = [k for k in self.reports if self._closed(k)]
        return [k for k in range(len(self.batch.classes)) if k not in done]

    def _closed(self, k: int) -> bool:
        """No training leads a loop to a state that the head cannot answer."""
        return self.verdict(k) is Verdict.PROVED or not self.batch.goals[k].reachable

    def make_constant(self) -> None:
        """Constant controllers for the classes that training left without a proof."""
        if self.batch.config.form == "paper":
            return  # its offset is no solution of C(h) = Y
        for k in range(len(self.batch.classes)):
            if self._closed(k):
                continue
            self.batch.set_outer(torch.zeros(()), k)  # f ≡ h
            self.deadline = time.monotonic() + self.batch.config.verify_seconds
            self._ask_anew(k)
            self.constant.add(k)

    def scale_down(self, factor: _Factor) -> None:
        """Make all controllers answer less, so that the loop with message passing contracts, too:
        its factor falls in proportion. Taken back where a proof would be lost."""
        everyone = range(len(self.batch.classes))
        before = factor([self.batch.shipped(k)[0] for k in everyone])
        aim = self.batch.settings.passing
        if before <= aim:
            return
        kept = (dict(self.problems), dict(self.reports))
        weights = self.batch.set_outer(self.batch.controller.raw_outer * (aim / before))
        self.deadline = time.monotonic() + len(everyone) * self.batch.config.verify_seconds
        for k in everyone:
            self._ask_anew(k)
        lost = [k for k in everyone if _proves_less(self.reports[k], kept[1][k])]
        if lost:
            self.batch.set_outer(weights)
            self.problems, self.reports = kept
            return
        self.scaled = aim / before

    def _goals(self, report: VerifyReport) -> list[ConditionReport]:
        return [c for c in report.conditions if c.condition in self.batch.config.goals]

    def in_time(self) -> bool:
        return time.monotonic() < self.deadline

    def stopped(self, rounds: int) -> str:
        """Why to stop, or an empty string; every class has been asked about before any stop."""
        if len(self.reports) < len(self.batch.classes):
            return ""
        if not self.open():
            everywhere = all(goal.reachable for goal in self.batch.goals)
            return "proved" if everywhere else "unreachable"
        if rounds >= self.batch.config.rounds:
            return "rounds"
        return "" if self.in_time() else "seconds"

    def verdict(self, k: int) -> Verdict:
        """On the conditions that training works for."""
        return Verdict.all_of([c.verdict for c in self._goals(self.reports[k])])

    def engine(self, k: int) -> str:
        return "+".join(dict.fromkeys(c.engine for c in self.reports[k].conditions))

    def outcomes(self) -> tuple[ClassOutcome, ...]:
        batch = self.batch
        return tuple(
            ClassOutcome(
                label,
                *batch.shipped(k),
                self.problems[k],
                self.reports[k],
                self.seconds[k],
                self._note(k),
            )
            for k, label in enumerate(batch.classes)
        )

    def _note(self, k: int) -> str:
        notes = [self.batch.goals[k].note]
        if k in self.constant:
            notes.append("training ended without a proof, so that its controller is constant")
        if self.scaled < 1.0:
            share = f"{self.scaled:.2g} of the trained one"
            notes.append(f"its controller's answer is {share}, for message passing to contract")
        return "; ".join(note for note in notes if note)


def _proves_less(after: VerifyReport, before: VerifyReport) -> bool:
    proved = {c.condition for c in after.conditions if c.verdict is Verdict.PROVED}
    return any(c.verdict is Verdict.PROVED and c.condition not in proved for c in before.conditions)
