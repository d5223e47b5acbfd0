"""The base of engines that decide one condition after the other, with the time shared between
them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphkeel.verify.problem import CONDITIONS, SUBLEVEL, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

DECIDED_LAST = "decrease"  # the hardest gets the time that the others did not need


class ConditionwiseEngine(ABC):
    """An engine that decides each condition on its own; subclasses write `decide`."""

    name: str
    sublevels = False  # whether it can take conditions on a sublevel set

    def supports(self, problem: Problem) -> str | None:
        """Why the engine cannot take the problem, or None."""
        return None

    def prepare(self) -> None:
        """Load what the engine needs; this does not count as time spent on a problem."""
        return

    @abstractmethod
    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Decide one condition."""

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: Sequence[str] = tuple(CONDITIONS),
    ) -> VerifyReport:
        """Decide the conditions in turn, each with an equal share of the time that is left."""
        check_conditions(problem, conditions)
        budget = budget or Budget()
        self.prepare()
        start = budget.now()
        reports: dict[str, ConditionReport] = {}
        for done, condition in enumerate(sorted(conditions, key=lambda name: name == DECIDED_LAST)):
            refuted = first_refuted(reports)
            if budget.first_refutation and refuted is not None:
                reports[condition] = skipped_report(condition, refuted, self.name)
                continue
            began = budget.now()
            left = budget.seconds - (began - start)
            share = max(left / (len(conditions) - done), 0.0)
            report = self._answer(problem, condition, replace(budget, seconds=share))
            reports[condition] = replace(report, seconds=budget.now() - began)
        answers = tuple(reports[condition] for condition in conditions)
        return VerifyReport(answers, budget.now() - start)

    def report(
        self, condition: str, verdict: Verdict, reason: str = "", **more: Any
    ) -> ConditionReport:
        """A report in the engine's name."""
        return ConditionReport(condition, verdict, self.name, reason, **more)

    def _answer(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        if condition in SUBLEVEL and not self.sublevels:
            return self.report(condition, Verdict.UNKNOWN, "unsupported: a sublevel set is no box")
        return self.decide(problem, condition, budget)


def first_refuted(reports: Mapping[str, ConditionReport]) -> str | None:
    """The name of the first refuted condition, if there is one."""
    verdicts = ((name, report.verdict) for name, report in reports.items())
    return next((name for name, verdict in verdicts if verdict is Verdict.REFUTED), None)


def skipped_report(condition: str, refuted: str, engine: str) -> ConditionReport:
    """The report of a condition that is skipped, because another one is refuted."""
    reason = f"not asked: {refuted} is refuted"
    return ConditionReport(condition, Verdict.UNKNOWN, engine, reason)
