"""Proof trees: a box is cut until each piece is shown by itself (proof format, 2 and 3).

A cut strictly inside a box gives two boxes whose union is that box, and a cut at a unit gives the
states with its input ≤ 0 and those with ≥ 0; so the leaves of a complete tree cover its root, and
the cover needs no check of its own. A tree is walked with a stack, node by node as it is stored, so
that time and memory follow the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .exact import Ints, Vector, Work, scaled
from .networks import Network
from .problem import Problem, Row, coupled_row, region_rows, rows_of
from .reading import Rejected, array, floats, items, mapping, number
from .relaxation import BITS, RowBound, Signs, rounded

HOLE, DEFAULT, STORED = -1, -2, -3
MOST_BOUNDS = 64  # kept at a time
_HEADER = {"version", "kind", "condition"}
_TREE = {"row", "lower", "upper", "axis", "cut", "slopes", "couplings"}


@dataclass(frozen=True)
class Tree:
    """One tree in preorder: node, lower child's subtree, upper child's subtree."""

    lower: Ints
    upper: Ints
    cut: Ints
    centre: Ints  # Y
    radius: int  # of the hole
    exp: int  # of all these
    axis: list[int]
    slopes: list[list[int]]
    couplings: list[list[Ints]]
    multipliers: list[list[int]]

    def root(self) -> list[Fraction]:
        return [scaled(end, self.exp) for end in (*self.lower, *self.upper)]


def check_branch(problem: Problem, condition: str, proof: dict[str, Any], work: Work) -> int:
    """Re-prove one tree per row over the row's part of D; the number of leaves."""
    own = {"trees", "multipliers"} if condition == "region" else {"trees"}
    mapping(proof, condition, _HEADER | own)
    if condition == "region":
        rows = region_rows(problem, _multipliers(problem, proof["multipliers"]))
    else:
        rows = rows_of(problem, condition)
    trees = proof["trees"]
    if not isinstance(trees, list) or len(trees) != len(rows):
        raise Rejected(f"{condition} needs a list of {len(rows)} trees")
    leaves = 0
    for row, value in zip(rows, trees, strict=True):
        where = f"{condition}, row {row.name!r}"
        if value == {"row": row.name, "empty": True} and _is_empty(problem, row):
            continue
        tree = _read_tree(problem, row, value, where, work)
        _check_root(problem, row, tree, where)
        leaves += _Leaves(row, tree, Fraction(0), row.avoids_hole, where).check()
    return leaves


def _multipliers(problem: Problem, value: Any) -> list[Vector]:
    """λ: a line for every k ≠ c, a column for every j; at c itself there is no lead to use."""
    n = problem.n
    values, shape = floats(value, "region.multipliers", 2)
    if shape != [n - 1, n] or any(value < 0 for value in values) or any(values[problem.label :: n]):
        raise Rejected(f"region: the multipliers must be {n - 1} × {n} numbers ≥ 0, and 0 at c")
    return [rounded(values[i : i + n]) for i in range(0, len(values), n)]


def _is_empty(problem: Problem, row: Row) -> bool:
    """Whether no state of D has sign·(y − Y) ≥ r along a sided row's axis."""
    return row.side is not None and problem.room().fractions()[row.side] < problem.radius


def _check_root(problem: Problem, row: Row, tree: Tree, where: str) -> None:
    """The root is D; along a sided row's axis it may begin anywhere before the row's part of D."""
    wanted = [*problem.lower.fractions(), *problem.upper.fractions()]
    root = tree.root()
    if row.side is not None:
        # room: to the upper ends, then to the lower ends; the root may end early on the other side.
        axis, sign = row.side % problem.n, 1 if row.side < problem.n else -1
        place = axis if sign > 0 else problem.n + axis
        start = problem.equilibrium.fractions()[axis] + sign * problem.radius
        if sign * root[place] <= max(sign * start, sign * wanted[place]):
            wanted[place] = root[place]
    if root != wanted:
        raise Rejected(f"{where}: the root leaves out a part of the domain, or is another one")


# ---- faces of the box that carry its inside (proof format, 3)


def check_faces(problem: Problem, condition: str, proof: dict[str, Any], work: Work) -> int:
    """Re-prove every face of D with a margin, and that the inside follows; the leaves."""
    mapping(proof, condition, _HEADER | {"margin", "faces"})
    if condition not in ("decrease", "positivity") or not problem.in_box(problem.equilibrium):
        raise Rejected(f"{condition} cannot be shown by faces here")
    margin = Fraction(number(proof["margin"], f"{condition}.margin"))
    _check_margin(problem, condition, margin)
    room = problem.room().ints
    sides = [(axis, place) for axis in range(problem.n) for place in (problem.n + axis, axis)]
    wanted = [
        (row, axis, place)
        for row in rows_of(problem, condition)
        for axis, place in sides
        if room[place]
    ]
    faces = proof["faces"]
    if not isinstance(faces, list) or len(faces) != len(wanted):
        raise Rejected(f"{condition} needs a list of {len(wanted)} faces")
    leaves = 0
    for (row, axis, place), value in zip(wanted, faces, strict=True):
        where = f"{condition}, row {row.name!r}, a face of axis {axis}"
        tree = _read_tree(problem, row, value, where, work)
        lower, upper = problem.lower.fractions(), problem.upper.fractions()
        lower[axis] = upper[axis] = (upper if place < problem.n else lower)[axis]
        if tree.root() != [*lower, *upper]:
            raise Rejected(f"{where}: the root is not that face of the domain")
        leaves += _Leaves(row, tree, margin, False, where).check()
    return leaves


def _check_margin(problem: Problem, condition: str, margin: Fraction) -> None:
    """(μ − δ)·r ≥ δ·R: what the faces show outweighs how far g is from being homogeneous."""
    centre, still = problem.equilibrium, Vector([0] * problem.n)
    strict = problem.positivity == 0
    residue = _residue(problem.lyapunov, still, centre).fractions()[0]
    if condition == "decrease":
        moved = _residue(problem.forward, still, centre, target=centre)
        after = _residue(problem.lyapunov, moved, centre).fractions()[0]
        residue = after + problem.rho * residue
        strict = problem.rho == 1
    gain = (margin - residue) * problem.radius
    loss = residue * max(problem.room().fractions())
    enough = residue == 0 or gain > loss or (gain == loss and not strict)
    if margin <= residue or not enough:
        raise Rejected(f"{condition}: the margin on the faces does not outweigh the residue")


def _residue(
    network: Network, distance: Vector, centre: Vector, target: Vector | None = None
) -> Vector:
    """The distance between a network and its homogeneous part around Y, given that between their
    inputs: each layer adds its value at Y, which the homogeneous part lacks."""
    for k, layer in enumerate(network):
        own = layer.apply(centre) if k == 0 else layer.bias
        if target is not None and k + 1 == len(network):
            own = own - target
        distance = layer.weight.each(abs).apply(distance) + own.each(abs)
    return distance


# ---- reading a tree


def _read_tree(problem: Problem, row: Row, value: Any, where: str, work: Work) -> Tree:
    content = mapping(value, where, _TREE, frozenset({"side", "multipliers"}))
    n = problem.n
    if content["row"] != row.name:
        raise Rejected(f"{where}: its tree is missing or out of order")
    ends = [*items(content["lower"], where, n), *items(content["upper"], where, n)]
    corners = [number(end, f"{where}: a corner") for end in ends]
    axis, _ = array(content["axis"], f"{where}.axis", 1, ("|i1", "<i2", "<i4"))
    cut, _ = floats(content["cut"], f"{where}.cut", 1)
    slopes = _read_slopes(row, content["slopes"], where)
    couplings = _read_couplings(row, content["couplings"], where)
    multipliers = _read_weights(content.get("multipliers", []), where)
    counts = (sum(0 <= a < n for a in axis), axis.count(STORED))
    if counts != (len(cut), len(slopes)) or len(corners) != 2 * n or min(axis, default=-4) < STORED:
        raise Rejected(f"{where}: the numbers of its nodes, cuts and slopes do not fit together")
    every = Vector.of([*corners, *cut]).joined(problem.equilibrium)
    every = every.joined(Vector.single(problem.radius))
    longest = max((w.bit_length() for line in multipliers for w in line), default=0)
    work.spend(_products(row, len(axis)), longest - RowBound(row, every.exp).exp)
    end = 2 * n + len(cut)
    return Tree(
        every.ints[:n],
        every.ints[n : 2 * n],
        every.ints[2 * n : end],
        every.ints[end : end + n],
        every.ints[-1],
        every.exp,
        list(axis),
        slopes,
        couplings,
        multipliers,
    )


def _read_weights(value: Any, where: str) -> list[list[int]]:
    """Q > 0 and β ≥ 0: a line for every relaxed leaf below unit cuts."""
    lines: list[Any] = value if isinstance(value, list) else [None]
    for line in lines:
        right = isinstance(line, list) and all(type(w) is int and w >= 0 for w in line)
        if not right or not any(line[:1]):
            raise Rejected(f"{where}: a leaf's multipliers must be integers ≥ 0, the first > 0")
    return lines


def _read_slopes(row: Row, value: Any, where: str) -> list[list[int]]:
    """A line per STORED leaf: lower slopes of the first layers, then a coupling number a unit."""
    values, shape = array(value, f"{where}.slopes", 2, ("|u1",))
    width = sum(count for _, _, count in row.firsts) + row.coupled
    if shape[0] and shape[1] != width:
        raise Rejected(f"{where}: a leaf needs {width} slopes and couplings, not {shape[1]}")
    return [list(values[i * width : (i + 1) * width]) for i in range(shape[0])]


def _read_couplings(row: Row, value: Any, where: str) -> list[list[Ints]]:
    """θ ≥ 0, a matrix each; unit k of V∘F reads line k."""
    values, shape = floats(value, f"{where}.couplings", 3)
    units = row.coupled
    if shape[0] and (shape[1:] != [units, units] or shape[0] > 255):
        raise Rejected(f"{where}: a coupling must be {units} × {units}")
    if any(value < 0 for value in values):
        raise Rejected(f"{where}: a coupling is negative")
    theta = rounded(values).ints
    lines = [theta[i : i + units] for i in range(0, len(theta), units or 1)]
    return [lines[i : i + units] for i in range(0, len(lines), units or 1)]


def _products(row: Row, nodes: int) -> int:
    """At most so many products does a tree take."""
    sizes = [stage.weight.height * stage.weight.width for stage in row.stages]
    each = 1 + row.coupled**3
    for k, stage in enumerate(row.stages):
        each += 2 * stage.weight.height * sum(sizes[: k + 1])
    return nodes * each


# ---- walking it


class _Leaves:
    """The leaves of one tree; each has to show g ≤ −margin (strict: g < 0)."""

    def __init__(self, row: Row, tree: Tree, margin: Fraction, holes: bool, where: str) -> None:
        self.row = row
        self.tree = tree
        self.margin = margin
        self.holes = holes  # whether a leaf may lie in the hole instead
        self.where = where
        self.bounds: dict[tuple[int, ...], RowBound] = {}  # by the couplings that a leaf chose
        self.units = [
            (k, unit) for k, stage in enumerate(row.stages) for unit in range(stage.relus)
        ]

    def check(self) -> int:
        """The number of leaves, once every one of them is shown."""
        stored, multipliers = iter(self.tree.slopes), iter(self.tree.multipliers)
        leaves = 0
        for kind, low, high, signs in self._parts():
            leaves += 1
            if kind == HOLE:
                if not self.holes or not self._inside_hole(low, high):
                    raise Rejected(f"{self.where}: a leaf is called inside the hole and is not")
                continue
            choices = next(stored) if kind == STORED else []
            weights = next(multipliers, []) if signs else [1]
            if len(weights) != 1 + len(signs):
                raise Rejected(f"{self.where}: a leaf below unit cuts needs its multipliers")
            self._check_bound(low, high, choices, signs, weights)
        if next(multipliers, None) is not None:
            raise Rejected(f"{self.where}: multipliers are left over")
        return leaves

    def _parts(self) -> Iterator[tuple[int, Ints, Ints, Signs]]:
        """The leaves; refuses a tree that is not complete, or a cut that does not cut."""
        waiting: list[tuple[Ints, Ints, Signs]] = [(self.tree.lower, self.tree.upper, {})]
        cuts = iter(self.tree.cut)
        n = len(self.tree.lower)
        for axis in self.tree.axis:
            if not waiting:
                raise Rejected(f"{self.where}: the tree ends before its arrays do")
            low, high, signs = waiting.pop()
            if axis < 0:
                yield axis, low, high, signs
            elif axis < n:
                cut = next(cuts)
                below, above = high.copy(), low.copy()
                below[axis] = above[axis] = cut
                if not low[axis] < cut < high[axis]:
                    raise Rejected(f"{self.where}: a cut does not lie inside its box")
                waiting += [(above, high, signs), (low, below, signs)]
            else:
                unit = self.units[axis - n]
                if unit in signs:
                    raise Rejected(f"{self.where}: a unit is cut twice")
                active, inactive = {**signs, unit: True}, {**signs, unit: False}
                waiting += [(low, high, active), (low, high, inactive)]
        if waiting:
            raise Rejected(f"{self.where}: the tree is not complete")

    def _inside_hole(self, low: Ints, high: Ints) -> bool:
        """Whether the closed box lies strictly inside the open hole."""
        centre, radius = self.tree.centre, self.tree.radius
        return all(
            y - radius < a and b < y + radius for a, b, y in zip(low, high, centre, strict=True)
        )

    def _check_bound(
        self, low: Ints, high: Ints, choices: list[int], signs: Signs, weights: list[int]
    ) -> None:
        split = len(choices) - self.row.coupled if choices else 0
        last = len(self.row.stages) - 1
        if any(k and (last, unit) in signs for unit, k in enumerate(choices[split:])):
            # A coupled unit has another input than the one whose sign the cut fixed.
            raise Rejected(f"{self.where}: a leaf couples a unit that was cut")
        bound = self._bound(tuple(choices[split:]))
        most = bound.upper(low, high, choices[:split], signs, weights) + weights[0] * self.margin
        if most > 0 or (most == 0 and self.row.strict and not self.margin):
            raise Rejected(f"{self.where}: the bound of a leaf does not show what is claimed of it")

    def _bound(self, numbers: tuple[int, ...]) -> RowBound:
        """The bound of the row with the chosen units coupled (0: not coupled). A coupled unit is
        replaced by something larger, so its outer weight must not be negative."""
        chosen = numbers if any(numbers) else ()
        if chosen not in self.bounds:
            if len(self.bounds) == MOST_BOUNDS:
                self.bounds.clear()
            couplings, final = self.tree.couplings, self.row.final.ints
            wrong = any(number and final[unit] < 0 for unit, number in enumerate(chosen))
            if chosen and (wrong or max(chosen) > len(couplings) or len(self.row.firsts) != 2):
                raise Rejected(f"{self.where}: a leaf couples what cannot be coupled")
            thetas = [couplings[k - 1][unit] if k else None for unit, k in enumerate(chosen)]
            row = coupled_row(self.row, thetas, BITS) if chosen else self.row
            self.bounds[chosen] = RowBound(row, self.tree.exp)
        return self.bounds[chosen]
