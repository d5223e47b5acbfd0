"""The question about one class, and its conditions as rows (proof format, 1).

A row is a function g that must satisfy g(y) ≤ 0, or < 0 where strict, on its part of the box D:

    g(y) = final·x + constant,  x the last of some layers over y.

Layers of several networks over the same y are stacked into one, aligned at their ends; y itself
goes along as units without a ReLU. So V(F(y)) − ρ·V(y) is one network, and a linear relaxation of
it sees what its two parts have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from .exact import Matrix, Vector, scaled, shifted
from .networks import Layer, Network, value_at
from .reading import Unreadable, mapping, number, vector

MOST_NUMBERS = 1 << 24  # of stacked networks, with their zeros
SEARCHED = ("positivity", "decrease", "invariance")
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

    def room(self) -> Vector:
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


def read_problem(
    value: Any, label: Any, forward: Network, lyapunov: Network, where: str
) -> Problem:
    """The question of a class about networks that were composed from the shipped weights."""
    content = mapping(value, where, {"lower", "upper", "equilibrium", *_NUMBERS})
    n = forward[-1].weight.height
    lower, upper, centre = (
        vector(content[name], f"{where}.{name}", n) for name in ("lower", "upper", "equilibrium")
    )
    ends = (forward[0].weight.width, lyapunov[0].weight.width, lyapunov[-1].weight.height)
    if ends != (n, n, 1) or type(label) is not int or not 0 <= label < n:
        raise Unreadable(f"{where}: the loop, V and the class do not fit together")
    if min((upper - lower).ints) < 0:
        raise Unreadable(f"{where}: the box is empty")
    numbers = [Fraction(number(content[name], f"{where}.{name}")) for name in _NUMBERS]
    if not 0 < numbers[1] <= 1 or min(numbers) < 0:
        raise Unreadable(f"{where}: ρ must lie in (0, 1], and no number may be negative")
    return Problem(label, forward, lyapunov, lower, upper, centre, *numbers)


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
    side: int | None = None  # its part of D is where this entry of `room` is used up by r or more
    firsts: tuple[tuple[int, int, int], ...] = ()  # first layers: (stage, first unit, units)
    coupled: int = 0  # units of V, where the networks are V∘F and V with one hidden layer


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
    strict = problem.rho == 1
    return [stack.row("decrease", outputs, strict=strict, avoids_hole=True, coupled=units)]


def _positivity(problem: Problem) -> list[Row]:
    """−V(y), or c·|y_i − Y_i| − V(y) along both directions of every axis."""
    stack = _Stack([problem.lyapunov[:-1]], problem.n)
    outputs = [_output(problem.lyapunov, 0, Fraction(-1))]
    if problem.positivity == 0:
        return [stack.row("positivity", outputs, strict=True, avoids_hole=True)]
    rows = []
    for axis, centre in enumerate(problem.equilibrium.fractions()):
        for sign, side in ((1, axis), (-1, problem.n + axis)):
            slope = sign * problem.positivity
            form = _unit(problem.n, axis).times(slope)
            name = f"{'+' if sign > 0 else '-'}{axis}"
            rows.append(stack.row(name, outputs, form, -slope * centre, side=side))
    return rows


def _invariance(problem: Problem) -> list[Row]:
    """F_i − upper_i and lower_i − F_i."""
    stack = _Stack([problem.forward[:-1]], problem.n)
    rows = []
    ends = zip(problem.upper.fractions(), problem.lower.fractions(), strict=True)
    for axis, (upper, lower) in enumerate(ends):
        for name, sign, end in ((f"upper {axis}", 1, upper), (f"lower {axis}", -1, lower)):
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
        rows.append(stack.row(f"class {k}", [output], form, constant, strict=strict))
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
        depth = max(map(len, chains))
        starts = [0] * len(chains)  # where each chain's inputs begin among the previous outputs
        before, width = 0, n  # where y begins there, and how many outputs there are
        firsts: list[tuple[int, int, int, int]] = []
        numbers = 0
        for k in range(depth):
            active = [(i, chain, k - depth + len(chain)) for i, chain in enumerate(chains)]
            active = [(i, chain, j) for i, chain, j in active if j >= 0]
            exp = min(chain[j].weight.exp for _, chain, j in active)
            numbers += width * (n + sum(chain[j].weight.height for _, chain, j in active))
            if numbers > MOST_NUMBERS:
                raise ArithmeticError("the networks are too large")
            rows: list[list[int]] = []
            bias = Vector([])
            for i, chain, j in active:
                start = before if j == 0 else starts[i]
                starts[i] = len(rows)
                if j == 0:
                    firsts.append((i, k, len(rows), chain[0].weight.height))
                for row in chain[j].weight.at(exp):
                    rows.append([0] * start + row + [0] * (width - start - len(row)))
                bias = bias.joined(chain[j].bias)
            relus = len(rows)
            rows += [shifted(_unit(width, before + i).ints, -exp) for i in range(n)]
            self.stages.append(Stage(Matrix(rows, exp), bias.joined(Vector([0] * n)), relus))
            before, width = relus, len(rows)
        self.firsts = tuple(place[1:] for place in sorted(firsts))

    def row(
        self,
        name: str,
        outputs: list[Output],
        form: Vector | None = None,
        constant: Fraction = Fraction(0),
        **options: Any,
    ) -> Row:
        """form·y + constant + an output of each chain."""
        final = Vector([0] * self.n) if form is None else form
        parts = list(zip(self.chains, outputs, strict=True))
        for chain, (weights, _) in parts:
            final = final if chain else final + weights
        for chain, (weights, _) in reversed(parts):
            final = weights.joined(final) if chain else final
        constant += sum(bias for _, bias in outputs)
        return Row(name, self.stages, final, constant, firsts=self.firsts, **options)


def coupled_row(row: Row, thetas: list[list[int] | None], bits: int) -> Row:
    """The row with units of V∘F coupled to V: relu(a) ≤ Σ θ_i·relu(b_i) + relu(a − Σ θ_i·b_i).

    Unit k of V∘F becomes a_k − θ·b, and θ times its outer weight is added to those of V; sound for
    θ ≥ 0 (multiples of 2^-bits) and an outer weight ≥ 0.
    """
    last, units = row.stages[-1], row.coupled
    rows = [shifted(line, bits) for line in last.weight.rows]
    bias = shifted(last.bias.ints, bits)
    final = shifted(row.final.ints, bits)
    for k, theta in enumerate(thetas):
        for i, pull in enumerate(theta or []):
            own = last.weight.rows[units + i]
            rows[k] = [a - pull * b for a, b in zip(rows[k], own, strict=True)]
            bias[k] -= pull * last.bias.ints[units + i]
            final[units + i] += pull * row.final.ints[k]
    stage = Stage(
        Matrix(rows, last.weight.exp - bits), Vector(bias, last.bias.exp - bits), last.relus
    )
    stages = [*row.stages[:-1], stage]
    return replace(row, stages=stages, final=Vector(final, row.final.exp - bits))
