"""Positivity of a convex V by linear programs, one for each convex part of the domain.

V(y) = v·relu(Ry + r) + v₀ with v ≥ 0 is convex, so the largest value of c·|y_i − Y_i| − V(y) on one
side of an axis is a linear program, however many units V has: it is either positive somewhere, or
its multipliers θ show that it is not. V ≥ θ·(Ry + r) + v₀ for every 0 ≤ θ ≤ v, and with a linear
function in place of V the rest is the maximum over a box. The proof has one leaf a part, with θ as
its support (docs/formats.md, section 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graphkeel.verify.affine import TINY, errors_of, gamma, highest_on
from graphkeel.verify.gauge.levels import Part, is_gauge, on_grid, reach_of
from graphkeel.verify.gauge.simplex import Program, maximise
from graphkeel.verify.gauge.slabs import slabs_around_hole
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.proof import HOLE, LEVEL, Json, empty_tree, tree_entry
from graphkeel.verify.query import Row


@dataclass(eq=False)
class ConvexOutcome:
    """A tree for every row, a state that violates one of them, or neither."""

    trees: list[Json] | None = None  # in the order of the rows
    counterexample: Array | None = None  # confirmed
    programs: int = 0  # solved


class _NotShown(Exception):
    """A part whose multipliers do not show the row; with a violation, if there is one."""

    def __init__(self, counterexample: Array | None) -> None:
        super().__init__()
        self.counterexample = counterexample


def convex_positivity(
    problem: Problem, rows: list[Row], confirm: Callable[[Array], Array | None]
) -> ConvexOutcome:
    """Positivity, where V is convex for the signs of its last weights."""
    if not is_gauge(problem.lyapunov):
        return ConvexOutcome()
    search = _Convex(problem, confirm)
    try:
        trees = [empty_tree(row) if row.empty else search.tree(row) for row in rows]
    except _NotShown as gap:
        return ConvexOutcome(None, gap.counterexample, search.programs)
    return ConvexOutcome(trees, None, search.programs)


class _Convex:
    """The programs of one V.

    Reads: the problem. Writes: `programs`, how many were solved.
    """

    def __init__(self, problem: Problem, confirm: Callable[[Array], Array | None]) -> None:
        self.problem = problem
        self.confirm = confirm
        first, last = problem.lyapunov.layers
        # copies: the kernel is compiled for plain arrays, not for read-only ones
        self.rows = np.array(first.weight, order="C")
        self.offset = np.array(first.bias)
        self.v = np.array(last.weight[0])
        self.programs = 0

    def tree(self, row: Row) -> Json:
        """The tree of a row: one leaf, or a leaf for each slab around the hole."""
        if not row.hole or self.problem.hole_radius <= 0.0:
            support = self._support(row, Part(row.lower, row.upper))
            return self._entry(row, [LEVEL], [], [support])
        centre = self.problem.equilibrium
        inside = (row.lower <= centre) & (centre <= row.upper)
        slabs = slabs_around_hole(self.problem, row) if inside.all() else None
        if not slabs:
            raise _NotShown(None)
        supports = [self._support(row, Part(slab.lower, slab.upper)) for slab in slabs]
        # in preorder the lower child comes first: slabs below their cut at once, the others last
        axis: list[int] = []
        order: list[Array] = []
        behind: list[Array] = []
        for slab, support in zip(slabs, supports, strict=True):
            axis.append(slab.axis)
            if slab.above:
                behind.append(support)
            else:
                axis.append(LEVEL)
                order.append(support)
        axis += [HOLE, *[LEVEL] * len(behind)]
        order += reversed(behind)
        return self._entry(row, axis, [slab.place for slab in slabs], order)

    def _support(self, row: Row, part: Part) -> Array:
        """λ = 0, γ = 0 and θ that show the row on a box."""
        self.programs += 1
        form = np.array(row.form.direct.weight[0])
        none = np.zeros((0, row.n))
        box = (np.array(part.lower), np.array(part.upper))
        level = (-np.inf, np.inf)
        program = Program(self.rows, self.offset, self.v, *level, none, np.zeros(0), *box)
        _, point, theta, _, _ = maximise(program, form, -self.v, 0.0)
        theta = on_grid(np.clip(theta, 0.0, self.v))
        bound = self._bound(row, part, form, theta)
        if bound > 0.0 or (bound == 0.0 and row.strict):
            # the part reaches a rounding into the hole, the states in question do not
            raise _NotShown(self.confirm(point))
        return np.concatenate([np.zeros(2), theta])

    def _bound(self, row: Row, part: Part, form: Array, theta: Array) -> float:
        """The row's maximum with θ in place of V, every rounding counted in."""
        direct, final = row.form.direct, row.form.finals[1]
        reach = reach_of(part)
        constant = float(direct.bias[0] + final.bias[0])
        size = float(np.abs(direct.bias[0]) + np.abs(final.bias[0]) + np.abs(form) @ reach)
        size += float(theta @ (np.abs(self.rows) @ reach + np.abs(self.offset)))
        weight_error, bias_error = errors_of(direct)
        uncertainty = float(weight_error[0] @ reach + bias_error[0] + errors_of(final)[1][0])
        total = float(highest_on((form - theta @ self.rows)[None], part.lower, part.upper)[0])
        total += constant - float(theta @ self.offset)
        return total + 8.0 * gamma(row.n + row.units) * size + 2.0 * uncertainty + TINY

    def _entry(self, row: Row, axis: list[int], cut: list[float], supports: list[Array]) -> Json:
        leaves = len(supports)
        slopes = np.zeros((leaves, len(self.v)), np.uint8)  # V is left to the supports
        numbers = np.arange(1, leaves + 1, dtype=np.int32)[:, None]
        table = (np.stack(supports), numbers)
        return tree_entry(row, axis, np.array(cut), slopes, [], [], table)
