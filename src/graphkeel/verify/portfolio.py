"""`auto`: the engines in the order of their cost; each gets what the cheaper ones left open.

Closed forms come first, then one bound on the whole box: both take milliseconds. Then the boxes,
because an easy condition is proved in fewer than a thousand of them; the branch engine itself
falsifies before a long search. Training needs quick answers between its rounds: it gets
falsification instead of the boxes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphkeel.verify.affine import box_magnitude, errors_of
from graphkeel.verify.attack import find_violation
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.contraction import ContractionVerifier
from graphkeel.verify.engine import ConditionwiseEngine, first_refuted, skipped_report
from graphkeel.verify.problem import CONDITIONS, SUBLEVEL, Affine, Array, Problem, check_conditions
from graphkeel.verify.proof import head, multipliers_entry, one_leaf_tree
from graphkeel.verify.query import Row
from graphkeel.verify.relaxation import Relaxation
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

_WHOLE_BOX = ("invariance", "region")  # the conditions on all of the box, hole included


class AutoVerifier:
    """Contraction, the whole box, then a search; reports name the engine that decided."""

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
            return FalsifyVerifier()
        from graphkeel.verify.branch import BranchVerifier

        return BranchVerifier()


def _without_search(problem: Problem, condition: str) -> ConditionReport:
    start = time.monotonic()
    report = ContractionVerifier().decide(problem, condition)
    if report.verdict is Verdict.UNKNOWN:
        report = on_whole_box(problem, condition)
    return replace(report, seconds=time.monotonic() - start)


class FalsifyVerifier(ConditionwiseEngine):
    """Searches for counterexamples only: `refuted` or `unknown`, never `proved`."""

    name = "falsify"

    def decide(
        self, problem: Problem, condition: str, budget: Budget | None = None
    ) -> ConditionReport:
        """Search once; the search is short, so the budget is not used."""
        point = find_violation(problem, condition)
        if point is None:
            return self.report(condition, Verdict.UNKNOWN, "the search found no violation")
        return self.report(condition, Verdict.REFUTED, counterexample=point)


def on_whole_box(problem: Problem, condition: str) -> ConditionReport:
    """One bound a row over the whole box: `proved` by a branch proof whose trees have one leaf
    each, or `unknown`. Training aims at bounds that need no cut; no compiler is needed either."""
    if condition not in _WHOLE_BOX:
        reason = f"{condition} is never tried on the whole box, hole included"
        return ConditionReport(condition, Verdict.UNKNOWN, "branch", reason)
    rows = rows_of(problem, condition)
    bounds, slack = _upper_bounds(rows)
    if not (bounds <= -slack).all():  # the bound itself is rounded
        reason = f"the bound of a row on the whole box is {bounds.max():.3g}"
        return ConditionReport(condition, Verdict.UNKNOWN, "branch", reason)
    trees = [one_leaf_tree(row) for row in rows]
    proof = head("branch", condition) | multipliers_entry(rows) | {"trees": trees}
    reason = f"bounded on the whole box, {len(rows)} rows"
    count = len(rows)
    return ConditionReport(condition, Verdict.PROVED, "branch", reason, nodes=count, proof=proof)


def _upper_bounds(rows: list[Row]) -> tuple[Array, Array]:
    """Bounds of rows that share one chain, as one matrix product a layer: (bounds, slack)."""
    first = rows[0]
    relaxation = Relaxation.of(first.hidden[0], first.lower, first.upper)
    state = box_magnitude(first.lower, first.upper)
    direct, direct_error = _stacked([row.form.direct for row in rows], state)
    constant = np.array([row.form.direct.bias[0] for row in rows])
    if not first.hidden[0]:
        return relaxation.upper_bounds(direct, constant, direct_error)
    final, final_error = _stacked([row.form.finals[0] for row in rows], relaxation.reach)
    constant = constant + np.array([row.form.finals[0].bias[0] for row in rows])
    error = (direct_error + final_error) * (1 + 2.0**-38)
    return relaxation.upper_bounds(final, constant, error, direct)


def _stacked(maps: list[Affine], reach: Array) -> tuple[Array, Array]:
    """The maps' weights as one matrix, and a bound on each one's error for inputs ≤ `reach`."""
    errors = [errors_of(part) for part in maps]
    uncertainty = [float((weight @ reach)[0] + bias[0]) for weight, bias in errors]
    return np.concatenate([part.weight for part in maps]), np.array(uncertainty)
