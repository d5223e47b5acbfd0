"""Other squares for a row whose outputs are quadratic (proof format, 7).

Squares that no unit depends on are one way of writing polynomials of degree 2 over the *places*: y,
the other units, and 1. A case may write them with other squares, whose linear bounds are tighter.
Nothing of that is believed: the coefficients of the difference are computed, and with a bound for
every place on the box it is at most a small number, which is added to the outputs.
"""

from dataclasses import replace
from fractions import Fraction
from operator import mul
from typing import Any

from .blocks import Row, Stage
from .exact import Ints, Matrix, Vector, Work, scaled
from .limits import HIGHEST, MOST_NUMBERS
from .reading import Unreadable, matrix


def rewritten(row: Row, squares: Any, outputs: Any, root: Vector, work: Work) -> Row:
    """The row with the squares and outputs of a case in place of its own.

    `squares`: forms over y, the units that stay, as their slopes are stored, and 1; `outputs`: the
    same with the squares before the 1. `root`: the lower ends of the box, then the upper ones.
    """
    forms, sums = matrix(squares, "squares"), matrix(outputs, "outputs")
    loose = _loose(row)
    stay = [unit for unit in row.sloped if unit is not None and unit not in loose]
    size, count = row.n + len(stay), forms.height
    right = (row.outputs.weight.height, size + count + 1)
    if not loose or forms.width != size + 1 or (sums.height, sums.width) != right:
        raise Unreadable("the squares of a case do not fit its network")
    if right[1] ** 2 > MOST_NUMBERS:
        raise ArithmeticError("the squares are too many")
    kept = sorted(stay)
    order = [*range(row.n), *(row.n + stay.index(unit) for unit in kept), size]
    forms = _columns(forms, order)
    linear = _columns(sums, [*order[:-1], size + count])
    weights = _columns(sums, list(range(size, size + count)))
    places = [*range(row.n), *(row.n + unit for unit in kept)]
    reach = _reach(row, places, root)
    own = _own_forms(row, loose, places)
    rest = _columns(row.outputs.weight, [row.n + unit for unit in loose])
    straight = _with_bias(_columns(row.outputs.weight, places), row.outputs.bias)
    bias = []
    for j in range(sums.height):
        work.spend((count + len(loose) + 2) * (size + 1) ** 2, 4 * (forms.bits + own.bits))
        was = _polynomial(straight.row(j), rest.row(j), own)
        now = _polynomial(linear.row(j), weights.row(j), forms)
        bias.append(linear.row(j).fractions()[-1] + _largest(was - now, reach))
    plain = Stage(_columns(sums, [*order[:-1], *range(size, size + count)]), Vector.of(bias))
    last = list(range(size))
    stages = [*_kept_stages(row, places), Stage(_columns(forms, last), _column(forms, size))]
    numbers = [kept.index(unit) for unit in stay]
    made = range(len(kept), len(kept) + count)
    still = {kept.index(unit) for unit in kept if unit in row.squares}
    sloped = (*numbers, *made)
    return replace(
        row, stages=stages, outputs=plain, sloped=sloped, squares=frozenset({*still, *made})
    )


def _loose(row: Row) -> Ints:
    """The squares that no unit depends on."""
    read = {
        place - row.n
        for stage in row.stages
        for line in stage.weight.rows
        for place, c in enumerate(line)
        if c
    }
    return sorted(row.squares - read)


def _columns(matrix: Matrix, places: Ints) -> Matrix:
    return Matrix([[line[place] for place in places] for line in matrix.rows], matrix.exp)


def _column(matrix: Matrix, place: int) -> Vector:
    return Vector([line[place] for line in matrix.rows], matrix.exp)


def _with_bias(weight: Matrix, bias: Vector) -> Matrix:
    """A last column for the place that is 1."""
    exp = min(weight.exp, bias.exp)
    pairs = zip(weight.at(exp), bias.at(exp), strict=True)
    return Matrix([[*line, own] for line, own in pairs], exp)


def _kept_stages(row: Row, places: Ints) -> list[Stage]:
    """The stages without the loose squares, over the places."""
    stages = []
    unit = row.n
    for weight, bias in row.stages:
        width = weight.width
        here = [i for i in range(weight.height) if unit + i in places]
        unit += weight.height
        if here:
            lines = Matrix([weight.rows[i] for i in here], weight.exp)
            before = [place for place in places if place < width]
            stages.append(
                Stage(_columns(lines, before), Vector([bias.ints[i] for i in here], bias.exp))
            )
    return stages


def _own_forms(row: Row, loose: Ints, places: Ints) -> Matrix:
    """The inputs of the loose squares as forms over the places and 1."""
    every: list[Vector] = []
    for weight, bias in row.stages:
        padded = Matrix(
            [line + [0] * (row.n + row.units - weight.width) for line in weight.rows], weight.exp
        )
        whole = _with_bias(_columns(padded, places), bias)
        every += [whole.row(i) for i in range(whole.height)]
    exp = min(every[unit].exp for unit in loose)
    return Matrix([every[unit].at(exp) for unit in loose], exp)


def _reach(row: Row, places: Ints, root: Vector) -> Vector:
    """Bounds of the absolute values of the places on the box, and of 1."""
    ends = root.fractions()
    reach = [max(map(abs, pair)) for pair in zip(ends[: row.n], ends[row.n :], strict=True)]
    for weight, bias in row.stages:
        sizes = weight.each(abs).apply(Vector.of(reach)) + bias.each(abs)
        for size in sizes.fractions():
            if size.numerator.bit_length() - size.denominator.bit_length() > HIGHEST:
                raise ArithmeticError("the values of the network are too large")
            reach.append(size * size if len(reach) - row.n in row.squares else size)
    return Vector.of([*(reach[place] for place in places), Fraction(1)])


def _polynomial(linear: Vector, weights: Vector, forms: Matrix) -> Vector:
    """2·M, line by line, M the symmetric matrix of Σ weights·forms² and a linear form; the last
    place is 1."""
    width = forms.width
    scaled_ = [
        [2 * weight * c for c in line]
        for weight, line in zip(weights.ints, forms.rows, strict=True)
    ]
    columns = list(zip(*forms.rows, strict=True))
    others = list(zip(*scaled_, strict=True))
    products = [sum(map(mul, a, b)) for a in columns for b in others]
    edge = [0] * (width * width)
    for i, c in enumerate(linear.ints):
        edge[i * width + width - 1] += c
        edge[(width - 1) * width + i] += c
    return Vector(products, weights.exp + 2 * forms.exp) + Vector(edge, linear.exp)


def _largest(twice: Vector, reach: Vector) -> Fraction:
    """A bound of the absolute value of a polynomial where places are no larger than their reach."""
    width = len(reach)
    total = 0
    for i, own in enumerate(reach.ints):
        line = twice.ints[i * width : (i + 1) * width]
        total += own * sum(map(mul, map(abs, line), reach.ints))
    return scaled(total, twice.exp + 2 * reach.exp) / 2
