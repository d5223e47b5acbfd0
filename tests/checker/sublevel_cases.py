"""Proofs about sublevel sets with their expected outcome (proof format, 8): F(y) = y/2 + b on the
line, V = |y|, everything on paper, and levels that touch."""

from __future__ import annotations

from typing import Any

from checker_cases import ACCEPTED, case
from hand_loops import Json, array
from property_cases import SHOW, TINY, leaves

STAYS, FALLS = "sublevel-invariance", "sublevel-decrease"
ROOT = "rejected: leaves out a part"
Pair = tuple[list[list[float]], list[float]]

V = [([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])]
CUT_AT_ZERO = ([0, -2, -2], (0.0,))


def network(*layers: Pair) -> list[list[Json]]:
    return [[{"weight": array(weight), "bias": array(bias)}] for weight, bias in layers]


def loop(shift: float = 0.0, **changes: Any) -> Json:
    """F(y) = y/2 + shift and V(y) = |y| on [−1, 1]."""
    content = {
        "F": network(([[0.5]], [shift])),
        "V": network(*V),
        "lower": array([-1.0]),
        "upper": array([1.0]),
        "equilibrium": array([0.0]),
        "hole_radius": 0.0,
        "inner_radius": 0.0,
        "rho": 1.0,
        "positivity": 0.0,
        "class": 0,
        "margin": 0.0,
        "level": 0.5,
    }
    return content | changes


def root(tree: Json, low: float = -1.0, high: float = 1.0) -> Json:
    return {"lower": array([low]), "upper": array([high]), "tree": tree}


def halves(*multipliers: int) -> Json:
    """The root cut at 0, the same multipliers on both sides."""
    axis, cut = CUT_AT_ZERO
    return leaves(axis, [list(multipliers)] * 2, cut, relus=4)


def one_leaf(*multipliers: int) -> Json:
    return leaves([-2], [list(multipliers)], relus=4)


def proof(content: Json, **conditions: Any) -> Json:
    names = {"stays": STAYS, "falls": FALLS}
    shown = {names[name]: cases for name, cases in conditions.items()}
    return {"format": "graphkeel-proof", "version": 4, "loop": content, "conditions": shown}


# On |y| ≤ c: V(F) − c summed with μ times c − V(y); F(y) ≤ 1 and ≥ −1 need no help.
STAY = [root(halves(1, 2)), root(one_leaf(0, 1)), root(one_leaf(0, 1))]


def stays(shift: float = 0.0, cases: Any = None, **changes: Any) -> Any:
    return lambda: proof(loop(shift, **changes), stays=STAY if cases is None else cases)


# c − |y| + 2(|y|/2 − c) = −c
case("sublevel, halving stays", ACCEPTED, stays())
case("sublevel, a level that is all of the box", ACCEPTED, stays(level=1.0))
case("sublevel, a level of nothing touches", SHOW, stays(level=0.0))
# V(F) ≤ c/2 + 1/4 reaches c = 1/2
case("sublevel, a shift that touches", SHOW, stays(0.25))
case("sublevel, a shift too far", SHOW, stays(0.375))
case("sublevel, a case left out", "rejected: needs a list of 3", stays(cases=STAY[:2]))
case("sublevel, a case too many", "rejected: needs a list of 3", stays(cases=[*STAY, STAY[2]]))
case("sublevel, cases in no list", "rejected: needs a list of 3", stays(cases={}))
case("sublevel, a root too high", ROOT, stays(cases=[root(halves(1, 2), -0.5), *STAY[1:]]))
case("sublevel, a root too low", ROOT, stays(cases=[root(halves(1, 2), -1.0, 0.5), *STAY[1:]]))
case("sublevel, a wider root", ACCEPTED, stays(cases=[root(halves(1, 2), -2.0, 2.0), *STAY[1:]]))
# F(y) = y/2 + s: the box's ends 1 and −1 are left at |s| > 1/2, and with the level's help later
case("sublevel, out of the box above", SHOW, stays(0.75, level=8.0))
case("sublevel, out of the box below", SHOW, stays(-0.75, level=8.0))
HIGH = [root(halves(0, 1)), root(one_leaf(0, 1)), root(one_leaf(0, 1))]
case("sublevel, up to the box's upper end", SHOW, stays(0.5, HIGH, level=8.0))
case("sublevel, just below that end", ACCEPTED, stays(0.5 - TINY, HIGH, level=8.0))
case("sublevel, down to the box's lower end", SHOW, stays(-0.5, HIGH, level=8.0))
case("sublevel, just above that end", ACCEPTED, stays(TINY - 0.5, HIGH, level=8.0))
# 2y is outside the set for y = 1/2, and back in it for none
DOUBLE = network(([[2.0]], [0.0]))
case("sublevel, doubling", SHOW, stays(F=DOUBLE))
case(
    "sublevel, a set that was only reached",
    SHOW,
    stays(F=DOUBLE, cases=[root(halves(2, 1)), root(halves(2, 1)), root(halves(2, 1))]),
)
# F = y/2 within |y| ≤ 1/2 and leaves the box beyond: there 8(c − |y|) + |F| − 1 < 0 at c = 1/2 only
STEEP = network(
    ([[1.0], [-1.0], [1.0], [-1.0]], [0.0, 0.0, -0.5, -0.5]), ([[0.5, -0.5, 4.0, -4.0]], [0.0])
)
KEPT = [
    root(
        leaves(
            [0, -2, 0, -2, 0, -2, -2],
            [[8, 1], [1, 2], [1, 2], [8, 1]],
            (-0.5, 0.0, 0.5),
            relus=8,
        )
    ),
    root(leaves([0, -2, -2], [[0, 1], [8, 1]], (0.5,), relus=8)),
    root(leaves([0, -2, -2], [[8, 1], [0, 1]], (-0.5,), relus=8)),
]
case("sublevel, in the box by the level", ACCEPTED, stays(F=STEEP, cases=KEPT))
case("sublevel, out of the box by the level", SHOW, stays(F=STEEP, cases=KEPT, level=0.875))
# V = |y|/4 ≤ 1/2 on all of the box, and F = y/2 ± 3/4 leaves it: V before the step is no help
FLAT = network(V[0], ([[0.25, 0.25]], [0.0]))
BOTH = [root(one_leaf(0, 1)), root(one_leaf(1, 1)), root(one_leaf(1, 1))]
case("sublevel, flat, out of the box above", SHOW, stays(0.75, BOTH, V=FLAT))
case("sublevel, flat, out of the box below", SHOW, stays(-0.75, BOTH, V=FLAT))


# ---- decrease: |y/2 + s| − ρ·|y|


def falls(cases: list[Json], shift: float = 0.0, **changes: Any) -> Any:
    return lambda: proof(loop(shift, **changes), falls=cases)


SIDES = [root(one_leaf(0, 1), 0.25, 1.0), root(one_leaf(0, 1), -1.0, -0.25)]
HOLED = {"inner_radius": 0.25}
case("sublevel, falls outside the hole", ACCEPTED, falls(SIDES, **HOLED))
case("sublevel, falls by ρ", ACCEPTED, falls(SIDES, rho=0.5 + TINY, **HOLED))
case("sublevel, ρ that touches", SHOW, falls(SIDES, rho=0.5, **HOLED))
case("sublevel, one side of the hole", "rejected: needs a list of 2", falls(SIDES[:1], **HOLED))
case("sublevel, a smaller hole above", ROOT, falls(SIDES, inner_radius=0.25 - TINY))
NEAR = [root(one_leaf(0, 1), 0.125, 1.0), SIDES[1]]
case("sublevel, a smaller hole below", ROOT, falls(NEAR, inner_radius=0.125))
WIDE = [root(one_leaf(0, 1), -1.0, -0.5)]
case("sublevel, a hole beyond the box", "unreadable: vacuous", falls([], inner_radius=2.0))
case(
    "sublevel, a hole up to one end",
    ACCEPTED,
    falls(WIDE, equilibrium=array([0.25]), inner_radius=0.75 + TINY),
)
case(
    "sublevel, a hole that leaves out its edge",
    "rejected: needs a list of 2",
    falls(WIDE, equilibrium=array([0.25]), inner_radius=0.75),
)
# no hole: V(F) − V = −|y|/2 touches 0 at 0, unless a floor keeps away from it
WHOLE = [root(halves(0, 0, 1))]
case("sublevel, at the equilibrium", SHOW, falls([root(halves(0, 1))]))
# |y| − f + 4(|y|/2 − |y|) = −|y| − f < 0
FLOOR = [root(halves(0, 1, 4))]
case("sublevel, a floor", ACCEPTED, falls(FLOOR, floor=0.125))
case("sublevel, a floor of nothing", SHOW, falls(FLOOR, floor=0.0))
case("sublevel, a floor not used", SHOW, falls(WHOLE, floor=0.125))
# with a shift of 1/8, V falls where y > 1/4: 4(|y/2 + 1/8| − |y|) + |y| − f on y ≥ 0 is 1/2 − y − f
SHIFTED = [root(halves(0, 1, 4))]
case(
    "sublevel, a shift and its floor", ACCEPTED, falls(SHIFTED, 0.125, floor=0.5 + TINY, level=1.0)
)
case("sublevel, a floor that touches", SHOW, falls(SHIFTED, 0.125, floor=0.5, level=1.0))
# and falls below the level only if it is low: c − |y| is not needed above, needed for growth
GROWN = network(([[1.0], [-1.0], [1.0]], [0.0, 0.0, -0.5]), ([[0.5, -0.5, 4.0]], [0.0]))
# F = y/2 + 4·relu(y − 1/2): V grows beyond y = 4/7; on [−1, −1/4] ∪ [1/4, 1] with |y| ≤ 1/2
LOW_SIDES = [
    root(leaves([0, -2, -2], [[0, 1], [8, 1]], (0.5,), relus=7), 0.25, 1.0),
    root(leaves([-2], [[0, 1]], relus=7), -1.0, -0.25),
]
case("sublevel, growth above the level", ACCEPTED, falls(LOW_SIDES, F=GROWN, **HOLED))
case("sublevel, growth below the level", SHOW, falls(LOW_SIDES, F=GROWN, level=0.75, **HOLED))
case(
    "sublevel, both conditions",
    ACCEPTED,
    lambda: proof(loop(**HOLED), stays=STAY, falls=SIDES),
)


# ---- in the plane: slabs around the hole, those of axis 1 between those of axis 0

CROSS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
WIDE_SLABS = [(0.25, -1.0, 1.0, 1.0), (-1.0, -1.0, -0.25, 1.0)]
BETWEEN = [(-0.25, 0.25, 0.25, 1.0), (-0.25, -1.0, 0.25, -0.25)]
Slab = tuple[float, float, float, float]


def plane(slabs: list[Slab], **changes: Any) -> Any:
    """F(y) = y/2 and V(y) = |y₁| + |y₂| on [−1, 1]², a hole of 1/4, one tree a slab: cut at 0 along
    the axis that it spreads over, V(F) − V = −V/2 there."""
    content = loop(
        F=network(([[0.5, 0.0], [0.0, 0.5]], [0.0, 0.0])),
        V=network((CROSS, [0.0] * 4), ([[1.0] * 4], [0.0])),
        lower=array([-1.0, -1.0]),
        upper=array([1.0, 1.0]),
        equilibrium=array([0.0, 0.0]),
        level=8.0,
        inner_radius=0.25,
    )
    return lambda: proof(content | changes, falls=[_slab(*ends) for ends in slabs])


def _slab(left: float, low: float, right: float, high: float) -> Json:
    axis = 0 if left < 0.0 < right else 1
    tree = leaves([axis, -2, -2], [[0, 1]] * 2, (0.0,), relus=8)
    return {"lower": array([left, low]), "upper": array([right, high]), "tree": tree}


def moved(slabs: list[Slab], place: int, end: int, by: float) -> list[Slab]:
    """The slabs, one end of one of them moved."""
    ends = list(slabs[place])
    ends[end] += by
    return [*slabs[:place], (ends[0], ends[1], ends[2], ends[3]), *slabs[place + 1 :]]


SLABS = WIDE_SLABS + BETWEEN
BOXES = [*WIDE_SLABS, (-1.0, 0.25, 1.0, 1.0), (-1.0, -1.0, 1.0, -0.25)]
case("slabs, around the hole", ACCEPTED, plane(SLABS))
case("slabs, as wide as the box", ACCEPTED, plane(BOXES))
NARROW = [(0.25, -0.25, 1.0, 0.25), (-1.0, -0.25, -0.25, 0.25), *BETWEEN]
case("slabs, none in the corners", ROOT, plane(NARROW))
TURNED = [(0.25, -0.25, 1.0, 0.25), (-1.0, -0.25, -0.25, 0.25), *BOXES[2:]]
case("slabs, axis 0 between those of axis 1", ROOT, plane(TURNED))
case("slabs, in another order", ROOT, plane([*BETWEEN, *WIDE_SLABS]))
case("slabs, one of them twice", ROOT, plane([SLABS[0], SLABS[0], *BETWEEN]))
for place in range(4):
    left_out = [*SLABS[:place], *SLABS[place + 1 :]]
    case(f"slabs, without number {place}", "rejected: needs a list of 4", plane(left_out))
    for end in range(4):
        inward = TINY if end < 2 else -TINY
        case(f"slabs, a gap at {place}, {end}", ROOT, plane(moved(SLABS, place, end, inward)))
        wider = plane(moved(SLABS, place, end, -inward))
        case(f"slabs, an overlap at {place}, {end}", ACCEPTED, wider)
# a hole beside the box: its one part is the box
BESIDE = {"lower": array([0.5, -1.0])}
case("slabs, a hole beside the box", ACCEPTED, plane([(0.5, -1.0, 1.0, 1.0)], **BESIDE))
case("slabs, more than there are", "rejected: needs a list of 1", plane(SLABS, **BESIDE))
case("slabs, a gap beside the hole", ROOT, plane([(0.5, -1.0, 1.0, 0.5)], **BESIDE))
HALF = {"lower": array([-1.0, 2.0])}
case("slabs, half a box of nothing", "unreadable: the box is empty", plane(SLABS, **HALF))
OFF = {"equilibrium": array([0.0, TINY])}
case("slabs, a hole that was moved", ROOT, plane(SLABS, **OFF))
case("slabs, a smaller hole", ROOT, plane(SLABS, inner_radius=0.25 - TINY))
case("slabs, a larger hole", ROOT, plane(SLABS, inner_radius=0.25 + TINY))


# ---- what is no such proof

case(
    "sublevel, no level",
    "unreadable: needs a level",
    lambda: proof({k: v for k, v in loop().items() if k != "level"}, stays=STAY),
)
case("sublevel, no condition", "unreadable: shows no condition", lambda: proof(loop()))
case(
    "sublevel, another condition",
    "unreadable: must be an object",
    lambda: proof(loop()) | {"conditions": {"hole": []}},
)
case(
    "sublevel, cases of another condition",
    "rejected: of this very condition",
    lambda: proof(loop()) | {"conditions": {"decrease": STAY}},
)
RHO = "unreadable: ρ must lie in"
NUMBERS = "unreadable: the inner radius must be"
case("sublevel, a floor above the level", NUMBERS, falls(FLOOR, floor=0.75))
case("sublevel, ρ above one", RHO, falls(SIDES, rho=1.25, **HOLED))
case("sublevel, ρ of nothing", RHO, falls(SIDES, rho=0.0, **HOLED))
case("sublevel, a radius below zero", NUMBERS, falls(SIDES, inner_radius=-0.25))
MAPS = "unreadable: the loop, V and the class do not fit"
case("sublevel, V of two numbers", MAPS, stays(V=network(V[0])))
case("sublevel, V of two states", MAPS, stays(V=network(([[1.0, 1.0]], [0.0]))))
case(
    "sublevel, F to two states",
    "unreadable: loop.lower must have 2",
    stays(F=network(([[0.5], [0.5]], [0.0, 0.0]))),
)
case(
    "sublevel, layers that do not fit",
    "unreadable: V: the layers do not fit",
    stays(V=network(V[0], ([[1.0]], [0.0]))),
)
case(
    "sublevel, a bias that does not fit",
    "unreadable: V: the factors of a layer do not fit",
    stays(V=network((V[0][0], [0.0]), V[1])),
)
case(
    "sublevel, an empty box",
    "unreadable: the box is empty",
    stays(lower=array([2.0])),
)
case(
    "sublevel, a level that is text",
    "unreadable: level must be a number",
    stays(level="0.5"),
)
case("sublevel, an unknown name", "unreadable: loop must be", stays(name="a loop"))
case(
    "sublevel, a network beside the loop",
    "unreadable: the proof must be",
    lambda: stays()() | {"network": {}},
)
