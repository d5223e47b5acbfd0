"""Proof trees: a box is cut until each piece is shown by itself (proof format, 2 and 3).

A cut strictly inside a box gives two boxes whose union is that box, a cut at a unit the states with
its input ≤ 0 and those with ≥ 0, and a cut at a level the states with V ≤ c and those with V ≥ c;
so the leaves of a complete tree cover its root, and the cover needs no check of its own. A tree is
walked with a stack, node by node as it is stored, so that time and memory follow the file's size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .exact import Ints, Vector, Work, folded, scaled
from .levels import EVERYWHERE, Gauge, Levels
from .limits import MOST_BOUNDS
from .networks import Layer, Network
from .problem import Problem, Row, coupled_row, region_rows, rows_of
from .reading import Rejected, array, items, mapping, number
from .relaxation import BITS, Box, Pair, RowBound, Signs, Supports, rounded

HOLE, DEFAULT, STORED, LEVEL = -1, -2, -3, -4
Part = tuple[Box, Signs, Levels]
_HEADER = {"version", "kind", "condition"}
_TREE = {"row", "lower", "upper", "axis", "cut", "slopes", "couplings"}
_MORE = frozenset({"side", "multipliers", "supports", "supported"})
_WITHOUT_V = (-1,)  # in place of coupling numbers: V is left to a support


def check_branch(problem: Problem, condition: str, proof: dict[str, Any], work: Work) -> int:
    """Re-prove one tree per row over the row's part of D; the number of leaves."""
    own = {"trees", "multipliers"} if condition == "region" else {"trees"}
    mapping(proof, condition, _HEADER | own)
    if condition == "region":
        rows = region_rows(problem, _multipliers(problem, proof["multipliers"]))
    else:
        rows = rows_of(problem, condition)
    leaves = 0
    for row, value in zip(rows, _listed(proof["trees"], condition, len(rows)), strict=True):
        where = f"{condition}, row {row.name!r}"
        empty = row.side is not None and problem.clearance().fractions()[row.side] < problem.radius
        if empty and value == {"row": row.name, "empty": True}:
            continue
        tree = _Tree(problem, row, value, where, work)
        if tree.root != _wanted_root(problem, row, tree.root):
            raise Rejected(f"{where}: the root leaves out a part of the domain, or is another one")
        leaves += tree.check(Fraction(0), holes=row.avoids_hole)
    return leaves


def _multipliers(problem: Problem, value: Any) -> list[Vector]:
    """λ: a line for every k ≠ c, a column for every j; at c itself there is no lead to use."""
    n = problem.n
    values, shape = array(value, "region.multipliers", 2)
    if shape != [n - 1, n] or any(value < 0 for value in values) or any(values[problem.label :: n]):
        raise Rejected(f"region: the multipliers must be {n - 1} × {n} numbers ≥ 0, and 0 at c")
    return [rounded(line) for line in folded(values, n)]


def _listed(value: Any, condition: str, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise Rejected(f"{condition} needs a list of {count} trees")
    return value


def _wanted_root(problem: Problem, row: Row, root: list[Fraction]) -> list[Fraction]:
    """D; along a sided row's axis the root may begin anywhere before the row's part of D."""
    wanted, side = problem.box(), row.side
    if side is not None:
        # The place of a side in `clearance` is that of the opposite end in a box.
        sign = 1 if side < problem.n else -1
        start = problem.equilibrium.fractions()[side % problem.n] + sign * problem.radius
        if sign * root[side] <= max(sign * start, sign * wanted[side]):
            wanted[side] = root[side]
    return wanted


# ---- faces of the box that carry its inside (proof format, 3)


def check_faces(problem: Problem, condition: str, proof: dict[str, Any], work: Work) -> int:
    """Re-prove every face of D with a margin, and that the inside follows; the leaves."""
    more = {"level", "tree"} if "level" in proof else set()
    mapping(proof, condition, _HEADER | {"margin", "faces"} | more)
    if condition not in ("decrease", "positivity") or not problem.in_box(problem.equilibrium):
        raise Rejected(f"{condition} cannot be shown by faces here")
    margin = Fraction(number(proof["margin"], f"{condition}.margin"))
    _check_margin(problem, condition, margin)
    rows, sides = rows_of(problem, condition), _faces(problem)
    if more:
        if condition != "decrease":
            raise Rejected("a section of V shows decrease only")
        return _check_section(problem, rows[0], proof, margin, work)
    wanted = [(row, face) for row in rows for face in sides]
    faces = _listed(proof["faces"], condition, len(wanted))
    leaves = 0
    for k, ((row, face), value) in enumerate(zip(wanted, faces, strict=True)):
        where = f"{condition}, row {row.name!r}, face {k % len(sides)}"
        tree = _Tree(problem, row, value, where, work)
        if tree.root != face:
            raise Rejected(f"{where}: the root is not that face of the domain")
        leaves += tree.check(margin, holes=False)
    return leaves


def _faces(problem: Problem) -> list[list[Fraction]]:
    """The faces of D that do not contain Y, axis by axis, the lower side first."""
    n, box, clear = problem.n, problem.box(), problem.clearance().ints
    faces = []
    for side in [side for axis in range(n) for side in (n + axis, axis) if clear[side]]:
        face = list(box)
        face[side % n] = face[n + side % n] = box[(side + n) % (2 * n)]  # the far end of that side
        faces.append(face)
    return faces


def _check_section(problem: Problem, row: Row, proof: Any, margin: Fraction, work: Work) -> int:
    """The set V = c in place of the faces: V(Y) < c, V ≥ c on every face, so that every ray from Y
    meets it in D."""
    level = Fraction(number(proof["level"], "level"))
    tree = _Tree(problem, row, proof["tree"], f"{row.name}, the section", work)
    faces = _faces(problem)
    numbers = _listed(proof["faces"], "the section", len(faces))
    work.spend(len(faces) * problem.n * row.coupled, 1024)
    if (
        tree.root != problem.box()
        or tree.gauge is None
        or problem.gauge(problem.equilibrium) >= level
    ):
        raise Rejected("the section is not one of V around Y in the domain")
    for face, line in zip(faces, numbers, strict=True):
        if type(line) is not int or not tree.gauge.at_least(level, face, line):
            raise Rejected("V may be smaller on a face than on the section")
    return tree.check(margin, holes=False, levels=Levels(level, level))


def _check_margin(problem: Problem, condition: str, margin: Fraction) -> None:
    """(μ − δ)·r ≥ δ·R: what the faces show outweighs how far g is from being homogeneous."""
    centre, still = problem.equilibrium, Vector([0] * problem.n)
    strict = problem.positivity == 0
    residue = _residue(problem.lyapunov, still, centre).fractions()[0]
    if condition == "decrease":
        *hidden, last = problem.forward
        around = [*hidden, Layer(last.weight, last.bias - centre)]  # F − Y
        moved = _residue(around, still, centre)
        after = _residue(problem.lyapunov, moved, centre).fractions()[0]
        residue = after + problem.rho * residue
        strict = problem.rho == 1
    gain = (margin - residue) * problem.radius
    loss = residue * max(problem.clearance().fractions())
    enough = residue == 0 or gain > loss or (gain == loss and not strict)
    if margin <= residue or not enough:
        raise Rejected(f"{condition}: the margin on the faces does not outweigh the residue")


def _residue(network: Network, distance: Vector, centre: Vector) -> Vector:
    """The distance between a network and its homogeneous part around Y, given that between their
    inputs: each layer adds its value at Y, which the homogeneous part lacks."""
    for k, layer in enumerate(network):
        own = layer.bias if k else layer.apply(centre)
        distance = layer.weight.each(abs).apply(distance) + own.each(abs)
    return distance


# ---- one tree


class _Tree:
    """A tree in preorder: node, lower child's subtree, upper child's subtree."""

    def __init__(self, problem: Problem, row: Row, value: Any, where: str, work: Work) -> None:
        content = mapping(value, where, _TREE, _MORE)
        if content["row"] != row.name:
            raise Rejected(f"{where}: its tree is missing or out of order")
        self.row = row
        self.where = where
        n = problem.n
        ends = [*items(content["lower"], where, n), *items(content["upper"], where, n)]
        corners = [number(end, f"{where}: a corner") for end in ends]
        self.axis, _ = array(content["axis"], f"{where}.axis", 1, ("|i1", "<i2", "<i4"))
        cut, _ = array(content["cut"], f"{where}.cut", 1)
        self._read_choices(content)
        self._read_supports(problem, content)
        # the number of a level cut comes after those of axes and units
        level = n + sum(stage.relus for stage in row.stages) if self.gauge else -1
        counts = (sum(0 <= a < n or a == level >= 0 for a in self.axis), 2 * n)
        if counts != (len(cut), len(corners)) or min(self.axis, default=LEVEL - 1) < LEVEL:
            raise Rejected(f"{where}: the numbers of its nodes and cuts do not fit together")
        every = Vector.of([*corners, *cut, problem.radius]).joined(problem.equilibrium)
        if self.gauge is not None:
            every = every.joined(Vector([], -BITS))  # bounds with supports are rounded to that
        self.exp = every.exp
        self.box: Box = (every.ints[:n], every.ints[n : 2 * n])
        self.cuts, self.radius = every.ints[2 * n : -n - 1], every.ints[-n - 1]
        self.centre = every.ints[-n:]
        self.root = every.fractions()[: 2 * n]
        self.bounds: dict[tuple[int, ...], RowBound] = {}  # by the couplings that a leaf chose
        longest = max((w.bit_length() for line in self.multipliers for w in line), default=0)
        extra = 0
        if self.gauge is not None:
            longest += max(w.bit_length() for line in [[0], *self.gauge.choices] for w in line)
            extra = (1 + 2 * len(self.supported_units)) * n * row.held
        spend(work, row, every, len(self.axis), longest, extra)

    def _read_choices(self, content: Any) -> None:
        """For every STORED leaf a line of lower slopes of the first layers, then a coupling number
        a unit; couplings θ ≥ 0, a matrix each; for every relaxed leaf below unit cuts Q and β."""
        units = self.row.coupled
        width = sum(count for _, _, count in self.row.firsts) + units
        slopes, shape = array(content["slopes"], f"{self.where}.slopes", 2, ("|u1",))
        stored = self.axis.count(STORED) + self.axis.count(LEVEL)
        if shape[0] != stored or (stored and shape[1] != width):
            words = "the slopes and the leaves do not fit together"
            raise Rejected(f"{self.where}: {words}; a leaf needs {width} slopes and couplings")
        self.slopes = [slopes[i * width : (i + 1) * width] for i in range(stored)]
        theta, shape = array(content["couplings"], f"{self.where}.couplings", 3)
        wrong = shape[0] and (shape[1:] != [units, units] or shape[0] > 255)
        if wrong or any(value < 0 for value in theta):
            raise Rejected(f"{self.where}: a coupling must be {units} × {units} numbers ≥ 0")
        self.couplings = folded(folded(rounded(theta).ints, units), units)
        self.multipliers = content.get("multipliers", [])
        for line in self.multipliers if isinstance(self.multipliers, list) else [{}]:
            right = isinstance(line, list) and all(type(w) is int and w >= 0 for w in line)
            if not right or not any(line[:1]):
                raise Rejected(f"{self.where}: multipliers must be integers ≥ 0, the first > 0")

    def _read_supports(self, problem: Problem, content: Any) -> None:
        """(λ, γ, θ), a line each; for every LEVEL leaf the numbers of those of the upper and lower
        bounds of every unit that V is not made of, then of the row's own."""
        self.gauge: Gauge | None = None
        self.supported_units: list[Pair] = []
        self.supported: list[Any] = []
        if "supports" in content and self.row.held:
            for k, stage in enumerate(self.row.stages):
                own = self.row.held if stage is self.row.stages[-1] else 0
                self.supported_units += [(k, unit) for unit in range(stage.relus - own)]
            width = 2 * len(self.supported_units) + 1
            value = content["supports"]
            self.gauge = Gauge(problem.lyapunov, self.row.share, value, self.where)
            numbers, shape = array(content["supported"], f"{self.where}.supported", 2, ("<i4",))
            if shape[1] == width:
                self.supported = folded(numbers, width)
        if len(self.supported) != self.axis.count(LEVEL):
            raise Rejected(f"{self.where}: the supports and the leaves do not fit together")

    def check(self, margin: Fraction, holes: bool, levels: Levels = EVERYWHERE) -> int:
        """Each leaf has to show g ≤ −margin (strict: g < 0), or to lie in the hole where `holes`;
        the number of leaves."""
        stored, multipliers = iter(self.slopes), iter(self.multipliers)
        supported = iter(self.supported)
        stages = enumerate(self.row.stages)
        units = [(k, unit) for k, stage in stages for unit in range(stage.relus)]
        exp = None if self.gauge is None else self.exp
        root: Part = (self.box, {}, levels)
        for kind, box, signs, levels in parts(root, self.axis, self.cuts, units, self.where, exp):
            if kind == HOLE:
                if not holes or not self._inside_hole(box):
                    raise Rejected(f"{self.where}: a leaf is called inside the hole and is not")
                continue
            choices = next(stored) if kind in (STORED, LEVEL) else ()
            supports = self._supports(next(supported), levels) if kind == LEVEL else {}
            weights = next(multipliers, []) if signs else [1]
            if len(weights) != 1 + len(signs):
                raise Rejected(f"{self.where}: a leaf below unit cuts needs its multipliers")
            split = len(choices) - self.row.coupled if choices else 0
            bound = self._bound(_WITHOUT_V if supports else choices[split:], signs)
            most = bound.upper(box, choices[:split], signs, weights, supports)
            most += weights[0] * margin
            if most > 0 or (most == 0 and self.row.strict and not margin):
                raise Rejected(f"{self.where}: a leaf's bound does not show what is claimed of it")
        if next(multipliers, None) is not None:
            raise Rejected(f"{self.where}: multipliers are left over")
        return sum(a < 0 for a in self.axis)

    def _supports(self, numbers: Sequence[int], levels: Levels) -> dict[Pair, Supports]:
        """By unit, and the row's own at (-1, -1)."""
        assert self.gauge is not None  # or there were no such leaves
        found = folded(self.gauge.supports(numbers, levels), 2)
        return dict(zip([*self.supported_units, (-1, -1)], found, strict=True))

    def _inside_hole(self, box: Box) -> bool:
        """Whether the closed box lies strictly inside the open hole."""
        radius, ends = self.radius, zip(*box, self.centre, strict=True)
        return all(y - radius < a and b < y + radius for a, b, y in ends)

    def _bound(self, numbers: Sequence[int], signs: Signs) -> RowBound:
        """The bound of the row with the chosen units coupled (0: not coupled). A coupled unit is
        replaced by something larger, so its outer weight must not be negative; and it has another
        input than the one whose sign a cut fixed."""
        last, final = len(self.row.stages) - 1, self.row.final.ints
        chosen = tuple(numbers) if any(numbers) else ()
        for unit, k in enumerate(() if chosen == _WITHOUT_V else chosen):
            if k and (final[unit] < 0 or k > len(self.couplings) or (last, unit) in signs):
                raise Rejected(f"{self.where}: a leaf couples what cannot be coupled")
        if chosen not in self.bounds:
            if len(self.bounds) == MOST_BOUNDS:
                self.bounds.clear()
            self.bounds[chosen] = RowBound(self._row(chosen), self.exp)
        return self.bounds[chosen]

    def _row(self, chosen: tuple[int, ...]) -> Row:
        if chosen == _WITHOUT_V:
            final = list(self.row.final.ints)
            start = self.row.stages[-1].relus - self.row.held
            final[start : start + self.row.held] = [0] * self.row.held
            return replace(self.row, final=Vector(final, self.row.final.exp))
        thetas = [self.couplings[k - 1][unit] if k else None for unit, k in enumerate(chosen)]
        return coupled_row(self.row, thetas, BITS) if chosen else self.row


def parts(
    root: Part,
    axes: Sequence[int],
    cuts: Ints,
    units: list[Pair],
    where: str,
    exp: int | None = None,
) -> Iterator[tuple[int, Box, Signs, Levels]]:
    """The leaves; refuses a tree that is not complete, or a cut that does not cut. `exp`: that of
    cuts, where there may be cuts at levels."""
    waiting = [root]
    places = iter(cuts)
    n = len(root[0][0])
    for axis in axes:
        if not waiting:
            raise Rejected(f"{where}: the tree ends before its arrays do")
        (low, high), signs, levels = waiting.pop()
        if axis < 0:
            yield axis, (low, high), signs, levels
        elif axis < n:
            cut = next(places)
            below, above = high.copy(), low.copy()
            below[axis] = above[axis] = cut
            if not low[axis] < cut < high[axis]:
                raise Rejected(f"{where}: a cut does not lie inside its box")
            waiting += [((above, high), signs, levels), ((low, below), signs, levels)]
        elif axis == n + len(units) and exp is not None:
            level = scaled(next(places), exp)
            waiting += [((low, high), signs, side(level)) for side in (levels.above, levels.below)]
        else:
            unit = units[axis - n]
            if unit in signs:
                raise Rejected(f"{where}: a unit is cut twice")
            signed = [{**signs, unit: active} for active in (True, False)]
            waiting += [((low, high), both, levels) for both in signed]
    if waiting:
        raise Rejected(f"{where}: the tree is not complete")


def spend(work: Work, row: Row, box: Vector, leaves: int, longest: int, extra: int = 0) -> None:
    """Count the products that a row's leaves take, and how long their numbers get."""
    sizes = [stage.weight.height * stage.weight.width for stage in row.stages]
    heights = [stage.weight.height for stage in row.stages]
    passes = [2 * height * sum(sizes[: k + 1]) for k, height in enumerate(heights)]
    parts = [box, row.final, *(part for stage in row.stages for part in stage[:2])]
    front = sum(part.bits + part.exp for part in parts)  # before the point
    bits = longest + front - RowBound(row, box.exp).exp
    work.spend(leaves * (1 + row.coupled**3 + sum(passes) + extra), bits)
