"""An upper bound of a row over a box by linear relaxation (proof format, 2).

Each ReLU is put between two lines, chosen from the bounds l ≤ z ≤ u of its input:

    l ≥ 0: z and z.   u ≤ 0: 0 and 0.   else: α·z ≤ relu(z) ≤ s·(z − l), 0 ≤ α ≤ 1, s ≥ u/(u − l).

Substituted backwards from the last stage to y they give a linear form above g, whose maximum over
the box is plain arithmetic. Slopes are *choices*, sound whatever they are, and are multiples of
2^-60; all that is claimed of them is computed without rounding.

Where unit cuts fixed the signs of some inputs, their lines are exact, and Q·g + Σ β_i·(±z_i) with
β ≥ 0 is bounded instead: on that part of the box every term ±z_i is ≥ 0, so Q·g is not larger.
Where level cuts bound V, supports (levels.py) add to a form over y what makes its maximum smaller.

Exponents. Let stage j have weights of exponent w_j, and the box e. A form over the outputs of stage
k with exponent c has, over y, the exponent c + Σ_{j≤k}(w_j − 60). Its value over the box, and each
constant met on the way, has e more: inputs of stage j have z_j = w_j + Σ_{i<j}(w_i − 60) + e.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from operator import mul
from typing import NamedTuple

from .exact import Ints, Matrix, Vector, scaled, shifted
from .problem import Row, Stage

BITS = 60
ONE = 1 << BITS
Box = tuple[Ints, Ints]  # lower and upper ends
Pair = tuple[int, int]
Signs = dict[Pair, bool]  # (stage, unit): whether its input is ≥ 0, or else ≤ 0
Support = tuple[Vector, Fraction] | None  # slopes and a constant, to be added to a form over y
Supports = list[Support]  # of the units' upper and lower bounds in turn, then of the row


class Lines(NamedTuple):
    """The lines around the units of one stage: slopes, and the upper lines' values at z = 0."""

    lower: Ints
    upper: Ints
    lift: Ints


class RowBound:
    """Upper bounds of one row over boxes whose corners are integers of one exponent."""

    def __init__(self, row: Row, exp: int) -> None:
        self.row = row
        self.box_exp = exp
        self.stages: list[Stage] = []  # their biases have the exponent of the stage's inputs
        for weight, bias, relus in row.stages:
            own = min(weight.exp + exp, bias.exp)
            aligned = Matrix(weight.at(own - exp), own - exp)
            self.stages.append(Stage(aligned, Vector(bias.at(own), own), relus))
            exp = own - BITS
        constant = Vector.of([row.constant])
        final_exp = min(row.final.exp, constant.exp - exp)
        self.final = row.final.at(final_exp)
        self.exp = final_exp + exp
        self.constant = constant.at(self.exp)[0]

    def upper(
        self,
        box: Box,
        slopes: Sequence[int],
        signs: Signs,
        weights: Ints,
        supports: dict[Pair, Supports] | None = None,
    ) -> Fraction:
        """At least the largest value of Q·g on the part of a box with the given signs.

        `slopes`: stored lower slopes q/255 of the networks' first layers, or none, used in the last
        substitution only; `weights`: Q > 0, then β of each sign; `supports`: upper and lower ones
        by unit, the row's own one at (-1, -1).
        """
        scale, *betas = weights
        supports = supports or {}
        lines = self._lines(box, signs, supports)
        self._choose(lines, slopes)
        pulls = {}
        for (place, active), beta in zip(signs.items(), betas, strict=True):
            pulls[place] = beta if active else -beta
        final = [scale * value for value in self.final]
        form, constant = self._substituted(final, len(lines) - 1, lines, pulls)
        (own,) = supports.get((-1, -1), [None])
        if own is not None:
            own = (own[0].times(Fraction(scale)), scale * own[1])
        most = self._most(form, constant + scale * self.constant, self.exp, box, own)
        return scaled(most, self.exp)

    def _most(self, form: Ints, constant: int, exp: int, box: Box, support: Support) -> int:
        """The maximum of form·y + constant over the box, with a support rounded up; `exp` is the
        exponent of constant and maximum."""
        if support is None:
            return highest(form, *box) + constant
        total = Vector(form, exp - self.box_exp) + support[0]
        most = scaled(highest(total.ints, *box), total.exp + self.box_exp) + support[1]
        return constant + ceil(most / scaled(1, exp))

    def _lines(self, box: Box, signs: Signs, supports: dict[Pair, Supports]) -> list[Lines]:
        """The lines of every stage, from the bounds of its inputs."""
        lines: list[Lines] = []
        outputs = box  # of the previous stage
        for k, stage in enumerate(self.stages):
            bounds = []
            for i in range(stage.relus):
                bounds.append(self._bounds(k, i, lines, box, outputs, supports.get((k, i), [])))
            for (place, unit), active in signs.items():
                if place == k:
                    a, b = bounds[unit]
                    bounds[unit] = (max(a, 0), max(b, 0)) if active else (min(a, -1), min(b, 0))
            found = [_line(a, b) for a, b in bounds] + [(ONE, ONE, 0)] * len(box[0])
            lines.append(Lines(*map(list, zip(*found, strict=True))))
            inputs = [shifted(ends, self.box_exp - stage.bias.exp) for ends in box]
            least = [max(a, 0) for a, _ in bounds] + inputs[0]
            most = [max(b, 0) for _, b in bounds] + inputs[1]
            outputs = shifted(least, BITS), shifted(most, BITS)  # as the next weights expect
        return lines

    def _bounds(
        self, k: int, unit: int, lines: list[Lines], box: Box, outputs: Box, supports: Supports
    ) -> Pair:
        """Bounds of a unit's input: by intervals where they decide its sign or are exact, else, and
        wherever supports may be named, the closer ones of substitution both ways."""
        row, bias = self._input(k, unit)
        low = bias - highest([-value for value in row], *outputs)
        high = bias + highest(row, *outputs)
        affine = k == 0 or not any(row[: self.stages[k - 1].relus])
        if not supports and (affine or low >= 0 or high <= 0):
            return low, high
        return self._by_substitution(k, unit, lines, box, *supports)

    def _input(self, k: int, unit: int) -> tuple[Ints, int]:
        return self.stages[k].weight.rows[unit], self.stages[k].bias.ints[unit]

    def _by_substitution(
        self,
        k: int,
        unit: int,
        lines: list[Lines],
        box: Box,
        up: Support = None,
        low: Support = None,
    ) -> Pair:
        row, bias = self._input(k, unit)
        exp = self.stages[k].bias.exp
        above, lift = self._substituted(row, k - 1, lines, {})
        below, drop = self._substituted([-value for value in row], k - 1, lines, {})
        least = -self._most(below, drop - bias, exp, box, low)
        return least, self._most(above, lift + bias, exp, box, up)

    def _substituted(
        self, form: Ints, k: int, lines: list[Lines], pulls: dict[Pair, int]
    ) -> tuple[Ints, int]:
        """A linear form over the outputs of stage k as one over y that is nowhere smaller; `pulls`
        are multiples of inputs to be added, for the row itself only."""
        constant = 0
        for j in range(k, -1, -1):
            lower, upper, lift = lines[j]
            stage = self.stages[j]
            sloped = [c * (b if c > 0 else a) for c, a, b in zip(form, lower, upper, strict=True)]
            constant += sum([c * rise for c, rise in zip(form, lift, strict=True) if c > 0])
            for (place, unit), pull in pulls.items():
                if place == j:
                    sloped[unit] += pull << (stage.bias.exp - self.exp)
            constant += sum(map(mul, sloped, stage.bias.ints))
            form = [sum(map(mul, sloped, column)) for column in stage.weight.columns]
        return form, constant

    def _choose(self, lines: list[Lines], slopes: Sequence[int]) -> None:
        """Put stored slopes where a unit has both signs (only there is the lift not zero)."""
        chosen = iter(slopes)
        for k, first, count in self.row.firsts if slopes else ():
            for unit in range(first, first + count):
                slope = next(chosen)
                if lines[k].lift[unit]:
                    lines[k].lower[unit] = (slope << BITS) // 255


def highest(form: Ints, low: Ints, high: Ints) -> int:
    """The maximum of a linear form over a box."""
    return sum([c * (b if c > 0 else a) for c, a, b in zip(form, low, high, strict=True)])


def _line(least: int, most: int) -> tuple[int, int, int]:
    """The two lines around a ReLU whose input has these bounds."""
    if least >= 0 or most <= 0:
        slope = ONE if least >= 0 else 0
        return slope, slope, 0
    width = most - least
    slope = (ONE >> 1) + ((most + least) << (BITS + 2)) // width
    chord = -((-most << BITS) // width)  # rounded up
    return min(max(slope, 0), ONE), chord, -chord * least


def rounded(floats: Sequence[float]) -> Vector:
    """Choices from the file (multipliers, θ) as multiples of 2^-60, rounded down."""
    return Vector([int(Fraction(value) * ONE // 1) for value in floats], -BITS)
