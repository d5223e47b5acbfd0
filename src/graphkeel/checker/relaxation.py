"""An upper bound of a row over a box by linear relaxation (proof format, 2).

Each ReLU is put between two lines, chosen from the bounds l ≤ z ≤ u of its input:

    l ≥ 0: z and z.   u ≤ 0: 0 and 0.   else: α·z ≤ relu(z) ≤ s·(z − l), 0 ≤ α ≤ 1, s ≥ u/(u − l).

A square is put between its chord and a tangent, z² ≥ a·z − a²/4 for any a, here near
2·(l + α·(u − l)). Substituted backwards from the last stage to y the lines give a linear form above
g, whose maximum over the box is plain arithmetic. Slopes are *choices*, sound whatever they are,
and are multiples of 2^-60; all that is claimed of them is computed without rounding.

A unit whose input has one sign on a box is 0 or z there, and on every part of that box: it is
multiplied out of the forms of later units (`View`), once for all leaves below. What is left to be
bounded at a leaf are the few units that still have both signs.

Where unit cuts fixed the signs of some inputs, their lines are exact, and Σ μ·g + Σ β_i·(±z_i) with
β ≥ 0 is bounded instead: on that part of the box every term ±z_i is ≥ 0, so Σ μ·g is not larger.
Where level cuts bound V, supports (levels.py) add to a form over y what makes its maximum smaller.

Exponents. Inputs of stage k are integers times 2^E_k, E_0 ≥ E_1 ≥ …, and so are the units' values;
coefficients between them are integers. Each stage that a form is substituted through makes its
coefficients 60 bits longer; bounds of the inputs of stage k, exact too, have 2^(E_k − 60·k).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import lshift, mul
from types import MappingProxyType
from typing import Any, NamedTuple

from .blocks import Row
from .exact import Ints, Vector, Work, scaled, shifted
from .limits import HIGHEST

BITS = 60
ONE = 1 << BITS
Box = tuple[Ints, Ints]  # lower and upper ends
Signs = Mapping[int, bool]  # by unit: whether its input is ≥ 0, or else ≤ 0
_NONE: Mapping[int, Any] = MappingProxyType({})
Support = tuple[Vector, Fraction] | None  # slopes and a constant, to be added to a form over y
Line = tuple[int, int, int, int, tuple[int, int]]  # lower, upper, drop, lift; the ends
Known = list[tuple[int, Ints, int]]  # a place of a view, the form of its value, and the constant


class Layer(NamedTuple):
    """Units of a stage that are not multiplied out; inputs as forms over y and earlier units."""

    units: Ints
    forms: list[Ints]
    constants: Ints


class View(NamedTuple):
    """The stages on a part of the box; *places* are y, then the units of all layers."""

    layers: list[Layer]
    outputs: Layer

    @property
    def size(self) -> int:
        return sum(len(layer.units) for layer in self.layers)


class Open(NamedTuple):
    """A unit that is not multiplied out, and the lines around it."""

    unit: int
    form: Ints
    constant: int
    lower: int  # slopes
    upper: int
    drop: int  # the lower line's value at z = 0, of ReLUs 0
    lift: int  # the upper line's
    ends: tuple[int, int]  # the bounds of its input


class Leaf(NamedTuple):
    """All that a leaf knows or chooses."""

    weights: Sequence[int] = ()  # μ of the outputs, then β of the signs
    signs: Signs = _NONE
    slopes: Mapping[int, int] = _NONE  # lower slopes q/255 by unit, for the last substitution
    thetas: Mapping[int, Ints] = _NONE  # by unit of V∘F: what is taken of each unit of V
    supports: Mapping[int, Sequence[Support]] = _NONE  # by unit: of its upper and lower bound
    own: Support = None  # of the outputs


class Relaxation:
    """Upper bounds of a row's outputs over boxes whose corners are integers of one exponent.

    `kept`: units that are never multiplied out, as leaves speak of their inputs; `couples`: whether
    leaves may couple units; `longest`: bits of the numbers that they choose.
    """

    def __init__(
        self, row: Row, exp: int, work: Work, kept: set[int], couples: bool, longest: int
    ) -> None:
        self.row, self.box_exp, self.work, self.kept = row, exp, work, set(kept)
        if couples:
            self.kept.update(range(row.gauge - row.coupled, row.gauge + row.coupled))
        stages = [*row.stages, row.outputs]
        self.exps: Ints = []
        exps = [exp] * row.n  # of all places
        layers = []
        for k, (weight, bias) in enumerate(stages):
            spare = BITS if couples and k + 2 >= len(stages) else 0  # θ is a multiple of 2^-60
            exp = min(weight.exp + exp, bias.exp) - spare
            by = [weight.exp + own - exp for own in exps]
            forms = [list(map(lshift, line, by)) for line in weight.rows]
            first = len(exps) - row.n
            units = list(range(first, first + weight.height))
            layers.append(Layer(units, forms, bias.at(exp)))
            self.exps.append(exp)
            exps += [exp] * weight.height
        self.root = View(layers[:-1], layers[-1])
        self.exp = exp - BITS * len(row.stages)
        parts = [part for stage in stages for part in stage]
        self.bits = longest + sum(part.bits + part.exp for part in parts) - self.exp
        self.bits += HIGHEST * len(row.stages) if row.squares else 0

    def narrowed(self, view: View, box: Box, signs: Signs) -> View:
        """The view of a part of the box, what has one sign there multiplied out."""
        return self._relaxed(view, box, Leaf(signs=signs), view.outputs, None)[0]

    def upper(self, view: View, box: Box, leaf: Leaf) -> Fraction:
        """At least the largest value of Σ μ·g on the part of a box with the given signs."""
        wanted = self._wanted(view, leaf)
        needed = None if leaf.thetas else self._needed(view, wanted.forms[0], leaf.signs)
        (_, outputs), stages = self._relaxed(view, box, leaf, wanted, needed)
        if leaf.slopes:
            stages = [
                [self._sloped(line, k, leaf) for line in stage] for k, stage in enumerate(stages)
            ]
        pulls = {}
        betas = leaf.weights[len(view.outputs.forms) :]
        for (unit, active), beta in zip(leaf.signs.items(), betas, strict=True):
            pulls[unit] = beta if active else -beta
        most = self._most(outputs.forms[0], outputs.constants[0], stages, box, leaf.own, pulls)
        return scaled(most, self.exp)

    def _sloped(self, line: Open, k: int, leaf: Leaf) -> Open:
        """The lower line that a leaf chooses for a unit of stage k."""
        slope = leaf.slopes.get(line.unit)
        if slope is None:
            return line
        if line.unit in self.row.squares:
            exp = self.exps[k] - BITS * k
            lower, drop = _tangent(*line.ends, exp, Fraction(slope, 255))
            return line._replace(lower=lower, drop=drop)
        # only where it has a lift has it both signs
        return line._replace(lower=(slope << BITS) // 255) if line.lift else line

    def _wanted(self, view: View, leaf: Leaf) -> Layer:
        """Σ μ·g over the places of a view; a coupled unit leaves θ times its weight to V."""
        _, forms, constants = view.outputs
        form = [sum(map(mul, leaf.weights, column)) for column in zip(*forms, strict=True)]
        places = [unit for layer in view.layers for unit in layer.units]
        for unit, theta in leaf.thetas.items():
            outer = form[self.row.n + places.index(unit)]
            for i, pull in enumerate(theta):
                form[self.row.n + places.index(self.row.gauge + i)] += pull * (outer >> BITS)
        return Layer([0], [form], [sum(map(mul, leaf.weights, constants))])

    def _needed(self, view: View, form: Ints, signs: Signs) -> set[int]:
        """The places that a form, or the input of a unit with a given sign, depends on."""
        found = {place for place, c in enumerate(form) if c}
        first = self.row.n + view.size
        for units, forms, _ in reversed(view.layers):
            first -= len(units)
            for place, (unit, own) in enumerate(zip(units, forms, strict=True), first):
                if place in found or unit in signs:
                    found |= {place, *(j for j, c in enumerate(own) if c)}
        return found

    def _relaxed(
        self, view: View, box: Box, leaf: Leaf, outputs: Layer, needed: set[int] | None
    ) -> tuple[View, list[list[Open]]]:
        """The lines of all units whose sign is not known, and the view without the others."""
        left = list(range(self.row.n))  # places whose value is not known as a form
        known: Known = []
        layers: list[Layer] = []
        stages: list[list[Open]] = []
        first = products = self.row.n  # products: of substituting a form
        for k, given in enumerate(view.layers):
            units, forms, constants = self._multiplied_out(given, left, known)
            if k + 1 == len(view.layers):
                self._couple(units, forms, constants, leaf.thetas)
            self.work.spend(2 * len(units) * products, self.bits)
            stage: list[Open] = []
            settled: Known = []
            opened = []
            places = range(first, first + len(units))
            for place, unit, form, constant in zip(places, units, forms, constants, strict=True):
                if needed is not None and place not in needed:
                    continue  # every form that is left has zero there
                ends = self._bounds(form, constant, stages, box, leaf, unit)
                if unit in self.row.squares:
                    line = _square_line(*ends, self.exps[k] - BITS * k)
                elif unit in self.kept or ends[0] < 0 < ends[1]:
                    line = _line(*ends)
                elif ends[0] >= 0:
                    settled.append((place, form, constant))
                    continue
                else:
                    continue
                opened.append(place)
                stage.append(Open(unit, form, constant << BITS * k, *line))
            kept = [line.unit for line in stage], [line.form for line in stage]
            layers.append(Layer(*kept, [line.constant >> BITS * k for line in stage]))
            products += len(stage) * (len(left) + 3)
            left += opened
            known += settled
            stages.append(stage)
            first += len(units)
        self.work.spend(2 * products, self.bits)
        return View(layers, self._multiplied_out(outputs, left, known)), stages

    def _multiplied_out(self, layer: Layer, left: Ints, known: Known) -> Layer:
        """A layer over the places of a view as one over those that are left."""
        units, forms, constants = layer
        self.work.spend(len(forms) * (len(known) + 1) * (len(left) + 1), self.bits)
        found, totals = [], []
        for form, total in zip(forms, constants, strict=True):
            over = [form[place] for place in left]
            for place, own, constant in known:
                if c := form[place]:
                    over[: len(own)] = [a + c * b for a, b in zip(over, own, strict=False)]
                    total += c * constant
            found.append(over)
            totals.append(total)
        return Layer(units, found, totals)

    def _couple(
        self, units: Ints, forms: list[Ints], constants: Ints, thetas: Mapping[int, Ints]
    ) -> None:
        """Replace the inputs a of coupled units by a − Σ θ_i·b_i, b those of V."""
        start = units.index(self.row.gauge) if thetas else 0
        for unit, theta in thetas.items():
            k = units.index(unit)
            for i, pull in enumerate(theta, start):
                forms[k] = [a - pull * (b >> BITS) for a, b in zip(forms[k], forms[i], strict=True)]
                constants[k] -= pull * (constants[i] >> BITS)

    def _bounds(
        self, form: Ints, constant: int, stages: list[list[Open]], box: Box, leaf: Leaf, unit: int
    ) -> tuple[int, int]:
        """Bounds of a unit's input, by substitution both ways, on the side that its sign is on."""
        up, low = leaf.supports.get(unit, (None, None))
        most = self._most(form, constant, stages, box, up)
        if most <= 0 and unit not in self.row.squares:
            return -1, most
        if unit in leaf.signs:
            return (0, most) if leaf.signs[unit] else (-1, 0)
        return -self._most([-c for c in form], -constant, stages, box, low), most

    def _most(
        self,
        form: Ints,
        constant: int,
        stages: list[list[Open]],
        box: Box,
        support: Support,
        pulls: Mapping[int, int] = _NONE,
    ) -> int:
        """The maximum over the box of a form, substituted backwards to one over y that is nowhere
        smaller; `pulls` are multiples of inputs to be added, to the outputs only."""
        exp = self.exps[len(stages)]
        skipped = 0  # bits by which the coefficients are shorter than if no stage were left out
        constant <<= BITS * len(stages)
        for k in range(len(stages) - 1, -1, -1):
            stage = stages[k]
            start = len(form) - len(stage)
            own, form = form[start:], form[:start]
            if not any(own) and not pulls:
                skipped += BITS
                continue
            by = self.exps[k] - exp + BITS * (len(stages) - k)  # with pulls no stage is left out
            form = [c << BITS for c in form]
            for c, line in zip(own, stage, strict=True):
                pull = pulls.get(line.unit, 0) << by if pulls else 0
                if not c and not pull:
                    continue
                slope, shift = (line.upper, line.lift) if c > 0 else (line.lower, line.drop)
                sloped = c * slope + pull
                constant += (c * shift + sloped * line.constant) << skipped
                form = [a + sloped * b for a, b in zip(form, line.form, strict=True)]
        if support is None:
            return (highest(form, *box) << skipped) + constant
        exp -= BITS * len(stages)
        total = Vector(shifted(form, skipped), exp - self.box_exp) + support[0]
        most = scaled(highest(total.ints, *box), total.exp + self.box_exp) + support[1]
        return constant + Vector.of([most]).at(exp)[0]  # or it is refused: nothing is rounded


def highest(form: Ints, low: Ints, high: Ints) -> int:
    """The maximum of a linear form over a box."""
    return sum([c * (b if c > 0 else a) for c, a, b in zip(form, low, high, strict=True)])


def _line(least: int, most: int) -> Line:
    """The two lines around a ReLU whose input has these bounds."""
    if least >= 0 or most <= 0:
        slope = ONE if least >= 0 else 0
        return slope, slope, 0, 0, (least, most)
    width = most - least
    slope = (ONE >> 1) + ((most + least) << (BITS + 2)) // width
    chord = -((-most << BITS) // width)  # rounded up
    return min(max(slope, 0), ONE), chord, 0, -chord * least, (least, most)


def _square_line(least: int, most: int, exp: int) -> Line:
    """The chord and the middle tangent of a square whose input has these bounds, times 2^exp.

    Its value is z²: in units of z times 2^exp, hence the shifts."""
    if max(abs(least), abs(most)).bit_length() + exp > HIGHEST:
        raise ArithmeticError("the values of the network are too large")
    slope, drop = _tangent(least, most, exp, Fraction(1, 2))
    chord = _moved(least + most, exp + BITS)
    lift = max(_moved(end * end, exp + BITS) - chord * end for end in (least, most))
    return slope, chord, drop, lift, (least, most)


def _tangent(least: int, most: int, exp: int, place: Fraction) -> tuple[int, int]:
    """A line below a square: its slope a, and −a²/4."""
    at = 2 * (least * place.denominator + (most - least) * place.numerator)
    slope = _moved(at, exp + BITS) // place.denominator
    return slope, -_moved(slope * slope, -exp - BITS - 2)


def _moved(value: int, by: int) -> int:
    """value·2^by, rounded up."""
    return value << by if by >= 0 else -(-value >> -by)


def rounded(floats: Sequence[float]) -> Vector:
    """Choices from the file (multipliers, θ) as multiples of 2^-60, rounded down."""
    return Vector([int(Fraction(value) * ONE // 1) for value in floats], -BITS)
