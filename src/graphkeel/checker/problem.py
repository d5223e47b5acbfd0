"""The question about one class, and its conditions as rows (proof format, 1).

A row is a function g that must satisfy g(y) ≤ 0, or < 0 where strict, on its part of the box D:

    g(y) = final·x + constant,  x the last of some layers over y.

Layers of several networks over the same y are stacked into one, aligned at their ends; y itself
goes along as units without a ReLU. So V(F(y)) − ρ·V(y) is one network, and a linear relaxation of
it sees what its two parts have in common.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from .exact import Matrix, Vector, scaled, shifted
from .limits import MOST_NUMBERS
from .networks import Layer, Network, value_at
from .reading import Unreadable, mapping, number, vector

SEARCHED = ("positivity", "decrease", "invariance")
_ARRAYS = ("lower", "upper", "equilibrium")
_NUMBERS = ("hole_radius", "rho", "positivity", "delta", "margin")


@dataclass(frozen=True)
class Problem:
    """The loop F and V, the box D, Y, the hole's radius r (sup norm), ρ, c, δ and γ."""

    label: int
    forward: Network
    lyapunov: Network
    lower: Vector
    upper: Vector
    equilibrium: Vector
    radius: Fraction
    rho: Fraction
    positivity: Fraction
    delta: Fraction
    margin: Fraction

    @property
    def n(self) -> int:
        return len(self.equilibrium)

    def box(self) -> list[Fraction]:
        """The lower ends of D, then the upper ones."""
        return self.lower.joined(self.upper).fractions()

    def clearance(self) -> Vector:
        """From Y to the box's upper ends, then to its lower ends."""
        return (self.upper - self.equilibrium).joined(self.equilibrium - self.lower)

    def distance(self, point: Vector) -> Fraction:
        """‖point − Y‖∞."""
        return max((point - self.equilibrium).each(abs).fractions())

    def in_box(self, point: Vector) -> bool:
        gaps = (point - self.lower).joined(self.upper - point)
        return min(gaps.ints) >= 0

    def gauge(self, point: Vector) -> Fraction:
        """V at a point."""
        return value_at(self.lyapunov, point).fractions()[0]


def read_problem(value: Any, label: Any, forward: Network, gauge: Network, where: str) -> Problem:
    """The question of a class about networks that were composed from the shipped weights."""
    content = mapping(value, where, {*_ARRAYS, *_NUMBERS})
    n = forward[-1].weight.height
    lower, upper, centre = (vector(content[name], f"{where}.{name}", n) for name in _ARRAYS)
    ends = (forward[0].weight.width, gauge[0].weight.width, gauge[-1].weight.height)
    if ends != (n, n, 1) or type(label) is not int or not 0 <= label < n:
        raise Unreadable(f"{where}: the loop, V and the class do not fit together")
    if min((upper - lower).ints) < 0:
        raise Unreadable(f"{where}: the box is empty")
    numbers = [Fraction(number(content[name], f"{where}.{name}")) for name in _NUMBERS]
    if not 0 < numbers[1] <= 1 or min(numbers) < 0:
        raise Unreadable(f"{where}: ρ must lie in (0, 1], and no number may be negative")
    return Problem(label, forward, gauge, lower, upper, centre, *numbers)


class Stage(NamedTuple):
    """A layer of stacked networks; its first `relus` units have a ReLU, the others are y."""

    weight: Matrix
    bias: Vector
    relus: int


@dataclass(frozen=True)
class Row:
    """One function g, to be shown ≤ 0 (strict: < 0)."""

    name: str
    stages: list[Stage]
    final: Vector
    constant: Fraction
    strict: bool = False
    avoids_hole: bool = False  # its part of D is D without the hole
    side: int | None = None  # its part of D is r or more away from Y on this side (`clearance`)
    firsts: tuple[tuple[int, int, int], ...] = ()  # first layers: (stage, first unit, units)
    coupled: int = 0  # units of V, where the networks are V∘F and V with one hidden layer
    held: int = 0  # units of V behind all others of the last stage, V with one hidden layer
    share: Fraction = Fraction(0)  # g has −share·V of these


def rows_of(problem: Problem, condition: str) -> list[Row]:
    """The rows of a searched condition, in the order of the format."""
    makers = {"decrease": _decrease, "positivity": _positivity, "invariance": _invariance}
    return makers[condition](problem)


def _decrease(problem: Problem) -> list[Row]:
    """V(F(y)) − ρ·V(y)."""
    first, last = problem.lyapunov[0], problem.forward[-1]
    seam = Layer(first.weight @ last.weight, first.apply(last.bias))
    after = [*problem.forward[:-1], seam, *problem.lyapunov[1:]]
    stack = _Stack([after[:-1], problem.lyapunov[:-1]], problem.n)
    outputs = [_output(after, 0), _output(problem.lyapunov, 0, -problem.rho)]
    units = first.weight.height if len(problem.lyapunov) == 2 else 0
    more: dict[str, Any] = {"coupled": units, "held": units, "share": problem.rho}
    strict = problem.rho == 1
    return [stack.row("decrease", outputs, strict=strict, avoids_hole=True, **more)]


def _positivity(problem: Problem) -> list[Row]:
    """−V(y), or c·|y_i − Y_i| − V(y) along both directions of every axis."""
    stack = _Stack([problem.lyapunov[:-1]], problem.n)
    outputs = [_output(problem.lyapunov, 0, Fraction(-1))]
    units = problem.lyapunov[0].weight.height if len(problem.lyapunov) == 2 else 0
    more: dict[str, Any] = {"held": units, "share": Fraction(1)}
    if problem.positivity == 0:
        return [stack.row("positivity", outputs, strict=True, avoids_hole=True, **more)]
    rows = []
    for axis, centre in enumerate(problem.equilibrium.fractions()):
        for sign, name, side in ((1, f"+{axis}", axis), (-1, f"-{axis}", problem.n + axis)):
            slope = sign * problem.positivity
            form = _unit(problem.n, axis).times(slope)
            more |= {"constant": -slope * centre, "side": side}
            rows.append(stack.row(name, outputs, form, **more))
    return rows


def _invariance(problem: Problem) -> list[Row]:
    """F_i − upper_i and lower_i − F_i."""
    stack = _Stack([problem.forward[:-1]], problem.n)
    rows = []
    n, ends = problem.n, problem.box()
    for axis in range(n):
        for name, sign, end in (
            (f"upper {axis}", 1, ends[n + axis]),
            (f"lower {axis}", -1, ends[axis]),
        ):
            output = _output(problem.forward, axis, Fraction(sign))
            rows.append(stack.row(name, [output], constant=-sign * end))
    return rows


def region_rows(problem: Problem, multipliers: list[Vector]) -> list[Row]:
    """F_k − F_c + γ + Σ_j λ_kj·(y_c − y_j − γ) for every k ≠ c, with λ ≥ 0: where class c leads by
    γ, what the multipliers add is not negative."""
    c, strict = problem.label, problem.margin == 0
    rivals = [k for k in range(problem.n) if k != c]
    stack = _Stack([problem.forward[:-1]], problem.n)
    own, start = _output(problem.forward, c)
    rows = []
    for k, pull in zip(rivals, multipliers, strict=True):
        rival, bias = _output(problem.forward, k)
        total = sum(pull.fractions(), Fraction(0))
        form = _unit(problem.n, c).times(total) - pull
        constant = problem.margin * (1 - total)
        output = (rival - own, bias - start)
        rows.append(stack.row(f"class {k}", [output], form, constant=constant, strict=strict))
    return rows


Output = tuple[Vector, Fraction]  # weights of a network's last hidden layer (or of y), and a bias


def _output(network: Network, index: int, factor: Fraction = Fraction(1)) -> Output:
    """One output of a network, times a number."""
    last = network[-1]
    bias = scaled(last.bias.ints[index], last.bias.exp)
    return last.weight.row(index).times(factor), factor * bias


def _unit(n: int, axis: int) -> Vector:
    return Vector([int(i == axis) for i in range(n)])


class _Stack:
    """Chains of hidden layers over y side by side, aligned at their ends, y behind them; rows that
    differ in their outputs only share one."""

    def __init__(self, chains: list[Network], n: int) -> None:
        self.chains = chains
        self.n = n
        self.stages: list[Stage] = []
        firsts: dict[int, tuple[int, int, int]] = {}
        places: dict[int, int] = {}  # where a chain's inputs begin among the previous outputs
        width, numbers = n, 0  # how many of these there are, the last n being y; weights in all
        for left in range(max(map(len, chains)), 0, -1):
            layers = {i: chain[-left] for i, chain in enumerate(chains) if len(chain) >= left}
            exp = min(layer.weight.exp for layer in layers.values())
            numbers += width * (n + sum(layer.weight.height for layer in layers.values()))
            if numbers > MOST_NUMBERS:
                raise ArithmeticError("the networks are too large")
            rows: list[list[int]] = []
            bias = Vector([])
            for i, layer in layers.items():
                firsts.setdefault(i, (len(self.stages), len(rows), layer.weight.height))
                start, places[i] = places.get(i, width - n), len(rows)
                end = width - start - layer.weight.width
                rows += [[0] * start + row + [0] * end for row in layer.weight.at(exp)]
                bias = bias.joined(layer.bias)
            relus = len(rows)
            rows += [shifted(_unit(width, width - n + i).ints, -exp) for i in range(n)]
            self.stages.append(Stage(Matrix(rows, exp), bias.joined(Vector([0] * n)), relus))
            width = relus + n
        self.firsts = tuple(place for _, place in sorted(firsts.items()))

    def row(self, name: str, outputs: list[Output], form: Vector | None = None, **more: Any) -> Row:
        """form·y + constant + an output of each chain; a chain without layers reads y itself."""
        parts = list(zip(self.chains, outputs, strict=True))
        affine = [weights for chain, (weights, _) in parts if not chain]
        final = sum(affine, Vector([0] * self.n) if form is None else form)
        for weights in [weights for chain, (weights, _) in reversed(parts) if chain]:
            final = weights.joined(final)
        constant = sum((bias for _, bias in outputs), more.pop("constant", Fraction(0)))
        return Row(name, self.stages, final, constant, firsts=self.firsts, **more)


def coupled_row(row: Row, thetas: list[list[int] | None], bits: int) -> Row:
    """The row with units of V∘F coupled to V: relu(a) ≤ Σ θ_i·relu(b_i) + relu(a − Σ θ_i·b_i).

    Unit k of V∘F becomes a_k − θ·b, and θ times its outer weight is added to those of V; sound for
    θ ≥ 0 (multiples of 2^-bits) and an outer weight ≥ 0.
    """
    last, units = row.stages[-1], row.coupled
    rows = [shifted(line, bits) for line in last.weight.rows]
    bias = shifted(last.bias.ints, bits)
    outer = shifted(row.final.ints, bits)
    for k, theta in enumerate(thetas):
        for i, pull in enumerate(theta or []):
            own = last.weight.rows[units + i]
            rows[k] = [a - pull * b for a, b in zip(rows[k], own, strict=True)]
            bias[k] -= pull * last.bias.ints[units + i]
            outer[units + i] += pull * row.final.ints[k]
    weight = Matrix(rows, last.weight.exp - bits)
    stage = Stage(weight, Vector(bias, last.bias.exp - bits), last.relus)
    final = Vector(outer, row.final.exp - bits)
    return replace(row, stages=[*row.stages[:-1], stage], final=final)
