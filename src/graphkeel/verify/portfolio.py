"""`auto`: the engines in the order of their cost; each is asked what the cheaper ones left open.

Closed forms come first, then one bound on the whole box: both take milliseconds. Then the boxes,
because an easy condition is proved in fewer than a thousand of them; the branch engine itself looks
for a violation before it takes the long way. Training asks for quick answers between its rounds: it
gets a search for violations instead of the boxes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.engines.contraction import ContractionVerifier
from graphkeel.verify.engines.whole_box import WholeBoxVerifier
from graphkeel.verify.problem import CONDITIONS, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport


class AutoVerifier:
    """Contraction, the whole box, then a search; reports name the engine that decided.

    Args:
        complete: search by branch and bound, to the end; else for violations alone.
    """

    name = "auto"

    def __init__(self, complete: bool = True) -> None:
        self.complete = complete

    def supports(self, problem: Problem) -> str | None:
        """None: there is always an engine that answers, if only with `unknown`.

        Args:
            problem: the problem.
        """
        return None

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: Sequence[str] = tuple(CONDITIONS),
    ) -> VerifyReport:
        """Decide the conditions.

        Args:
            problem: the problem.
            budget: for all conditions together.
            conditions: their names; the report has them in this order.
        """
        check_conditions(problem, conditions)
        budget = budget or Budget()
        start = budget.now()
        answers = {condition: _without_search(problem, condition) for condition in conditions}
        seconds = budget.now() - start
        undecided = [c for c in conditions if answers[c].verdict is Verdict.UNKNOWN]
        if undecided:
            left = replace(budget, seconds=max(budget.seconds - seconds, 0.0))
            report = self._search().solve(problem, left, undecided)
            answers |= {answer.condition: answer for answer in report.conditions}
            seconds += report.seconds
        return VerifyReport(tuple(answers[condition] for condition in conditions), seconds)

    def _search(self) -> ConditionwiseEngine:
        """The engine for what is left; its module compiles kernels, so it is imported now."""
        if not self.complete:
            from graphkeel.verify.engines.falsify import FalsifyVerifier

            return FalsifyVerifier()
        from graphkeel.verify.branch import BranchVerifier

        return BranchVerifier()


def _without_search(problem: Problem, condition: str) -> ConditionReport:
    start = time.monotonic()
    report = ContractionVerifier().decide(problem, condition)
    if report.verdict is Verdict.UNKNOWN:
        report = WholeBoxVerifier().decide(problem, condition)
    return replace(report, seconds=time.monotonic() - start)
