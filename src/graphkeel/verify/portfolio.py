"""`auto`: the engines in the order of their cost; each gets what the cheaper ones left open.

Closed forms come first, then one bound on the whole box: both take milliseconds. Then the boxes,
because an easy condition is proved in fewer than a thousand of them; the branch engine itself
falsifies before a long search. Training needs quick answers between its rounds: it gets
falsification instead of the boxes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from graphkeel.verify.engine import ConditionwiseEngine, first_refuted, skipped_report
from graphkeel.verify.engines.contraction import ContractionVerifier
from graphkeel.verify.engines.whole_box import WholeBoxVerifier
from graphkeel.verify.problem import CONDITIONS, SUBLEVEL, Problem, check_conditions
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
        """None: there is always an engine that answers, if only with `unknown`."""
        return None

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: Sequence[str] = tuple(CONDITIONS),
    ) -> VerifyReport:
        """Decide the conditions."""
        check_conditions(problem, conditions)
        budget = budget or Budget()
        start = budget.now()
        boxed = [condition for condition in conditions if condition not in SUBLEVEL]
        answers = {condition: _without_search(problem, condition) for condition in boxed}
        seconds = budget.now() - start
        decided = [name for name in boxed if answers[name].verdict is not Verdict.UNKNOWN]
        undecided = [condition for condition in conditions if condition not in decided]
        refuted = first_refuted(answers) if budget.first_refutation else None
        if refuted is not None:
            answers |= {name: skipped_report(name, refuted, self.name) for name in undecided}
        elif undecided:
            rest = replace(budget, seconds=max(budget.seconds - seconds, 0.0))
            report = self._search().solve(problem, rest, undecided)
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
