"""The base of engines that decide one condition after the other, and the sharing of time between
them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from graphkeel.verify.problem import CONDITIONS, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, VerifyReport

HARDEST = "decrease"  # asked last, so that it gets the time that the others did not need


class ConditionwiseEngine(ABC):
    """An engine that decides each condition on its own; subclasses write `decide`."""

    name: str

    def supports(self, problem: Problem) -> str | None:
        """Why the engine cannot take the problem, or None.

        Args:
            problem: the problem that would be asked about.
        """
        return None

    def prepare(self) -> None:
        """Get ready: what is done here does not count as time spent on a problem."""
        return

    @abstractmethod
    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Decide one condition.

        Args:
            problem: the problem.
            condition: the name of one of its conditions.
            budget: this condition's own share.
        """

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: Sequence[str] = tuple(CONDITIONS),
    ) -> VerifyReport:
        """Decide the conditions in turn, each with an equal share of the time that is left.

        Args:
            problem: the problem.
            budget: for all conditions together.
            conditions: their names; the report has them in this order.
        """
        check_conditions(problem, conditions)
        budget = budget or Budget()
        self.prepare()
        start = time.monotonic()
        reports: dict[str, ConditionReport] = {}
        for done, condition in enumerate(sorted(conditions, key=lambda name: name == HARDEST)):
            left = budget.seconds - (time.monotonic() - start)
            share = max(left / (len(conditions) - done), 0.0)
            began = time.monotonic()
            report = self.decide(problem, condition, replace(budget, seconds=share))
            reports[condition] = replace(report, seconds=time.monotonic() - began)
        answers = tuple(reports[condition] for condition in conditions)
        return VerifyReport(answers, time.monotonic() - start)
