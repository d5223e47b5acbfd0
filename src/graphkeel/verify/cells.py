"""A box decided by its activation cells, in exact rationals: where cutting boxes does not end.

Where a row touches zero along a kink, no box around the kink is ever proved: float bounds have a
slack, and the row leaves none. But few units change their sign there, and between their kinks the
row is affine. So the units are taken layer by layer: either the box decides the sign of a unit, or
the box is cut at the unit and both sides are searched. HiGHS only proposes multipliers; those of
every leaf are checked here in rationals (docs/formats.md, section 2).

A side that meets its part only where the unit is zero holds whenever the other side does. The
search skips it, but a stored proof has to show it. Such proofs are completed only if that takes few
nodes; else the box counts as proved and its tree is not stored."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from scipy.optimize import linprog

from graphkeel.verify.problem import Affine, Array, Problem
from graphkeel.verify.proof import RELAXED, unit_numbers
from graphkeel.verify.query import Row
from graphkeel.verify.rational import (
    ZERO,
    Exact,
    ExactLayer,
    dot,
    exact,
    rational,
    rationals,
    times,
)
from graphkeel.verify.settings import SEARCH, CellSettings

_Form = Exact  # (n + 1,): coefficients of the state, then the constant


class _Undecided(Exception):
    """This box is not decided by its cells: too many of them, or a bound that is not ≤ 0."""


@dataclass(frozen=True, eq=False)
class CellTree:
    """A subtree of unit cuts that proves one box: its nodes in preorder, and for every leaf the
    multipliers Q, β_1, β_2, … of the cuts above it within this subtree."""

    nodes: list[int]
    multipliers: list[list[int]]


@dataclass(eq=False)
class CellLeaf:
    """The result of one box: whether its cells prove it, with the subtree that
    shows it if that could be kept, or a state where the row is largest."""

    proved: bool = False
    tree: CellTree | None = None
    point: Array | None = None


@dataclass(frozen=True, eq=False)
class _Stage:
    """One layer of chain 0 or 1, with a ReLU or (at an end, or where V is put onto F) without."""

    chain: int
    layer: Affine
    first: int | None  # the number of its first unit in the row; None without a ReLU

    @cached_property
    def exact(self) -> ExactLayer:
        return ExactLayer.of(self.layer)


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the box: the forms known to be ≥ 0 there, and both chains' values as affine
    forms."""

    values: tuple[Exact, ...]  # (units, n + 1) each
    path: tuple[_Form, ...] = ()


@dataclass(eq=False)
class Cells:
    """The exact row; one object serves all boxes of a search.

    Reads: stages, factors, offset, strict. Writes: nodes, multipliers, point, and the present box.
    """

    stages: tuple[_Stage, ...]
    factors: tuple[Fraction, ...]
    offset: _Form
    strict: bool
    settings: CellSettings = SEARCH.cells
    nodes: list[int] = field(default_factory=list)
    multipliers: list[list[int]] = field(default_factory=list)
    point: Array | None = None  # the maximiser of the last form
    lower: Exact = field(default_factory=lambda: np.zeros(0, object))
    upper: Exact = field(default_factory=lambda: np.zeros(0, object))
    expired: Callable[[], bool] | None = None
    thorough: bool = False
    touched: bool = False  # whether a side that is only touched was left out

    def decide(
        self, lower: Array, upper: Array, expired: Callable[[], bool] | None = None
    ) -> CellLeaf:
        """Walk through the cells of a box, as long as the time allows."""
        self.lower, self.upper = exact(lower), exact(upper)
        self.expired = expired
        if not self._walk(thorough=False):
            return CellLeaf(point=self.point)
        if self.touched and not self._walk(thorough=True):
            return CellLeaf(proved=True)
        return CellLeaf(True, CellTree(self.nodes, self.multipliers))

    def _walk(self, thorough: bool) -> bool:
        """Whether all cells are shown; a thorough walk shows sides that are only touched, too."""
        self.nodes = []
        self.multipliers = []
        self.point = None
        self.thorough = thorough
        self.touched = False
        n = len(self.lower)
        state = exact(np.eye(n, n + 1))
        try:
            self._layers(0, _Part((state,) * len(self.factors)))
        except _Undecided:
            return False
        return True

    def _layers(self, index: int, part: _Part) -> None:
        if index == len(self.stages):
            self._bound(part)
            return
        stage = self.stages[index]
        self._check_time()
        forms = times(stage.exact.weight, part.values[stage.chain])
        forms[:, -1] += stage.exact.bias
        if stage.first is not None:
            self._units(index, part, forms, 0)
        else:
            self._layers(index + 1, self._with_values(stage.chain, part, forms))

    def _with_values(self, chain: int, part: _Part, forms: Exact) -> _Part:
        values = tuple(forms if i == chain else old for i, old in enumerate(part.values))
        return _Part(values, part.path)

    def _units(self, index: int, part: _Part, forms: Exact, unit: int) -> None:
        """Decide the signs of a layer's units from `unit` on; `forms` turns from z into relu(z) on
        the way."""
        while unit < len(forms):
            if self._highest(-forms[unit]) > 0:
                if self._highest(forms[unit]) > 0:
                    self._cut_at_unit(index, part, forms, unit)
                    return
                forms = _without(forms, unit)
            unit += 1
        self._layers(index + 1, self._with_values(self.stages[index].chain, part, forms))

    def _cut_at_unit(self, index: int, part: _Part, forms: Exact, unit: int) -> None:
        """Cut at a unit: the inactive side first; a side without states is a leaf at once."""
        settings = self.settings
        self.nodes.append(len(self.lower) + (self.stages[index].first or 0) + unit)
        if len(self.nodes) > (settings.complete_nodes if self.thorough else settings.nodes):
            self.point = None
            raise _Undecided
        left_out = False
        for sign in (-1, 1):
            known = sign * forms[unit]
            self._check_time()
            # at most one side may be left out because the other one has its states
            against = self._proving_multipliers(part, known, strict=self.thorough or left_out)
            if against is not None:
                left_out = self._empty_leaf(part, known, against)
                continue
            side = _Part(part.values, (*part.path, known))
            after = forms if sign > 0 else _without(forms, unit)
            self._units(index, side, after, unit + 1)

    def _empty_leaf(self, part: _Part, known: _Form, against: list[Fraction]) -> bool:
        """A side with known + Σ λ·path ≤ 0 needs no search. Where that is < 0, enough of
        it outweighs any g. Where it is 0 the other side has the same states; the answer is True,
        and nothing was proved here."""
        below = -self._highest(_combined(known, part.path, against))
        if below == 0:
            self.touched = True
            return True
        factor = self._largest_row() / below
        self._leaf([factor * weight for weight in (*against, Fraction(1))])
        return False

    def _leaf(self, weights: list[Fraction]) -> None:
        """A leaf with rational multipliers, as integers over a common denominator."""
        scale = lcm(*(weight.denominator for weight in weights))
        self.nodes.append(RELAXED)
        self.multipliers.append([scale, *(int(weight * scale) for weight in weights)])

    def _largest_row(self) -> Fraction:
        """A bound of g, relaxed in whatever way, on the box: every unit at its largest."""
        reach = np.maximum(abs(self.lower), abs(self.upper))
        total = abs(self.offset[-1]) + dot(abs(self.offset[:-1]), reach)
        sizes = [reach] * len(self.factors)
        for stage in self.stages:
            own = stage.exact
            sizes[stage.chain] = times(abs(own.weight), sizes[stage.chain]) + abs(own.bias)
        return total + sum(abs(f) * size[0] for f, size in zip(self.factors, sizes, strict=True))

    def _check_time(self) -> None:
        if self.expired is not None and self.expired():
            self.point = None
            raise _Undecided

    def _bound(self, part: _Part) -> None:
        """The row is affine here: show that it is ≤ 0, or keep the state where it is not."""
        form = self.offset
        for factor, value in zip(self.factors, part.values, strict=True):
            form = form + factor * value[0]
        multipliers = self._proving_multipliers(part, form, strict=self.strict)
        if multipliers is None:
            raise _Undecided
        self._leaf(multipliers)

    def _proving_multipliers(
        self, part: _Part, form: _Form, *, strict: bool
    ) -> list[Fraction] | None:
        """Multipliers λ ≥ 0 with form + λ·path ≤ 0 (strict: < 0) on the whole box, exactly; None if
        there are none."""
        if not part.path:
            self.point = self._corner(form).astype(np.float64)
            return [] if self._holds(self._highest(form), strict) else None
        weights, slopes = self._program(part, form)
        if weights is None:
            return None
        for multipliers in (rationals(weights), self._exact_weights(part, form, weights, slopes)):
            if multipliers is not None and self._holds(
                self._highest(_combined(form, part.path, multipliers)), strict
            ):
                return multipliers
        return None

    def _holds(self, most: Fraction, strict: bool) -> bool:
        return most < 0 if strict else most <= 0

    def _program(self, part: _Part, form: _Form) -> tuple[Array | None, Array]:
        """max form over the part, in floats: the multipliers, and the slopes that remain with
        them."""
        floats = np.array([form, *part.path]).astype(np.float64)
        bounds = np.stack([self.lower, self.upper], axis=1).astype(np.float64)
        answer = linprog(
            -floats[0, :-1],
            A_ub=-floats[1:, :-1],
            b_ub=floats[1:, -1],
            bounds=bounds,
            method="highs",
        )
        if answer.x is None:
            weights = _elastic_weights(floats, bounds, self.settings.violation_price)
            if weights is None:
                return None, np.zeros(0)
            return weights, floats[0, :-1] + weights @ floats[1:, :-1]
        self.point = np.clip(answer.x, *bounds.T)
        size = float(np.abs(floats[0]).sum()) * max(1.0, float(np.abs(bounds).max()))
        if floats[0, -1] - answer.fun > self.settings.negligible * size:
            return None, np.zeros(0)
        weights = np.maximum(-answer.ineqlin.marginals, 0.0)
        return weights, floats[0, :-1] + weights @ floats[1:, :-1]

    def _exact_weights(
        self, part: _Part, form: _Form, weights: Array, slopes: Array
    ) -> list[Fraction] | None:
        """The vertex the float multipliers stand for: the slopes that vanish up to rounding vanish
        exactly."""
        negligible = self.settings.negligible
        scale = float(abs(form[:-1]).max())
        used = [i for i, w in enumerate(weights) if w > negligible]
        gone = [d for d, s in enumerate(slopes) if abs(s) <= negligible * max(scale, 1e-300)]
        matrix = [[part.path[i][d] for i in used] + [-form[d]] for d in gone]
        solution = _solved(matrix, len(used))
        if solution is None or min(solution, default=ZERO) < 0:
            return None
        exact = [ZERO] * len(part.path)
        for i, value in zip(used, solution, strict=True):
            exact[i] = value
        return exact

    def _highest(self, form: _Form) -> Fraction:
        return dot(form[:-1], self._corner(form)) + form[-1]

    def _corner(self, form: _Form) -> Exact:
        """The state of the box where a form is largest."""
        return np.where(form[:-1] > 0, self.upper, self.lower)


def cells_of(
    problem: Problem,
    condition: str,
    row: Row,
    shift: float,
    settings: CellSettings = SEARCH.cells,
) -> Cells | None:
    """The exact row (plus `shift`), or None where nothing is tight anyway: weights with errors, and
    regions, whose multipliers are floats."""
    f, v = problem.closed_loop.layers, problem.lyapunov.layers
    if condition == "region" or not problem.exact:
        return None
    n = problem.n
    offset = exact(np.append(np.zeros(n), shift))
    if condition == "decrease":
        numbers = unit_numbers(row)
        joined = numbers[0][: len(f) - 1], numbers[0][len(f) - 1 :]
        stages = (*_stages(0, f, joined[0]), *_stages(0, v, joined[1]), *_stages(1, v, numbers[1]))
        return Cells(stages, (Fraction(1), -Fraction(problem.rho)), offset, row.strict, settings)
    if condition == "positivity":
        if row.side is not None:
            axis, sign = row.side
            offset[axis] = sign * Fraction(problem.positivity)
            offset[n] -= offset[axis] * rational(problem.equilibrium[axis])
        stages = _stages(0, v, unit_numbers(row)[1])
        return Cells(stages, (Fraction(-1),), offset, row.strict, settings)
    side, axis = row.name.split()[0], int(row.name.split()[1])
    sign, end = (1, problem.upper) if side == "upper" else (-1, problem.lower)
    offset[n] -= sign * rational(end[axis])
    last = Affine(f[-1].weight[axis : axis + 1], f[-1].bias[axis : axis + 1])
    stages = _stages(0, (*f[:-1], last), unit_numbers(row)[0])
    return Cells(stages, (Fraction(sign),), offset, row.strict, settings)


def _stages(chain: int, layers: tuple[Affine, ...], firsts: list[int]) -> tuple[_Stage, ...]:
    """The layers of one network, with the numbers of the first units of its hidden ones."""
    return tuple(
        _Stage(chain, layer, first) for layer, first in zip(layers, (*firsts, None), strict=True)
    )


def _elastic_weights(floats: Array, bounds: Array, relative_price: float) -> Array | None:
    """Multipliers for a part that floats call empty: its constraints may be broken at a price."""
    lines = floats[1:]
    price = relative_price * (1.0 + float(np.abs(floats[0]).sum()))
    answer = linprog(
        np.append(-floats[0, :-1], price),
        A_ub=np.column_stack([-lines[:, :-1], -np.ones(len(lines))]),
        b_ub=lines[:, -1],
        bounds=[*bounds, (0.0, None)],
        method="highs",
    )
    return None if answer.x is None else np.maximum(-answer.ineqlin.marginals, 0.0)


def _without(forms: Exact, unit: int) -> Exact:
    """The forms after the ReLU of a unit that is off."""
    forms = forms.copy()
    forms[unit] = ZERO
    return forms


def _combined(form: _Form, path: tuple[_Form, ...], multipliers: list[Fraction]) -> _Form:
    for weight, constraint in zip(multipliers, path, strict=True):
        if weight:
            form = form + weight * constraint
    return form


def _solved(matrix: list[list[Fraction]], unknowns: int) -> list[Fraction] | None:
    """Exact elimination on [A | b]; None unless the solution exists and is the only one."""
    rows, pivot = [list(row) for row in matrix], 0
    for column in range(unknowns):
        found = next((r for r in range(pivot, len(rows)) if rows[r][column]), None)
        if found is None:
            return None
        rows[pivot], rows[found] = rows[found], rows[pivot]
        scale = rows[pivot][column]
        rows[pivot] = [entry / scale for entry in rows[pivot]]
        for r, row in enumerate(rows):
            if r != pivot and row[column]:
                rows[r] = [a - row[column] * b for a, b in zip(row, rows[pivot], strict=True)]
        pivot += 1
    if any(row[unknowns] for row in rows[pivot:]):
        return None
    return [row[unknowns] for row in rows[:unknowns]]


class CellBudget:
    """How many cuts a box gets before its cells are tried; the kernel reads `cuts`.

    Reads: the processor's clock. Writes: `cuts` and `seconds`, the time spent on cells."""

    def __init__(
        self, cells: Cells | None, expired: Callable[[], bool], n: int, settings: CellSettings
    ) -> None:
        self.settings = settings
        self.cells = cells
        self.expired = expired
        self.most_cuts = settings.cuts + settings.cuts_per_axis * n
        self.cuts = np.array([self.most_cuts], dtype=np.int64)
        self.share = settings.share
        self.unlimited = False  # whether a box was too small to cut
        self.start = time.process_time()
        self.seconds = 0.0
        self.lock = threading.Lock()

    def left(self) -> float:
        """The seconds of processor time that cells may take now."""
        return self.share * (time.process_time() - self.start) - self.seconds

    def decide(self, box: Array, stuck: bool) -> CellLeaf | None:
        """The result of the cells of a box; None where the budget does not allow an attempt now."""
        if self.cells is None or self.expired():
            return CellLeaf()
        with self.lock:
            self.unlimited = self.unlimited or stuck
            left = math.inf if self.unlimited else self.left()
            if left <= 0.0:
                return None
            begin = time.thread_time()
            until = begin + max(left, self.settings.min_seconds)
            over = lambda: time.thread_time() >= until or self.expired()  # noqa: E731
            leaf = self.cells.decide(box[0], box[1], over)
            self.seconds += time.thread_time() - begin
        return leaf

    def record_success(self) -> None:
        """Cells proved a box: try larger boxes, too."""
        self.cuts[0] //= 2
        self.share = min(2 * self.share, self.settings.max_share)

    def record_failure(self) -> None:
        """Cells did not decide a box: cut as many times as at the start."""
        self.cuts[0] = self.settings.cuts if self.unlimited else self.most_cuts
        self.share = self.settings.share
