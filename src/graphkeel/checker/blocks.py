"""Networks as blocks, and what the linear relaxation is made from: the stages of a row.

Value 0 is the input y; every block is an affine map of earlier values, with a ReLU after it,
squared, or neither. A
row is a function g, or several, over them, that must satisfy g(y) ≤ 0 (strict: < 0):

    g(y) = final·x + constant,  x being y and the units, the ReLUs and squares that g depends on.

Units are numbered stage by stage, each in as late a stage as it can be, the blocks of a stage in
their order; a block that is neither ReLU nor square is multiplied out. So V(F(y)) − ρ·V(y) is one
network, and a linear relaxation of it sees what its two parts have in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from .exact import Matrix, Vector, Work
from .limits import MOST_NUMBERS


class Block(NamedTuple):
    """Σ weight·value(source) + bias, then a ReLU, its square, or neither."""

    terms: list[tuple[int, Matrix]]
    bias: Vector
    relu: bool = False
    square: bool = False

    @property
    def is_units(self) -> bool:
        return self.relu or self.square


class Stage(NamedTuple):
    """Units that do not read each other; weights of y, then of the units of all stages before."""

    weight: Matrix
    bias: Vector


@dataclass(frozen=True)
class Row:
    """Functions of one network; what is shown of them, and where."""

    n: int
    stages: list[Stage]
    outputs: Stage  # g over y and all units; where several, each leaf takes a sum of them
    sloped: tuple[int | None, ...] = ()  # units that leaves store slopes of; None: not needed
    squares: frozenset[int] = frozenset()  # units that are squares; the others are ReLUs
    name: str = ""
    strict: bool = True
    weighted: bool = True  # every leaf says which sum of the outputs it takes
    avoids_hole: bool = False  # its part of D is D without the hole
    side: int | None = None  # its part of D is r or more away from Y on this side (`clearance`)
    coupled: int = 0  # units of V, where the networks are V∘F and V with one hidden layer
    held: int = 0  # units of V behind all others, V with one hidden layer
    share: Fraction = Fraction(0)  # g has −share·V of these

    @property
    def units(self) -> int:
        return sum(stage.weight.height for stage in self.stages)

    @property
    def gauge(self) -> int:
        """The first unit of V; those of V∘F, where `coupled`, stand right before."""
        return self.units - self.held

    def output(self, index: int) -> Stage:
        weight, bias = self.outputs
        return Stage(Matrix([weight.rows[index]], weight.exp), Vector([bias.ints[index]], bias.exp))

    def without_gauge(self) -> "Row":
        """The row with a second output, g without the units of V."""
        weight, bias = self.outputs
        end = weight.width - self.held
        lines = [*weight.rows, weight.rows[0][:end] + [0] * self.held]
        return replace(self, outputs=Stage(Matrix(lines, weight.exp), bias.joined(bias)))


def row_of(blocks: list[Block], outputs: Block, n: int, sloped: Sequence[int], work: Work) -> Row:
    """The row of an affine map of a network's values; `sloped` are values whose units leaves store
    slopes of."""
    every = [Block([], Vector([])), *blocks, outputs]
    after = {len(blocks) + 1: 0}  # of the values needed: how many units come after them, at most
    for number in range(len(blocks) + 1, 0, -1):
        for source, _ in every[number].terms if number in after else []:
            least = after[number] + every[number].is_units
            after[source] = max(after.get(source, 0), least)
    found = sorted(number for number in after if every[number].is_units)
    found.sort(key=lambda number: -after[number])
    places = {0: 0}  # where the values that are no sums stand: y, then the units
    squares: set[int] = set()
    width = n
    for number in found:
        places[number] = width
        width += len(every[number].bias)
        squares.update(range(places[number] - n, width - n) if every[number].square else ())
    if width**2 > MOST_NUMBERS:
        raise ArithmeticError("the networks are too large")
    made: dict[int, Stage] = {}
    for number in sorted(set(after) - {0}):
        made[number] = _over_places(every[number], places, made, width, work)
    stages = []
    for level in sorted({after[number] for number in found}, reverse=True):
        here = [number for number in found if after[number] == level]
        stages.append(_stacked([made[number] for number in here], places[here[0]]))
    units: list[int | None] = []
    for number in sloped:
        first = places.get(number)
        count = len(every[number].bias)
        units += [None] * count if first is None else range(first - n, first - n + count)
    return Row(n, stages, made[len(blocks) + 1], tuple(units), frozenset(squares))


def _over_places(
    block: Block, places: dict[int, int], made: dict[int, Stage], width: int, work: Work
) -> Stage:
    """A block over y and the units."""
    total = Matrix([[0] * width for _ in block.bias.ints])
    bias = block.bias
    for source, weight in block.terms:
        if source in places:
            before, behind = places[source], width - places[source] - weight.width
            placed = [[0] * before + line + [0] * behind for line in weight.rows]
            total = total + Matrix(placed, weight.exp)
        else:
            work.spend(weight.height * weight.width * width, weight.bits + made[source].weight.bits)
            total = total + weight @ made[source].weight
            bias = bias + weight.apply(made[source].bias)
    return Stage(total, bias)


def _stacked(parts: list[Stage], width: int) -> Stage:
    """Parts of one stage, over what stands before it."""
    exp = min(part.weight.exp for part in parts)
    lines = [line for part in parts for line in part.weight.at(exp)]
    if any(any(line[width:]) for line in lines):
        raise ArithmeticError("a unit reads one that does not come before it")
    bias = Vector([])
    for part in parts:
        bias = bias.joined(part.bias)
    return Stage(Matrix([line[:width] for line in lines], exp), bias)
