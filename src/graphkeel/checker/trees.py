"""Proof trees: a box is cut until each piece is shown by itself (proof format, 2 and 3).

A cut strictly inside a box gives two boxes whose union is that box, a cut at a unit the states with
its input ≤ 0 and those with ≥ 0, and a cut at a level the states with V ≤ c and those with V ≥ c;
so the leaves of a complete tree cover its root, and the cover needs no check of its own. A tree is
walked with a stack, node by node as it is stored, so that time and memory follow the file's size.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from .blocks import Row
from .exact import Ints, Vector, Work, folded, scaled
from .levels import EVERYWHERE, Gauge, Levels
from .limits import SHARED
from .networks import Layer, Network
from .problem import Loop, Problem
from .reading import Rejected, array, items, mapping, number
from .relaxation import Box, Leaf, Relaxation, Signs, View, rounded

HOLE, STORED, LEVEL = -1, -3, -4  # −2: default slopes
Part = tuple[Box, Signs, Levels]
_HEADER = {"version", "kind", "condition"}
_TREE = {"row", "lower", "upper", "axis", "cut", "slopes"}
_MORE = frozenset({"side", "couplings", "multipliers", "supports", "supported"})


def check_branch(problem: Problem, condition: str, proof: dict[str, Any], work: Work) -> int:
    """Re-prove one tree per row over the row's part of D; the number of leaves."""
    own = {"trees", "multipliers"} if condition == "region" else {"trees"}
    mapping(proof, condition, _HEADER | own)
    region = condition == "region"
    multipliers = _multipliers(problem, proof["multipliers"]) if region else []
    rows = Loop(problem, work).rows(condition, multipliers)
    leaves = 0
    for row, value in zip(rows, _listed(proof["trees"], condition, len(rows)), strict=True):
        where = f"{condition}, row {row.name!r}"
        empty = row.side is not None and problem.clearance().fractions()[row.side] < problem.radius
        if empty and value == {"row": row.name, "empty": True}:
            continue
        tree, root = _read_tree(problem, row, value, where, work, holes=row.avoids_hole)
        if root != _wanted_root(problem, row, root):
            raise Rejected(f"{where}: the root leaves out a part of the domain, or is another one")
        leaves += tree.check()
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
    rows, sides = Loop(problem, work).rows(condition), _faces(problem)
    if more:
        if condition != "decrease":
            raise Rejected("a section of V shows decrease only")
        return _check_section(problem, rows[0], proof, margin, work)
    wanted = [(row, face) for row in rows for face in sides]
    faces = _listed(proof["faces"], condition, len(wanted))
    leaves = 0
    for k, ((row, face), value) in enumerate(zip(wanted, faces, strict=True)):
        where = f"{condition}, row {row.name!r}, face {k % len(sides)}"
        tree, root = _read_tree(problem, row, value, where, work)
        if root != face:
            raise Rejected(f"{where}: the root is not that face of the domain")
        leaves += tree.check(margin)
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
    where, levels = f"{row.name}, the section", Levels(level, level)
    tree, root = _read_tree(problem, row, proof["tree"], where, work, levels=levels)
    faces = _faces(problem)
    numbers = _listed(proof["faces"], "the section", len(faces))
    work.spend(len(faces) * problem.n * row.coupled, 1024)
    if root != problem.box() or tree.gauge is None or problem.gauge(problem.equilibrium) >= level:
        raise Rejected("the section is not one of V around Y in the domain")
    for face, line in zip(faces, numbers, strict=True):
        if type(line) is not int or not tree.gauge.at_least(level, face, line):
            raise Rejected("V may be smaller on a face than on the section")
    return tree.check(margin)


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


def _read_tree(
    problem: Problem,
    row: Row,
    value: Any,
    where: str,
    work: Work,
    holes: bool = False,
    levels: Levels = EVERYWHERE,
) -> tuple["Tree", list[Fraction]]:
    """The tree of a loop's row, and the ends of its root."""
    content = mapping(value, where, _TREE, _MORE)
    if content["row"] != row.name:
        raise Rejected(f"{where}: its tree is missing or out of order")
    n = problem.n
    ends = [items(content[side], where, n) for side in ("lower", "upper")]
    if list(map(len, ends)) != [n, n]:
        raise Rejected(f"{where}: the root has not {n} lower and upper ends")
    root = Vector.of([number(end, f"{where}: a corner") for side in ends for end in side])
    hole = (problem.equilibrium, problem.radius) if holes else None
    tree = Tree(row, content, root, where, work, hole, problem.lyapunov, levels)
    return tree, root.fractions()


class Tree:
    """A tree in preorder: node, lower child's subtree, upper child's subtree.

    `root`: the lower ends of its box, then the upper ones; `hole`: the centre and the radius of
    the open box whose leaves show nothing; `lyapunov`: V, where leaves may use its levels, and
    `levels` what is known of it on all of the root.
    """

    def __init__(
        self,
        row: Row,
        content: Any,
        root: Vector,
        where: str,
        work: Work,
        hole: tuple[Vector, Fraction] | None = None,
        lyapunov: Network | None = None,
        levels: Levels = EVERYWHERE,
    ) -> None:
        self.row, self.where, self.work, self.levels = row, where, work, levels
        self.axis, _ = array(content["axis"], f"{where}.axis", 1, ("|i1", "<i2", "<i4"))
        cut, _ = array(content["cut"], f"{where}.cut", 1)
        self._read_choices(content)
        self._read_supports(lyapunov, content)
        n, units = row.n, row.units
        self.level = n + units if self.gauge else -1  # the number of a level cut
        cuts = sum(0 <= axis < n or axis == self.level >= 0 for axis in self.axis)
        if cuts != len(cut) or min(self.axis, default=LEVEL - 1) < LEVEL:
            raise Rejected(f"{where}: the numbers of its nodes and cuts do not fit together")
        centre, radius = hole or (Vector([]), Fraction(0))
        every = root.joined(Vector.of([*cut, radius])).joined(centre)
        if self.gauge is not None:  # supports have to be exact
            known = Vector.of([level for level in levels if level is not None])
            every = every.joined(Vector([], min(every.exp, known.exp) + self.gauge.exp))
        self.exp = every.exp
        self.box: Box = (every.ints[:n], every.ints[n : 2 * n])
        self.cuts = every.ints[2 * n : 2 * n + len(cut)]
        self.radius, *self.centre = every.ints[2 * n + len(cut) :]
        cut_units = {axis - n for axis in self.axis if n <= axis < n + units}
        lines = [[0], *self.multipliers, *(self.gauge.choices if self.gauge else [])]
        longest = 2 * max(number.bit_length() for line in lines for number in line)
        longest += every.bits
        shown = row if self.gauge is None else row.without_gauge()
        self.relaxation = Relaxation(
            shown, self.exp, work, cut_units, bool(self.couplings), longest
        )

    def _read_choices(self, content: Any) -> None:
        """For every STORED or LEVEL leaf a line of lower slopes, then a coupling number a unit;
        couplings θ ≥ 0, a matrix each; for every relaxed leaf of a weighted row, or below unit
        cuts, μ (or Q, the number of times that g is taken) and β."""
        units = self.row.coupled
        width = len(self.row.sloped) + units
        slopes, shape = array(content["slopes"], f"{self.where}.slopes", 2, ("|u1",))
        stored = self.axis.count(STORED) + self.axis.count(LEVEL)
        if shape != [stored, width] and (stored or shape != [0, 0]):
            words = "the slopes and the leaves do not fit together"
            raise Rejected(f"{self.where}: {words}; a leaf needs {width} slopes and couplings")
        self.slopes = [slopes[i * width : (i + 1) * width] for i in range(stored)]
        self.couplings: list[list[Ints]] = []
        if "couplings" in content:
            theta, shape = array(content["couplings"], f"{self.where}.couplings", 3)
            wrong = shape[0] and (shape[1:] != [units, units] or shape[0] > 255)
            if wrong or any(value < 0 for value in theta):
                raise Rejected(f"{self.where}: a coupling must be {units} × {units} numbers ≥ 0")
            self.couplings = folded(folded(rounded(theta).ints, units), units)
        self.multipliers = content.get("multipliers", [])
        if isinstance(self.multipliers, dict):
            flat, shape = array(self.multipliers, f"{self.where}.multipliers", 2, ("<i4",))
            self.multipliers = [list(line) for line in folded(flat, shape[1])]
        outputs = self.row.outputs.weight.height
        for line in self.multipliers if isinstance(self.multipliers, list) else [{}]:
            right = isinstance(line, list) and all(type(w) is int and w >= 0 for w in line)
            if not right or not any(line[:outputs]):
                words = "multipliers must be integers ≥ 0, those of rows not all 0"
                raise Rejected(f"{self.where}: {words}")

    def _read_supports(self, lyapunov: Network | None, content: Any) -> None:
        """(λ, γ, θ), a line each; for every LEVEL leaf the numbers of those of the upper and lower
        bounds of every unit that V is not made of, then of the row's own."""
        self.gauge: Gauge | None = None
        self.supported: list[Any] = []
        if "supports" in content and self.row.held and lyapunov is not None:
            width = 2 * self.row.gauge + 1
            value = content["supports"]
            self.gauge = Gauge(lyapunov, self.row.share, value, self.where)
            numbers, shape = array(content["supported"], f"{self.where}.supported", 2, ("<i4",))
            if shape[1] == width:
                self.supported = folded(numbers, width)
        if len(self.supported) != self.axis.count(LEVEL):
            raise Rejected(f"{self.where}: the supports and the leaves do not fit together")

    def check(self, margin: Fraction = Fraction(0)) -> int:
        """Each leaf has to show g ≤ −margin (strict: g < 0), or to lie in the hole; the number of
        leaves. A node has a view of its own where enough leaves share it, and half as many as the
        last one above: there are few on any path."""
        places, multipliers = iter(self.cuts), iter(self.multipliers)
        choices = iter(self.slopes), multipliers, iter(self.supported)
        root: Part = (self.box, {}, self.levels)
        waiting = [(root, self.relaxation.root, 2 * len(self.axis))]
        for axis, leaves in zip(self.axis, self._leaves_below(), strict=True):
            part, view, before = waiting.pop()
            if axis < 0:
                self._check_leaf(axis, part, view, margin, *choices)
                continue
            if SHARED <= leaves <= before // 2:
                before = leaves
                view = self.relaxation.narrowed(view, part[0], part[1])
            below, above = self._cut(axis, part, places)
            waiting += [(above, view, before), (below, view, before)]
        if next(multipliers, None) is not None:
            raise Rejected(f"{self.where}: multipliers are left over")
        return sum(axis < 0 for axis in self.axis)

    def _leaves_below(self) -> Ints:
        """The number of leaves of every node's subtree; refuses what is not one whole tree."""
        counts: Ints = []
        whole: Ints = []  # subtrees that wait for the node above them
        for axis in reversed(self.axis):
            if axis >= 0 and len(whole) < 2:
                break
            whole.append(whole.pop() + whole.pop() if axis >= 0 else 1)
            counts.append(whole[-1])
        if len(counts) != len(self.axis) or len(whole) != 1:
            raise Rejected(f"{self.where}: the tree is not complete, or ends before its arrays do")
        return counts[::-1]

    def _cut(self, axis: int, part: Part, places: Iterator[int]) -> tuple[Part, Part]:
        """The two parts that a node is cut into, the lower one first; refuses a cut that does not
        cut."""
        (low, high), signs, levels = part
        n = self.row.n
        if axis < n:
            cut = next(places)
            below, above = high.copy(), low.copy()
            below[axis] = above[axis] = cut
            if not low[axis] < cut < high[axis]:
                raise Rejected(f"{self.where}: a cut does not lie inside its box")
            return ((low, below), signs, levels), ((above, high), signs, levels)
        if axis == self.level:
            level = scaled(next(places), self.exp)
            return (part[0], signs, levels.below(level)), (part[0], signs, levels.above(level))
        unit = axis - n
        if unit >= self.row.units or unit in signs or unit in self.row.squares:
            raise Rejected(f"{self.where}: a unit is cut twice, or there is no such ReLU")
        dead, active = ({**signs, unit: sign} for sign in (False, True))
        return (part[0], dead, levels), (part[0], active, levels)

    def _check_leaf(
        self,
        kind: int,
        part: Part,
        view: View,
        margin: Fraction,
        stored: Iterator[Sequence[int]],
        multipliers: Iterator[list[int]],
        supported: Iterator[Sequence[int]],
    ) -> None:
        box, signs, levels = part
        if kind == HOLE:
            if not self._inside_hole(box):
                raise Rejected(f"{self.where}: a leaf is called inside the hole and is not")
            return
        slopes = next(stored) if kind in (STORED, LEVEL) else ()
        outputs = self.row.outputs.weight.height
        weights = next(multipliers, []) if signs or self.row.weighted else [1]
        if len(weights) != outputs + len(signs):
            words = "a leaf of several rows or below unit cuts needs its multipliers"
            raise Rejected(f"{self.where}: {words}")
        given = zip(self.row.sloped, slopes, strict=False)
        leaf = Leaf(weights, signs, {unit: slope for unit, slope in given if unit is not None})
        if kind == LEVEL:
            leaf = self._supported(leaf, next(supported), levels)
        elif self.gauge is not None:
            leaf = leaf._replace(weights=[weights[0], 0, *weights[1:]])
        if kind == STORED:
            leaf = self._coupled(leaf, slopes[len(self.row.sloped) :])
        # Bounds do not always fall with the box: what is known of a larger one may make them worse.
        for seen in (view, self.relaxation.root):
            most = self.relaxation.upper(seen, box, leaf) + weights[0] * margin
            if most < 0 or (most == 0 and (margin or not self.row.strict)):
                return
        raise Rejected(f"{self.where}: a leaf's bound does not show what is claimed of it")

    def _supported(self, leaf: Leaf, numbers: Sequence[int], levels: Levels) -> Leaf:
        """V is left to a support; the bounds of units have theirs."""
        assert self.gauge is not None  # or there were no such leaves
        scale, *betas = leaf.weights
        self.work.spend(len(numbers) * self.row.n * self.row.held, self.relaxation.bits)
        *pairs, (own,) = folded(self.gauge.supports(numbers, levels), 2)
        if own is not None:
            own = (own[0].times(Fraction(scale)), scale * own[1])
        return leaf._replace(weights=[0, scale, *betas], supports=dict(enumerate(pairs)), own=own)

    def _coupled(self, leaf: Leaf, numbers: Sequence[int]) -> Leaf:
        """Units of V∘F coupled to V (0: not coupled): relu(a) ≤ Σ θ_i·relu(b_i) + relu(a − Σ
        θ_i·b_i). A coupled unit is replaced by something larger, so its outer weight must not be
        negative; and it has another input than the one whose sign a cut fixed."""
        first = self.row.gauge - self.row.coupled
        thetas = {}
        for k, chosen in enumerate(numbers):
            unit = first + k
            outer = self.row.outputs.weight.rows[0][self.row.n + unit]
            if chosen and (outer < 0 or chosen > len(self.couplings) or unit in leaf.signs):
                raise Rejected(f"{self.where}: a leaf couples what cannot be coupled")
            if chosen:
                thetas[unit] = self.couplings[chosen - 1][k]
        return leaf._replace(thetas=thetas)

    def _inside_hole(self, box: Box) -> bool:
        """Whether the closed box lies strictly inside the open hole."""
        if not self.centre:
            return False
        radius, ends = self.radius, zip(*box, self.centre, strict=True)
        return all(y - radius < a and b < y + radius for a, b, y in ends)
