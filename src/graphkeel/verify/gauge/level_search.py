"""Decrease of a gauge, slice by slice of V from the outside in, with cuts at units where a slice
needs them.

A slice c₁ ≤ V ≤ c₂ is as thick as its bound allows: one leaf if c₁ can be chosen well below c₂, or
else a fixed step, and the units whose relaxation costs most are cut until every part is proved.
The two children of the best candidates are bounded before one of them is cut (the gain is measured,
not estimated). The last level lies inside the hole; around it the box is cut down to the hole, and
V is larger than that level on what is cut off."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.affine import highest_on
from graphkeel.verify.gauge.homogeneous import Plan
from graphkeel.verify.gauge.levels import (
    Bounded,
    Hidden,
    Leaf,
    LevelRow,
    Part,
    candidates,
    level_row,
)
from graphkeel.verify.gauge.slabs import slabs_around_hole
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.proof import HOLE, LEVEL, Json, tree_entry, unit_numbers
from graphkeel.verify.query import Row
from graphkeel.verify.settings import BRANCH, LevelSettings


class _OutOfTime(Exception):
    """The time is over."""


class _NotProved(Exception):
    """A slice was not proved."""


@dataclass(eq=False)
class _Cut:
    """A node: `axis` as in a proof, `place` of cuts that have one; a leaf has no children."""

    axis: int
    place: float | None = None
    lower: _Cut | None = None
    upper: _Cut | None = None
    leaf: Leaf | None = None


@dataclass(eq=False)
class LevelOutcome:
    """A finished proof (but for its head and margin), a state that violates the row, or neither."""

    entry: Json | None = None
    counterexample: Array | None = None
    nodes: int = 0


@dataclass(eq=False)
class LevelSearch:
    """One row of decrease on its way to a proof by levels; slices that are proved stay so from one
    run to the next.

    Reads: the problem and its row. Writes: `nodes`, `found`, `given_up`, `slices`."""

    problem: Problem
    row: Row
    bounds: LevelRow  # the row, packed
    confirm: Callable[[Array], Array | None]
    settings: LevelSettings
    faces: tuple[Row, ...] = ()  # without Y, where the loop is homogeneous
    nodes: int = 0
    found: Array | None = None
    given_up: bool = False
    slices: list[tuple[float, _Cut]] = field(default_factory=list)  # from the outside in
    expired: Callable[[], bool] = field(init=False)
    numbers: tuple[int, int] = field(init=False)
    level: int = field(init=False)

    def __post_init__(self) -> None:
        firsts = unit_numbers(self.row)[0]
        self.numbers = (self.row.n + firsts[0], self.row.n + firsts[1])
        self.level = self.row.n + self.row.units

    def run(self, expired: Callable[[], bool]) -> LevelOutcome:
        """The whole row, as far as the time allows."""
        self.expired = expired
        before = self.nodes
        try:
            entry = self._section() if self.bounds.shift else self._slices()
        except _OutOfTime:
            return LevelOutcome(None, None, self.nodes - before)
        except _NotProved:
            self.given_up = True
            return LevelOutcome(None, self.found, self.nodes - before)
        return LevelOutcome(entry, None, self.nodes - before)

    def _slices(self) -> Json:
        """Level cuts from the outside in; what lies above each is a slice."""
        last, core = self._core()
        high = self.slices[-1][0] if self.slices else math.inf
        while high > last:
            if len(self.slices) == self.settings.slices:
                raise _NotProved
            self.slices.append(self._slice(high, last))
            high = self.slices[-1][0]
        tree = core(high)
        for low, upper in reversed(self.slices):
            tree = _Cut(self.level, low, tree, upper)
        return {"trees": [_TreeWriter(self.row).entry(tree)]}

    def _section(self) -> Json:
        """The set V = c alone, where the loop is homogeneous around Y: c is not above the least
        value of V on any face of the box, so that every ray from Y meets the set."""
        faces = [Part(row.lower, row.upper) for row in self.faces]
        least = [self.bounds.least_value(face) for face in faces]
        level = self.bounds.start + (min(value for value, _ in least) - self.bounds.start) * (
            1.0 - 2.0**-20
        )
        if not level > self.bounds.start:
            raise _NotProved
        part = Part(self.row.lower, self.row.upper, high=level)
        root = self._hidden(part, {}, self.bounds.first_layer(part))
        tree = self._split(root, level, math.inf)
        if tree is None:
            raise _NotProved
        writer = _TreeWriter(self.row)
        numbers = []
        for face, (_, theta) in zip(faces, least, strict=True):
            support = self.bounds.at_least(face, theta, level)
            if support is None:
                raise _NotProved
            numbers.append(writer.number(support))
        return {"level": level, "faces": numbers, "tree": writer.entry(tree)}

    # ---- slices

    def _slice(self, high: float, last: float) -> tuple[float, _Cut]:
        """A proved slice below a level: (its lower level, its tree)."""
        part = Part(self.row.lower, self.row.upper, high=high)
        first = self.bounds.first_layer(part)
        root = self._hidden(part, {}, first)
        top = high if math.isfinite(high) else self._largest()
        ratio = self._thickest(root, top, last)
        if ratio is not None:
            return ratio * top, self._one_leaf(root, ratio * top)
        for step, most in zip(self.settings.ratios, self.settings.nodes, strict=True):
            low = step * top
            tree = self._split(root, low, self.nodes + most)
            if tree is not None:
                return low, tree
        raise _NotProved

    def _largest(self) -> float:
        """At least the largest value of V on the box, up to rounding."""
        ends = highest_on(self.bounds.rows, self.row.lower, self.row.upper)
        heights = np.maximum(ends + self.bounds.offset, 0.0)
        return float(self.bounds.v @ heights) + self.bounds.start

    def _thickest(self, root: Hidden, top: float, last: float) -> float | None:
        """The smallest share of a level that one leaf reaches down to; None if that is too thin."""
        lowest = max(self.settings.thickest, 0.999 * last / top)
        if self._bound(root, lowest * top).proved:
            return lowest
        good, bad = self.settings.thinnest, lowest
        if not self._bound(root, good * top).proved:
            return None
        for _ in range(self.settings.halvings):
            middle = math.sqrt(good * bad)
            if self._bound(root, middle * top).proved:
                good = middle
            else:
                bad = middle
        return good

    def _one_leaf(self, root: Hidden, low: float) -> _Cut:
        return _Cut(LEVEL, leaf=self._bound(root, low))

    def _split(self, root: Hidden, low: float, most: float) -> _Cut | None:
        """The tree of a slice by cuts at units; None if that takes too many of them."""
        tree = _Cut(LEVEL, leaf=self._bound(root, low))
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            leaf = node.leaf
            if leaf is None or leaf.proved:
                continue
            if self.nodes > most or not self._cut(node, leaf, low):
                return None
            waiting += [child for child in (node.upper, node.lower) if child is not None]
        return tree

    def _cut(self, node: _Cut, leaf: Leaf, low: float) -> bool:
        """Cut a part at the unit whose children have the best bounds; False if there is none."""
        self._test_point(leaf.point)
        best = math.inf
        for unit in candidates(leaf.hidden, self.settings.candidates):
            children = [self._child(leaf, unit, active, low) for active in (False, True)]
            worth = sum(max(child.bound, 0.0) for child in children)
            if worth < best:
                best = worth
                node.axis = self.numbers[unit[0]] + unit[1]
                node.lower, node.upper = (_Cut(LEVEL, leaf=child) for child in children)
            if worth == 0.0:
                break
        node.leaf = None
        return math.isfinite(best)

    def _child(self, leaf: Leaf, unit: tuple[int, int], active: bool, low: float) -> Leaf:
        hidden = leaf.hidden
        signs = {**hidden.signs, unit: active}
        return self._bound(self._hidden(hidden.part, signs, hidden.first), low)

    def _hidden(self, part: Part, signs: dict[tuple[int, int], bool], first: Bounded) -> Hidden:
        self.nodes += 1
        if self.expired():
            raise _OutOfTime
        return self.bounds.hidden(part, signs, first)

    def _bound(self, hidden: Hidden, low: float) -> Leaf:
        return self.bounds.bounded(hidden, low)

    def _test_point(self, point: Array) -> None:
        """Test the maximiser of a bound as a counterexample."""
        if float(self.bounds.value(point[None])[0]) > 0.0:
            self.found = self.confirm(np.clip(point, self.row.lower, self.row.upper))
            if self.found is not None:
                raise _NotProved

    # ---- the hole

    def _core(self) -> tuple[float, Callable[[float], _Cut]]:
        """(a level inside the hole, the tree below any smaller level): the box is cut down to the
        hole, and V is above the level on each slab that is cut off."""
        slabs = slabs_around_hole(self.problem, self.row)
        if slabs is None:
            raise _NotProved
        values = [self.bounds.least_value(Part(slab.lower, slab.upper)) for slab in slabs]
        least = min((value for value, _ in values), default=math.inf)
        if not least > self.bounds.start:
            raise _NotProved
        last = self.bounds.start + self.settings.last * (least - self.bounds.start)

        def core(high: float) -> _Cut:
            tree = _Cut(HOLE)
            for slab, (value, theta) in zip(reversed(slabs), reversed(values), strict=True):
                part = Part(slab.lower, slab.upper)
                hidden = self._hidden(part, {}, self.bounds.first_layer(part))
                leaf = self.bounds.empty_leaf(hidden, theta, value, high)
                if not leaf.proved:
                    raise _NotProved
                outside = _Cut(LEVEL, leaf=leaf)
                lower, upper = (tree, outside) if slab.above else (outside, tree)
                tree = _Cut(slab.axis, slab.place, lower, upper)
            return tree

        return last, core


class _TreeWriter:
    """Writes a finished tree of a row in preorder, with the supports that its leaves name."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.axis: list[int] = []
        self.cut: list[float] = []
        self.slopes: list[NDArray[np.uint8]] = []
        self.multipliers: list[list[int]] = []
        self.supports: list[Array] = []
        self.supported: list[list[int]] = []

    def entry(self, tree: _Cut) -> Json:
        """The JSON of a tree."""
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            self.axis.append(node.axis)
            if node.place is not None:
                self.cut.append(node.place)
            if node.leaf is not None:
                self._leaf(node.leaf)
            waiting += [child for child in (node.upper, node.lower) if child is not None]
        slopes = np.stack(self.slopes)
        supports = (np.stack(self.supports), np.array(self.supported, dtype=np.int32))
        cut = np.array(self.cut)
        return tree_entry(self.row, self.axis, cut, slopes, [], self.multipliers, supports)

    def _leaf(self, leaf: Leaf) -> None:
        # V has no slopes of its own here, and nothing is coupled
        others = np.zeros(2 * len(leaf.hidden.chord_after), np.uint8)
        self.slopes.append(np.concatenate([leaf.slopes, others]))
        if leaf.hidden.signs:
            self.multipliers.append(leaf.multipliers)
        numbers: list[int] = []
        for bounded in (leaf.hidden.first, leaf.hidden.second):
            if not bounded.numbers:
                bounded.numbers = [self.number(line) for line in bounded.supports]
            half = len(bounded.numbers) // 2
            for unit in range(half):
                numbers += [bounded.numbers[unit], bounded.numbers[half + unit]]
        numbers.append(self.number(leaf.support))
        self.supported.append(numbers)

    def number(self, support: Array) -> int:
        """The number of a support in the table, from 1 on; 0 for one that is zero."""
        if not support.any():
            return 0
        self.supports.append(support)
        return len(self.supports)


def level_search(
    problem: Problem,
    row: Row,
    confirm: Callable[[Array], Array | None],
    plan: Plan | None,
    settings: LevelSettings = BRANCH.levels,
) -> LevelSearch | None:
    """The search of a row, or None where it is no decrease of a gauge by F of one hidden layer."""
    inside = (problem.lower <= problem.equilibrium) & (problem.equilibrium <= problem.upper)
    if not inside.all() or (plan is None and problem.hole_radius <= 0.0):
        return None
    bounds = level_row(problem, row, 0.0 if plan is None else plan.margin, settings.shared_gap)
    faces = () if plan is None else tuple(face.row for face in plan.faces)
    return None if bounds is None else LevelSearch(problem, row, bounds, confirm, settings, faces)
