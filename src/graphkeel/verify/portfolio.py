"""`auto`: the engines in the order of their cost, condition by condition, until one of them
decides.

The closed form comes first. Then the boxes, because an easy condition is proved in fewer than a
thousand of them; only where that does not end is it worth looking for a violation (gradients and
the climb), before the long way is taken."""

from __future__ import annotations

import time
from dataclasses import replace

from graphkeel.verify.branch import BranchVerifier, warm_up
from graphkeel.verify.engines.contraction import ContractionVerifier
from graphkeel.verify.problem import CONDITIONS, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport


class AutoVerifier:
    """Contraction, a first look at boxes, falsification, branch and bound; reports name the engine
    that decided."""

    name = "auto"

    def supports(self, problem: Problem) -> str | None:
        return None

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        check_conditions(conditions)
        budget = budget or Budget()
        warm_up()
        start = time.monotonic()
        deadline = start + budget.seconds
        reports = tuple(
            self._decide(problem, condition, budget, deadline) for condition in conditions
        )
        return VerifyReport(reports, time.monotonic() - start)

    def _decide(
        self, problem: Problem, condition: str, budget: Budget, deadline: float
    ) -> ConditionReport:
        start = time.monotonic()
        report = ContractionVerifier().decide(problem, condition)
        if report.verdict is Verdict.UNKNOWN:
            report = BranchVerifier().decide(problem, condition, budget, deadline)
        return replace(report, seconds=time.monotonic() - start)
