"""A box decided by its activation cells, in exact rationals: where cutting boxes does not end.

Where a row touches zero along a kink no box around the kink is ever settled: float bounds leave a
slack, and the row leaves none. But few units change their sign there, and between their kinks the
row is affine. So the units are taken layer by layer; the sign of each is decided by the box, by a
linear program over the part of the box that is left, or by looking at both sides. HiGHS only
proposes: every step is kept as exact multipliers (docs/proof-format.md, "Cell leaves") that are
checked here in rationals before anything is believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from graphkeel.verify.problem import Affine, Array, Problem
from graphkeel.verify.query import Row
from graphkeel.verify.rational import ZERO, rationals

Form = list[Fraction]  # coefficients of the state, then the constant
Step = str | list[str]
NEGLIGIBLE = 1e-9
MOST_CELLS = 256


class GivenUp(Exception):
    """This box is not decided by its cells: too many of them, or a bound that is not ≤ 0."""


@dataclass(eq=False)
class CellLeaf:
    """The result of looking at the cells of one box: steps of a proof, or a state where the row is
    largest."""

    steps: list[Step] | None = None
    point: Array | None = None


@dataclass(frozen=True, eq=False)
class Stage:
    """One layer of chain 0 or 1, with a ReLU or (at an end, or where V is put onto F) without."""

    chain: int
    layer: Affine
    relu: bool


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the box: the forms known to be ≥ 0 there, and both chains' values as affine
    forms."""

    values: tuple[list[Form], ...]
    path: tuple[Form, ...] = ()


@dataclass(eq=False)
class Cells:
    """The exact row; one object serves all boxes of a search.

    Reads: stages, factors, offset, strict. Writes: steps, point, and the present box.
    """

    stages: tuple[Stage, ...]
    factors: tuple[Fraction, ...]
    offset: Form
    strict: bool
    steps: list[Step] = field(default_factory=list)
    point: Array | None = None  # where the last form that was looked at is largest
    lower: list[Fraction] = field(default_factory=list)
    upper: list[Fraction] = field(default_factory=list)
    expired: Callable[[], bool] | None = None

    def decide(
        self, lower: Array, upper: Array, expired: Callable[[], bool] | None = None
    ) -> CellLeaf:
        """Walk through the cells of a box, as long as the time allows.

        Args:
            lower: the lower ends of the box, shape (n,).
            upper: its upper ends, shape (n,).
            expired: whether the time is over.
        """
        self.lower = rationals(lower)
        self.upper = rationals(upper)
        self.expired = expired
        self.steps = []
        self.point = None
        n = len(self.lower)
        state = [[Fraction(int(i == j)) for j in range(n + 1)] for i in range(n)]
        try:
            self._layers(0, Part((state,) * len(self.factors)))
        except GivenUp:
            return CellLeaf(point=self.point)
        return CellLeaf(steps=self.steps)

    def _layers(self, index: int, part: Part) -> None:
        if index == len(self.stages):
            self._bound(part)
            return
        stage = self.stages[index]
        forms = []
        for unit in range(stage.layer.n_out):
            self._watch_the_time()
            forms.append(_affine(stage.layer, unit, part.values[stage.chain]))
        if stage.relu:
            self._units(index, part, forms, 0)
        else:
            self._layers(index + 1, self._with_values(stage.chain, part, forms))

    def _with_values(self, chain: int, part: Part, forms: list[Form]) -> Part:
        values = tuple(forms if i == chain else old for i, old in enumerate(part.values))
        return Part(values, part.path)

    def _units(self, index: int, part: Part, forms: list[Form], unit: int) -> None:
        """Decide the signs of a layer's units from `unit` on; `forms` turns from z into relu(z) on
        the way."""
        while unit < len(forms):
            form = forms[unit]
            if self._least(form) >= 0:
                sign = 1
            elif self._most(form) <= 0:
                sign = -1
            else:
                sign = self._sign(part, form)
            if sign == 0:
                self._both(index, part, forms, unit)
                return
            forms = _replaced(forms, unit, sign)
            unit += 1
        self._layers(index + 1, self._with_values(self.stages[index].chain, part, forms))

    def _both(self, index: int, part: Part, forms: list[Form], unit: int) -> None:
        form = forms[unit]
        self.steps.append("split")
        if len(self.steps) > MOST_CELLS:
            self.point = None
            raise GivenUp
        for sign in (-1, 1):
            known = form if sign > 0 else _negated(form)
            side = Part(part.values, (*part.path, known))
            self._units(index, side, _replaced(forms, unit, sign), unit + 1)

    def _watch_the_time(self) -> None:
        if self.expired is not None and self.expired():
            self.point = None
            raise GivenUp

    def _sign(self, part: Part, form: Form) -> int:
        """±1 where the unit cannot have the other sign on this part (shown by multipliers), else
        0."""
        for sign, name in ((-1, "-"), (1, "+")):
            self._watch_the_time()
            claim = form if sign < 0 else _negated(form)
            multipliers = self._shown(part, claim, strict=False)
            if multipliers is not None:
                self.steps.append([name, *map(str, multipliers)])
                return sign
        return 0

    def _bound(self, part: Part) -> None:
        """The row is affine here: show that it is ≤ 0, or keep the state where it is not."""
        form = list(self.offset)
        for factor, value in zip(self.factors, part.values, strict=True):
            form = [a + factor * b for a, b in zip(form, value[0], strict=True)]
        multipliers = self._shown(part, form, strict=self.strict)
        if multipliers is None:
            raise GivenUp
        self.steps.append(["bound", *map(str, multipliers)])

    def _shown(self, part: Part, form: Form, *, strict: bool) -> list[Fraction] | None:
        """Multipliers λ ≥ 0 with form + λ·path ≤ 0 (strict: < 0) on the whole box, exactly; None if
        there are none."""
        if not part.path:
            self.point = np.array([float(b if c > 0 else a) for c, a, b in self._sides(form)])
            return [] if self._holds(self._most(form), strict) else None
        weights, slopes = self._program(part, form)
        if weights is None:
            return None
        for multipliers in (rationals(weights), self._exact_weights(part, form, weights, slopes)):
            if multipliers is not None and self._holds(
                self._most(_combined(form, part.path, multipliers)), strict
            ):
                return multipliers
        return None

    def _holds(self, most: Fraction, strict: bool) -> bool:
        return most < 0 if strict else most <= 0

    def _program(self, part: Part, form: Form) -> tuple[Array | None, Array]:
        """max form over the part, in floats: the multipliers, and the slopes that remain with
        them."""
        floats = np.array([[float(c) for c in line] for line in (form, *part.path)])
        bounds = [(float(a), float(b)) for a, b in zip(self.lower, self.upper, strict=True)]
        answer = linprog(
            -floats[0, :-1],
            A_ub=-floats[1:, :-1],
            b_ub=floats[1:, -1],
            bounds=bounds,
            method="highs",
        )
        if answer.x is None:
            return None, np.zeros(0)
        self.point = np.clip(answer.x, *np.array(bounds).T)
        size = float(np.abs(floats[0]).sum()) * max(1.0, float(np.abs(bounds).max()))
        if floats[0, -1] - answer.fun > NEGLIGIBLE * size:
            return None, np.zeros(0)
        weights = np.maximum(-answer.ineqlin.marginals, 0.0)
        return weights, floats[0, :-1] + weights @ floats[1:, :-1]

    def _exact_weights(
        self, part: Part, form: Form, weights: Array, slopes: Array
    ) -> list[Fraction] | None:
        """The vertex the float multipliers stand for: the slopes that vanish up to rounding vanish
        exactly."""
        scale = float(np.abs([float(c) for c in form[:-1]]).max())
        used = [i for i, w in enumerate(weights) if w > NEGLIGIBLE]
        gone = [d for d, s in enumerate(slopes) if abs(s) <= NEGLIGIBLE * max(scale, 1e-300)]
        matrix = [[part.path[i][d] for i in used] + [-form[d]] for d in gone]
        solution = _solved(matrix, len(used))
        if solution is None or min(solution, default=ZERO) < 0:
            return None
        exact = [ZERO] * len(part.path)
        for i, value in zip(used, solution, strict=True):
            exact[i] = value
        return exact

    def _most(self, form: Form) -> Fraction:
        return sum((c * (high if c > 0 else low) for c, low, high in self._sides(form)), form[-1])

    def _sides(self, form: Form) -> list[tuple[Fraction, Fraction, Fraction]]:
        return list(zip(form[:-1], self.lower, self.upper, strict=True))

    def _least(self, form: Form) -> Fraction:
        return -self._most(_negated(form))


def cells_of(problem: Problem, condition: str, row: Row, shift: float) -> Cells | None:
    """The exact row (plus `shift`), or None where nothing is tight anyway: weights with errors, and
    regions, whose multipliers are floats.

    Args:
        problem: the problem.
        condition: the row's condition.
        row: one of its rows.
        shift: added to g.
    """
    f, v = problem.closed_loop.layers, problem.lyapunov.layers
    if condition == "region" or not all(layer.exact for layer in (*f, *v)):
        return None
    n, start = problem.n, Fraction(shift)
    offset = [ZERO] * n + [start]
    if condition == "decrease":
        stages = (*_stages(0, f), *_stages(0, v), *_stages(1, v))
        return Cells(stages, (Fraction(1), -Fraction(problem.rho)), offset, row.strict)
    if condition == "positivity":
        if row.side is not None:
            axis, sign = row.side
            offset[axis] = sign * Fraction(problem.positivity)
            offset[n] -= offset[axis] * Fraction(float(problem.equilibrium[axis]))
        return Cells(_stages(0, v), (Fraction(-1),), offset, row.strict)
    side, axis = row.name.split()[0], int(row.name.split()[1])
    sign, end = (1, problem.upper) if side == "upper" else (-1, problem.lower)
    offset[n] -= sign * Fraction(float(end[axis]))
    last = Affine(f[-1].weight[axis : axis + 1], f[-1].bias[axis : axis + 1])
    return Cells(_stages(0, (*f[:-1], last)), (Fraction(sign),), offset, row.strict)


def _stages(chain: int, layers: tuple[Affine, ...]) -> tuple[Stage, ...]:
    return tuple(Stage(chain, layer, i + 1 < len(layers)) for i, layer in enumerate(layers))


def _affine(layer: Affine, unit: int, values: list[Form]) -> Form:
    total = [ZERO] * (len(values[0]) - 1) + [Fraction(float(layer.bias[unit]))]
    for weight, value in zip(rationals(layer.weight[unit]), values, strict=True):
        if weight:
            total = [a + weight * b for a, b in zip(total, value, strict=True)]
    return total


def _replaced(forms: list[Form], unit: int, sign: int) -> list[Form]:
    """relu of one unit whose sign is known."""
    return forms if sign > 0 else [*forms[:unit], [ZERO] * len(forms[unit]), *forms[unit + 1 :]]


def _negated(form: Form) -> Form:
    return [-c for c in form]


def _combined(form: Form, path: tuple[Form, ...], multipliers: list[Fraction]) -> Form:
    for weight, constraint in zip(multipliers, path, strict=True):
        if weight:
            form = [a + weight * b for a, b in zip(form, constraint, strict=True)]
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
