"""From blocks to the stages of the linear relaxation (proof format, 7).

N is a graph of blocks, each an affine map of the input and of earlier blocks, with a ReLU or
without. The blocks that some inequalities depend on become stages: a block without a ReLU is
multiplied out, and a ReLU's value that is needed later goes along as relu(x) = x.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from graphkeel.checker.exact import Matrix, Vector, Work, folded
from graphkeel.checker.problem import Row, Stage
from graphkeel.checker.reading import Rejected

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
    owns: list[int]  # by stage: how many units of its own stand in front of those


def forms_of(terms: list[tuple[int, Matrix]], bias: Vector) -> list[Form]:
    """The inputs of a block's units.

    Args:
        terms: (source, weight of shape (units, width of the source)).
    """
    forms: list[Form] = [{None: constant} for constant in bias.fractions()]
    for source, weight in terms:
        for i, form in enumerate(forms):
            for j, number in enumerate(weight.row(i).fractions()):
                if number:
                    form[source, j] = form.get((source, j), Fraction(0)) + number
    return forms


def row_of(shape: Shape, weights: list[int]) -> Row:
    """Σ μ_j·s_j.

    Args:
        shape: of the inequalities that a leaf uses.
    """
    final, constant = Vector([0] * len(shape.finals[0][0])), Fraction(0)
    for mu, (form, own) in zip(weights, shape.finals, strict=True):
        final, constant = final + form.times(Fraction(mu)), constant + mu * own
    places = tuple((k, 0, stage.relus) for k, stage in enumerate(shape.stages))
    return Row("", shape.stages, final, constant, firsts=places)


def shape_of(blocks: list[Block], rows: list[Form], n: int, work: Work) -> Shape:
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
    before, stages, units, owns = y, [], [], []
    for level in sorted(levels, reverse=True):
        own = levels[level]
        later = finals + [f for k, made in levels.items() if k < level for _, f in made]
        along = [u for u in before if u[0] and any(u in form for form in later)]
        inputs = [form for _, form in own] + [{u: Fraction(1)} for u in (*along, *y)]
        bias = Vector.of([form.get(None, Fraction(0)) for form in inputs])
        stages.append(Stage(_over(inputs, before), bias, len(own) + len(along)))
        units += [unit for unit, _ in own] + [None] * len(along)
        owns.append(len(own))
        before = [unit for unit, _ in own] + along + y
    lines = _over(finals, before)
    ends = [(lines.row(j), form[None]) for j, form in enumerate(finals)]
    return Shape(stages, ends, units, owns)


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
    return Matrix(folded(flat.ints, len(units)), flat.exp)
