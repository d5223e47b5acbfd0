"""Re-proving a leaf by its activation cells, exactly (docs/proof-format.md, "Cell leaves").

Units are taken layer by layer. While the phases of all earlier layers are known, a pre-activation
is an affine form of the state, so its sign over the box is plain arithmetic, and its sign on a part
of the box is shown by multipliers: with λ >= 0 and constraints c_i >= 0 on that part, a form f is
<= 0 there if f + Σ λ_i·c_i <= 0 on the whole box. Where every phase is known the row itself is
affine and is shown to be <= 0 in the same way. Nothing is rounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from graphkeel.certificate.dyadic import Bools, Dyadic, Floats
from graphkeel.certificate.schema import Layer, Loop
from graphkeel.certificate.trees import Refused
from graphkeel.core.errors import CertificateError

SPLIT, BELOW, ABOVE, BOUND = "split", "-", "+", "bound"
MAX_STEPS = 100_000
_NUMBER = re.compile(r"[0-9]{1,4000}(/[1-9][0-9]{0,3999})?")


@dataclass(frozen=True, eq=False)
class Stage:
    """One layer of one of the row's networks; `relu` is False at a network's end and where V is put
    onto F."""

    network: int
    layer: Layer
    relu: bool


@dataclass(frozen=True, eq=False)
class ExactRow:
    """g(y) = Σ factor·network(y) + linear·y + constant, with no product of layers formed (that
    would round)."""

    stages: tuple[Stage, ...]
    factors: tuple[Fraction, ...]
    linear: tuple[Fraction, ...]
    constant: Fraction
    strict: bool


@dataclass(frozen=True, eq=False)
class Forms:
    """Affine forms of the state, one per line: coefficients and, last, the constant; each off by at
    most `error`."""

    lines: Dyadic  # (forms, n + 1)
    error: Dyadic  # (forms,)

    def kept(self, active: Bools) -> Forms:
        """ReLU with known phases."""
        zero = Dyadic.of(np.zeros(self.error.shape))
        blank = Dyadic.of(np.zeros(self.lines.shape))
        return Forms(self.lines.where(active[:, None], blank), self.error.where(active, zero))


def exact_row(loop: Loop, condition: str, name: str) -> ExactRow:
    """The row with this name, straight from the layers of F and V."""
    none, zero = (Fraction(0),) * loop.n, Fraction(0)
    if condition == "decrease":
        after = (*_stages(0, loop.closed_loop), *_stages(0, loop.lyapunov))
        stages = (*after, *_stages(1, loop.lyapunov))
        return ExactRow(stages, (Fraction(1), -Fraction(loop.rho)), none, zero, loop.rho == 1)
    if condition == "positivity":
        stages = _stages(0, loop.lyapunov)
        if loop.positivity == 0:
            return ExactRow(stages, (Fraction(-1),), none, zero, True)
        axis, slope = int(name[1:]), Fraction(loop.positivity) * (1 if name[0] == "+" else -1)
        linear = tuple(slope if i == axis else Fraction(0) for i in range(loop.n))
        return ExactRow(
            stages, (Fraction(-1),), linear, -slope * Fraction(loop.equilibrium[axis]), False
        )
    side, axis = name.split()[0], int(name.split()[1])
    sign, end = (1, loop.upper) if side == "upper" else (-1, loop.lower)
    *hidden, last = loop.closed_loop
    chosen = slice(axis, axis + 1)
    output = Layer(
        last.weight[chosen], last.bias[chosen], last.weight_error[chosen], last.bias_error[chosen]
    )
    return ExactRow(
        _stages(0, (*hidden, output)), (Fraction(sign),), none, -sign * Fraction(end[axis]), False
    )


def _stages(network: int, layers: tuple[Layer, ...]) -> tuple[Stage, ...]:
    return tuple(Stage(network, layer, i + 1 < len(layers)) for i, layer in enumerate(layers))


def check_cells(
    row: ExactRow, lower: Floats, upper: Floats, steps: Any, margin: float, where: str
) -> None:
    """Walk the stored steps over one leaf box; Refused if they do not show the row's sign there."""
    if not isinstance(steps, list) or len(steps) > MAX_STEPS:
        raise CertificateError(
            f"{where}: a cell leaf is a list of at most {MAX_STEPS} steps", got=repr(steps)[:80]
        )
    walk = _Walk(row, lower, upper, iter(steps), Fraction(margin), where)
    walk.run()
    if next(walk.steps, None) is not None:
        raise Refused(f"{where}: a cell leaf has steps left over")


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the box: where the walk stands in the row, the constraints passed, and the
    networks' values."""

    stage: int
    values: tuple[Forms, ...]
    path: tuple[tuple[list[Fraction], Fraction], ...] = ()  # forms that are >= −error on this part
    layer: Forms | None = None  # the layer whose units are being decided
    active: tuple[bool | None, ...] = ()


class _Walk:
    """The state of one check: the parts of the box that still wait are on a stack, so depth is no
    danger."""

    def __init__(
        self,
        row: ExactRow,
        lower: Floats,
        upper: Floats,
        steps: Iterator[Any],
        margin: Fraction,
        where: str,
    ) -> None:
        self.row, self.steps, self.margin, self.where = row, steps, margin, where
        self.low, self.high = Dyadic.of(lower), Dyadic.of(upper)
        self.reach = abs(self.low).maximum(abs(self.high))
        self.ends = [
            (Fraction(a), Fraction(b)) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)
        ]

    def run(self) -> None:
        n = len(self.ends)
        state = Forms(Dyadic.of(np.eye(n, n + 1)), Dyadic.of(np.zeros(n)))
        waiting = [_Part(0, (state,) * len(self.row.factors))]
        while waiting:
            waiting += self._advance(waiting.pop())

    def _advance(self, part: _Part) -> list[_Part]:
        """Take one part as far as the next step goes; what is left of it, the part to be walked
        first last."""
        while part.stage < len(self.row.stages):
            if part.layer is None:
                part = self._entered(part)
            if part.layer is not None:
                if None in part.active:
                    return self._decided(part, part.layer, part.active.index(None))
                part = self._left(part, part.layer.kept(np.array(part.active, dtype=bool)))
        self._check_bound(part)
        return []

    def _entered(self, part: _Part) -> _Part:
        """Apply a layer; a ReLU's units whose sign the box alone decides are decided here."""
        stage = self.row.stages[part.stage]
        forms = self._affine(stage.layer, part.values[stage.network])
        if not stage.relu:
            return self._left(part, forms)
        least, most = self._range(forms)
        zero = Dyadic.of(np.zeros(least.shape))
        above, below = zero <= least, most <= zero
        active = tuple(
            True if a else False if b else None for a, b in zip(above, below, strict=True)
        )
        return replace(part, layer=forms, active=active)

    def _left(self, part: _Part, forms: Forms) -> _Part:
        network = self.row.stages[part.stage].network
        values = tuple(forms if i == network else old for i, old in enumerate(part.values))
        return _Part(part.stage + 1, values, part.path)

    def _affine(self, layer: Layer, values: Forms) -> Forms:
        weight, bias = Dyadic.of(layer.weight), Dyadic.of(layer.bias)
        lines = weight @ values.lines
        column = Dyadic.of(np.eye(1, lines.shape[1], lines.shape[1] - 1))
        lines = lines + Dyadic(bias.mantissa[:, None], bias.exponent) * column
        error = abs(weight) @ values.error + Dyadic.of(layer.bias_error)
        if layer.weight_error.any():
            least, most = self._range(values)
            error = error + Dyadic.of(layer.weight_error) @ abs(least).maximum(abs(most))
        return Forms(lines, error)

    def _range(self, forms: Forms) -> tuple[Dyadic, Dyadic]:
        slopes, constant = forms.lines[:, :-1], forms.lines[:, -1]
        up, down = slopes.relu(), (-slopes).relu()
        most = up @ self.high - down @ self.low + constant + forms.error
        return up @ self.low - down @ self.high + constant - forms.error, most

    def _decided(self, part: _Part, forms: Forms, unit: int) -> list[_Part]:
        """The next step decides the next open unit: both signs, or one of them with the reason."""
        form, error = forms.lines[unit].fractions(), forms.error[unit].fraction()
        kind, multipliers = self._step(len(part.path))
        if kind == BOUND:
            raise Refused(f"{self.where}: a cell is called finished while a unit's sign is open")
        if kind == SPLIT:
            return [
                self._with(part, unit, True, form, error),
                self._with(part, unit, False, form, error),
            ]
        claim = form if kind == BELOW else [-c for c in form]  # what has to be <= 0 on this part
        if self._most(part, claim, error, multipliers) > 0:
            raise Refused(
                f"{self.where}: the multipliers do not show a unit's sign on its part of the box"
            )
        return [replace(part, active=_set(part.active, unit, kind == ABOVE))]

    def _with(
        self, part: _Part, unit: int, positive: bool, form: list[Fraction], error: Fraction
    ) -> _Part:
        known = form if positive else [-c for c in form]
        return replace(
            part, path=(*part.path, (known, error)), active=_set(part.active, unit, positive)
        )

    def _most(
        self, part: _Part, form: list[Fraction], error: Fraction, multipliers: list[Fraction]
    ) -> Fraction:
        """An upper bound of a form on a part of the box."""
        total, off = list(form), error
        for weight, (constraint, slack) in zip(multipliers, part.path, strict=True):
            if weight:
                total = [a + weight * b for a, b in zip(total, constraint, strict=True)]
                off += weight * slack
        sides = zip(total, self.ends, strict=False)
        return sum((c * (high if c > 0 else low) for c, (low, high) in sides), total[-1] + off)

    def _check_bound(self, part: _Part) -> None:
        kind, multipliers = self._step(len(part.path))
        if kind != BOUND:
            raise Refused(f"{self.where}: a step stands where a cell should be bounded")
        form, error = [*self.row.linear, self.row.constant + self.margin], Fraction(0)
        for factor, value in zip(self.row.factors, part.values, strict=True):
            form = [a + factor * b for a, b in zip(form, value.lines[0].fractions(), strict=True)]
            error += abs(factor) * value.error[0].fraction()
        most = self._most(part, form, error, multipliers)
        if most > 0 or (most == 0 and self.row.strict and not self.margin):
            raise Refused(
                f"{self.where}: the bound of a cell is {float(most):.3g}, so the leaf is not proved"
            )

    def _step(self, constraints: int) -> tuple[str, list[Fraction]]:
        step = next(self.steps, None)
        if step == SPLIT:
            return SPLIT, []
        if (
            not isinstance(step, list)
            or len(step) != constraints + 1
            or step[0] not in (BELOW, ABOVE, BOUND)
        ):
            raise Refused(
                f"{self.where}: a step of a cell leaf is missing or has the wrong number of multipliers"
            )
        return step[0], [_multiplier(text, self.where) for text in step[1:]]


def _set(active: tuple[bool | None, ...], unit: int, value: bool) -> tuple[bool | None, ...]:
    return (*active[:unit], value, *active[unit + 1 :])


def _multiplier(text: Any, where: str) -> Fraction:
    """A non-negative rational "p" or "p/q"; signs and other spellings are refused."""
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise Refused(f"{where}: a multiplier must be a rational number that is not negative")
    return Fraction(text)
