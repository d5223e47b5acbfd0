"""A property of a network, proved: no input of a case's box has all s_j ≥ 0 (proof format, 6).

    s(x) = A·x + B·N(x) + c, one line for each inequality of the case.

N is a graph of blocks, each an affine map of the input and of earlier blocks, with a ReLU or
without. A leaf carries μ ≥ 0, not all 0: where Σ μ_j·s_j < 0 on its box, not all s_j are ≥ 0. For
every set of inequalities that leaves use, the blocks they depend on become stages: a block without
a ReLU is multiplied out, and a ReLU's value that is needed later goes along as relu(x) = x.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from .exact import Ints, Matrix, Vector, Work
from .problem import Row, Stage
from .reading import Rejected, Unreadable, array, floats, items, mapping, matrix, vector
from .relaxation import Lines, RowBound, highest
from .trees import STORED, Tree, _Leaves, _products

_REMARKS = frozenset({"sha256", "provenance"})
_DEAR = 100_000  # a weight is counted as so many products: as a fraction it takes memory
_TREE = {"axis", "cut", "slopes", "multipliers"}
Unit = tuple[int, int]  # of a value (0: the input): its number, and the place in it
Form = dict[Unit | None, Fraction]  # a number for each unit, and None for the constant


class Block(NamedTuple):
    """Σ weight·value(source) + bias, then a ReLU or not; a unit's inputs as a form."""

    forms: list[Form]
    relu: bool


class Shape(NamedTuple):
    """The stages for some inequalities: their forms over the last stage, and each stage's units."""

    stages: list[Stage]
    finals: list[tuple[Vector, Fraction]]
    units: list[Unit | None]  # None: a value that goes along


class _Bound(RowBound):
    """Inputs that mix ReLUs are bounded by substitution, never by intervals: as the search does."""

    def _bounds(
        self,
        k: int,
        unit: int,
        lines: list[Lines],
        box: tuple[Ints, Ints],
        outputs: tuple[Ints, Ints],
    ) -> tuple[int, int]:
        row, bias = self.stages[k].rows[unit], self.stages[k].bias[unit]
        along = bias == 0 and sum(map(bool, row)) == 1
        if k == 0 or along or not any(row[: self.stages[k - 1].relus]):
            return super()._bounds(k, unit, lines, box, outputs)
        above, lift = self._substituted(row, k - 1, lines, {})
        below, drop = self._substituted([-value for value in row], k - 1, lines, {})
        return bias - highest(below, *box) - drop, bias + highest(above, *box) + lift


def check_property(content: dict[str, Any], work: Work) -> int:
    """Re-prove every case; the number of leaves."""
    top = mapping(content, "the proof", {"format", "version", "network", "cases"}, _REMARKS)
    network = mapping(top["network"], "network", {"inputs", "blocks"})
    if type(network["inputs"]) is not int or not isinstance(top["cases"], list):
        raise Unreadable("inputs must be a number, and cases a list")
    widths = [network["inputs"]]
    blocks: list[Block] = [Block([], False)]
    for value in items(network["blocks"], "blocks", most=10_000):
        mapping(value, "a block", {"terms", "bias", "relu"})
        if type(value["relu"]) is not bool:
            raise Unreadable("relu must be true or false")
        bias = vector(value["bias"], "a bias")
        terms = [
            _term(term, widths, len(bias), work) for term in items(value["terms"], "terms", 10_000)
        ]
        blocks.append(Block(_forms(terms, bias), value["relu"]))
        widths.append(len(bias))
    return sum(_check_case(case, blocks, widths, work) for case in top["cases"])


def _term(value: Any, widths: list[int], height: int, work: Work) -> tuple[int, Matrix]:
    content = mapping(value, "a term", {"source", "weight"})
    source, weight = content["source"], matrix(content["weight"], "a weight")
    known = type(source) is int and 0 <= source < len(widths)
    if not known or (weight.height, weight.width) != (height, widths[source]):
        raise Unreadable("the blocks do not fit together")
    work.spend(height * weight.width * _DEAR, -weight.exp)
    return source, weight


def _forms(terms: list[tuple[int, Matrix]], bias: Vector) -> list[Form]:
    forms: list[Form] = [{None: constant} for constant in bias.fractions()]
    for source, weight in terms:
        for i, form in enumerate(forms):
            for j, number in enumerate(weight.row(i).fractions()):
                if number:
                    form[source, j] = form.get((source, j), Fraction(0)) + number
    return forms


def _check_case(value: Any, blocks: list[Block], widths: list[int], work: Work) -> int:
    case = mapping(value, "a case", {"lower", "upper", "weight", "constant", "tree"})
    inputs, outputs = widths[0], widths[-1]
    lower, upper = (vector(case[name], name, inputs) for name in ("lower", "upper"))
    weight, constant = matrix(case["weight"], "weight"), vector(case["constant"], "constant")
    if (weight.height, weight.width) != (len(constant), inputs + outputs):
        raise Unreadable("the inequalities do not fit the network")
    if min((upper - lower).ints) < 0:
        raise Unreadable("the box is empty")
    places = [(0, i) for i in range(inputs)] + [(len(widths) - 1, i) for i in range(outputs)]
    rows = [dict(zip(places, weight.row(i).fractions(), strict=True)) for i in range(weight.height)]
    forms = [{**row, None: c} for row, c in zip(rows, constant.fractions(), strict=True)]
    return _check_tree(case["tree"], lower, upper, blocks, forms, work)


def _check_tree(
    value: Any, lower: Vector, upper: Vector, blocks: list[Block], forms: list[Form], work: Work
) -> int:
    content = mapping(value, "a tree", _TREE)
    axis, _ = array(content["axis"], "axis", 1, ("<i2",))
    cut, _ = floats(content["cut"], "cut", 1)
    slopes, (stored, width) = array(content["slopes"], "slopes", 2, ("|u1",))
    flat, (leaves, count) = array(content["multipliers"], "multipliers", 2, ("<i4",))
    n = len(lower)
    relus = [
        (b, i) for b, block in enumerate(blocks) if block.relu for i in range(len(block.forms))
    ]
    wanted = [sum(a >= 0 for a in axis), axis.count(STORED), len(relus), sum(a < 0 for a in axis)]
    if [len(cut), stored, width, leaves] != wanted or count != len(forms):
        raise Rejected("the numbers of nodes, cuts, slopes and multipliers do not fit together")
    every = lower.joined(upper).joined(Vector.of(cut))
    box = (every.ints[:n], every.ints[n : 2 * n], every.ints[2 * n :])
    tree = Tree(*box, [], 0, every.exp, list(axis), [], [], [])
    nothing = Row("", [], Vector([0] * n), Fraction(0))
    shapes: dict[tuple[int, ...], Shape] = {}
    line = 0
    for k, (kind, low, high, _) in enumerate(
        _Leaves(nothing, tree, Fraction(0), False, "a tree")._parts()
    ):
        weights = flat[k * count : (k + 1) * count]
        used = tuple(j for j, mu in enumerate(weights) if mu)
        if not used or min(weights) < 0 or kind < STORED or kind == -1:
            raise Rejected("a leaf needs multipliers ≥ 0 that are not all 0, and a known kind")
        if used not in shapes:
            shapes[used] = _shape(blocks, [forms[j] for j in used], n, work)
        shape = shapes[used]
        row = _row(shape, [weights[j] for j in used])
        bound = _Bound(row, tree.exp)
        work.spend(_products(row, 1), -bound.exp)
        choices: list[int] = []
        if kind == STORED:
            chosen = dict(zip(relus, slopes[line * width : (line + 1) * width], strict=True))
            choices = [0 if unit is None else chosen[unit] for unit in shape.units]
            line += 1
        if bound.upper(low, high, choices) >= 0:
            raise Rejected("the bound of a leaf does not show what is claimed of it")
    return leaves


def _row(shape: Shape, weights: list[int]) -> Row:
    """Σ μ_j·s_j."""
    final, constant = Vector([0] * len(shape.finals[0][0])), Fraction(0)
    for mu, (form, own) in zip(weights, shape.finals, strict=True):
        final, constant = final + form.times(Fraction(mu)), constant + mu * own
    places = tuple((k, 0, stage.relus) for k, stage in enumerate(shape.stages))
    return Row("", shape.stages, final, constant, firsts=places)


def _shape(blocks: list[Block], rows: list[Form], n: int, work: Work) -> Shape:
    """The stages of what some inequalities depend on, each ReLU as late as it can be."""
    after: dict[Unit, int] = {}  # of the units needed: how many ReLUs come after them, at most
    _note(rows, 0, after)
    for b in range(len(blocks) - 1, 0, -1):
        for i, form in enumerate(blocks[b].forms):
            if (b, i) in after:
                _note([form], after[b, i] + blocks[b].relu, after)
    exact: dict[Unit, Form] = {(0, i): {(0, i): Fraction(1)} for i in range(n)}
    levels: dict[int, list[tuple[Unit, Form]]] = {}  # ReLUs by how many come after them
    for b in range(1, len(blocks)):
        for i, form in enumerate(blocks[b].forms):
            if (b, i) not in after:
                continue
            exact[b, i] = _substituted(form, exact, work)
            if blocks[b].relu:
                levels.setdefault(after[b, i], []).append(((b, i), exact[b, i]))
                exact[b, i] = {(b, i): Fraction(1)}
    finals = [_substituted(row, exact, work) for row in rows]
    y: list[Unit] = [(0, i) for i in range(n)]
    before, stages, units = y, [], []
    for level in sorted(levels, reverse=True):
        own = levels[level]
        later = finals + [f for k, made in levels.items() if k < level for _, f in made]
        along = [u for u in before if u[0] and any(u in form for form in later)]
        inputs = [form for _, form in own] + [{u: Fraction(1)} for u in (*along, *y)]
        bias = Vector.of([form.get(None, Fraction(0)) for form in inputs])
        stages.append(Stage(_over(inputs, before), bias, len(own) + len(along)))
        units += [unit for unit, _ in own] + [None] * len(along)
        before = [unit for unit, _ in own] + along + y
    lines = _over(finals, before)
    ends = [(lines.row(j), form.get(None, Fraction(0))) for j, form in enumerate(finals)]
    return Shape(stages, ends, units)


def _note(forms: list[Form], relus: int, after: dict[Unit, int]) -> None:
    for form in forms:
        for unit, number in form.items():
            if unit is not None and number:
                after[unit] = max(after.get(unit, 0), relus)


def _substituted(form: Form, exact: dict[Unit, Form], work: Work) -> Form:
    """A form over values as one over ReLUs and inputs."""
    total: Form = {None: form[None]}
    for unit, number in form.items():
        parts = exact[unit] if unit is not None and number else {}
        work.spend(len(parts) * 100, max(map(_bits, parts.values()), default=0))
        for part, factor in parts.items():
            total[part] = total.get(part, Fraction(0)) + number * factor
    return total


def _bits(number: Fraction) -> int:
    return number.numerator.bit_length() + number.denominator.bit_length()


def _over(forms: list[Form], units: list[Unit]) -> Matrix:
    """Forms as the rows of a matrix."""
    if any(set(form) - {None, *units} for form in forms):
        raise Rejected("a value is needed that no longer goes along")
    flat = Vector.of([form.get(unit, Fraction(0)) for form in forms for unit in units])
    width = len(units)
    return Matrix([flat.ints[i : i + width] for i in range(0, len(flat), width)], flat.exp)
