"""The question about a loop, and its conditions as rows (proof format, 1 and 8)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .blocks import Block, Row, row_of
from .exact import Matrix, Vector, Work, folded
from .networks import Network, value_at
from .reading import Unreadable, mapping, number, vector

STAYS, FALLS = "sublevel-invariance", "sublevel-decrease"
SEARCHED = ("positivity", "decrease", "invariance")
_ARRAYS = ("lower", "upper", "equilibrium")
_NUMBERS = ("hole_radius", "rho", "positivity", "delta", "margin")


@dataclass(frozen=True)
class Problem:
    """The loop F and V, the box D, Y, the hole's radius r (sup norm), ρ, c, δ and γ; for sublevel
    sets the radius of the hole that they leave out, and the levels."""

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
    inner: Fraction = Fraction(0)
    level: Fraction | None = None
    floor: Fraction | None = None

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


# ---- rows


Named = tuple[str, dict[str, Any], Fraction]  # name, what is special, and constant of a row


class Loop:
    """F, V∘F and V over y as blocks, none of them multiplied with another."""

    def __init__(self, problem: Problem, work: Work) -> None:
        self.problem, self.work = problem, work
        self.blocks: list[Block] = []
        self.after = self._append(problem.forward, 0)  # the number of F(y)
        self.there = self._append(problem.lyapunov, self.after)
        self.here = self._append(problem.lyapunov, 0)

    def _append(self, network: Network, source: int) -> int:
        for layer in network:
            self.blocks.append(Block([(source, layer.weight)], layer.bias, relu=True))
            source = len(self.blocks)
        self.blocks[-1] = self.blocks[-1]._replace(relu=False)
        return source

    def _first(self, start: int, end: int) -> list[int]:
        """The first ReLU of some values, if there is one."""
        return [number for number in range(start, end) if self.blocks[number - 1].relu][:1]

    def rows(self, condition: str, multipliers: Sequence[Vector] = ()) -> list[Row]:
        """The rows of a searched condition, in the order of the format."""
        problem, hidden = self.problem, len(self.problem.lyapunov) == 2
        sloped = self._first(1, self.after)
        units = problem.lyapunov[0].weight.height if hidden else 0
        more: dict[str, Any] = {"strict": False}
        if condition == "decrease":  # V(F(y)) − ρ·V(y)
            sides = [(self.there, [[1]]), (self.here, [[-problem.rho]])]
            sloped = self._first(1, self.there) + self._first(self.there + 1, self.here)
            more |= {"coupled": units, "held": units, "share": problem.rho}
            more |= {"strict": problem.rho == 1, "avoids_hole": True}
            named: list[Named] = [("decrease", {}, Fraction(0))]
        elif condition == "positivity":
            named, form = self._distances()
            sides = [(self.here, [[-1]] * len(named)), (0, form)]
            sloped = self._first(self.there + 1, self.here)
            more |= {"held": units, "share": Fraction(1)}
        elif condition == "invariance":  # F_i − upper_i and lower_i − F_i
            named, form = [], []
            ends = zip(problem.lower.fractions(), problem.upper.fractions(), strict=True)
            for axis, (low, high) in enumerate(ends):
                named += [(f"upper {axis}", {}, -high), (f"lower {axis}", {}, low)]
                form += [_unit(problem.n, axis, 1), _unit(problem.n, axis, -1)]
            sides = [(self.after, form)]
        else:
            named, lead, form = self._leads(multipliers)
            sides = [(self.after, lead), (0, form)]
            more |= {"strict": problem.margin == 0}
        if not named:
            return []  # one class has no rivals
        whole = self._row(sides, [constant for _, _, constant in named], sloped)
        rows = []
        for i, (name, own, _) in enumerate(named):
            changes: dict[str, Any] = {**more, **own, "name": name, "weighted": False}
            rows.append(replace(whole, outputs=whole.output(i), **changes))
        return rows

    def _row(self, sides: Any, constants: list[Fraction], sloped: Sequence[int]) -> Row:
        terms = [(source, _matrix(lines)) for source, lines in sides]
        outputs = Block(terms, Vector.of(constants))
        return row_of(self.blocks, outputs, self.problem.n, sloped, self.work)

    def _distances(self) -> tuple[list[Named], list[Any]]:
        """−V(y), or c·|y_i − Y_i| − V(y) along both directions of every axis."""
        problem, n = self.problem, self.problem.n
        if problem.positivity == 0:
            own = {"strict": True, "avoids_hole": True}
            return [("positivity", own, Fraction(0))], [_unit(n, 0, 0)]
        named: list[Named] = []
        form = []
        for axis, centre in enumerate(problem.equilibrium.fractions()):
            for sign, side in ((1, axis), (-1, n + axis)):
                slope = sign * problem.positivity
                named.append((f"{'-+'[sign > 0]}{axis}", {"side": side}, -slope * centre))
                form.append(_unit(n, axis, slope))
        return named, form

    def _leads(self, multipliers: Sequence[Vector]) -> tuple[list[Named], list[Any], list[Any]]:
        """F_k − F_c + γ + Σ_j λ_kj·(y_c − y_j − γ) for every k ≠ c, with λ ≥ 0: where class c leads
        by γ, what the multipliers add is not negative."""
        problem, n, c = self.problem, self.problem.n, self.problem.label
        named: list[Named] = []
        lead, form = [], []
        rivals = [k for k in range(n) if k != c]
        for k, line in zip(rivals, multipliers, strict=True):
            pull = line.fractions()
            own = [-value for value in pull]
            own[c] += sum(pull)
            named.append((f"class {k}", {}, problem.margin * (1 - sum(pull))))
            lead.append([a - b for a, b in zip(_unit(n, k, 1), _unit(n, c, 1), strict=True)])
            form.append(own)
        return named, lead, form

    # ---- a sublevel set: what a violating state satisfies

    def cases(self, condition: str) -> list[tuple[list[Fraction], Row]]:
        """All ways to violate a condition on {V ≤ c}, in the order of the format: a part of the
        box (lower ends, then upper ones), and functions that are all ≥ 0 at such a state."""
        problem, n = self.problem, self.problem.n
        if problem.level is None:
            raise Unreadable(f"{condition} needs a level")
        box = problem.box()
        if condition == STAYS:
            wrong: list[Any] = [((self.there, [[0], [1]]), -problem.level)]
            for axis in range(n):
                wrong.append(((self.after, [[0] * n, _unit(n, axis, 1)]), -box[n + axis]))
                wrong.append(((self.after, [[0] * n, _unit(n, axis, -1)]), box[axis]))
            below = (self.here, [[-1], [0]])
            return [(box, self._case([below, side], [problem.level, k])) for side, k in wrong]
        levels: list[Any] = [(-1, problem.level)]
        if problem.floor is not None:
            levels.append((1, -problem.floor))
        here = [[sign] for sign, _ in levels] + [[-problem.rho]]
        there = [[0] for _ in levels] + [[1]]
        constants = [constant for _, constant in levels] + [Fraction(0)]
        row = self._case([(self.there, there), (self.here, here)], constants)
        return [(part, row) for part in self._outside_hole(box)]

    def _case(self, sides: Any, constants: list[Fraction]) -> Row:
        relus = [number for number, block in enumerate(self.blocks, 1) if block.relu]
        return self._row(sides, constants, relus)

    def _outside_hole(self, box: list[Fraction]) -> list[list[Fraction]]:
        """Boxes around the open hole; a state's is by the first axis it is r or more away on."""
        n, radius = self.problem.n, self.problem.inner
        if radius == 0:
            return [box]
        rest, parts = list(box), []
        for axis, centre in enumerate(self.problem.equilibrium.fractions()):
            above, below = list(rest), list(rest)
            above[axis] = max(box[axis], centre + radius)
            below[n + axis] = min(box[n + axis], centre - radius)
            parts += [above, below]
            rest[axis] = max(box[axis], centre - radius)
            rest[n + axis] = min(box[n + axis], centre + radius)
        return [part for part in parts if all(part[i] <= part[n + i] for i in range(n))]


def _unit(n: int, axis: int, value: int | Fraction) -> list[int | Fraction]:
    return [value if i == axis else 0 for i in range(n)]


def _matrix(lines: list[list[int | Fraction]]) -> Matrix:
    flat = Vector.of([value for line in lines for value in line])
    return Matrix(folded(flat.ints, len(lines[0])), flat.exp)
