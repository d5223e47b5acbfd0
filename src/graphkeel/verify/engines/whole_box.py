"""Conditions proved on the whole box at once: a branch proof whose trees have one leaf each.

Training aims at bounds that keep F(D) inside D and a class's states its own, so that neither proof
needs a single cut. This engine says within milliseconds whether that succeeded, and needs no
compiler."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.affine import box_magnitude, errors_of
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Affine, Array, Problem
from graphkeel.verify.proof import head, multipliers_entry, one_leaf_tree
from graphkeel.verify.query import Row
from graphkeel.verify.relaxation import Relaxation
from graphkeel.verify.result import Budget, ConditionReport, Verdict

_WHOLE_BOX = ("invariance", "region")  # the conditions on all of the box, hole included


class WholeBoxVerifier(ConditionwiseEngine):
    """One bound a row; `proved` or `unknown`. The proof is one of the branch engine's kind."""

    name = "branch"

    def decide(
        self, problem: Problem, condition: str, budget: Budget | None = None
    ) -> ConditionReport:
        """Bound every row of a condition over the whole box."""
        if condition not in _WHOLE_BOX:
            reason = f"{condition} is never tried on the whole box, hole included"
            return self.report(condition, Verdict.UNKNOWN, reason)
        rows = rows_of(problem, condition)
        bounds, slack = _upper_bounds(rows)
        if not (bounds <= -slack).all():  # the bound itself is rounded
            reason = f"the bound of a row on the whole box is {bounds.max():.3g}"
            return self.report(condition, Verdict.UNKNOWN, reason)
        trees = [one_leaf_tree(row) for row in rows]
        proof = head("branch", condition) | multipliers_entry(rows) | {"trees": trees}
        reason = f"bounded on the whole box, {len(rows)} rows"
        return self.report(condition, Verdict.PROVED, reason, nodes=len(rows), proof=proof)


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
