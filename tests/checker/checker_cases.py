"""Certificates with their expected outcome: each rule with a case that holds and one that just
fails. Every seal and everything derived is computed anew, so that a file fails by its lie alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hand_loops import (
    ABSOLUTE,
    BENT,
    ENDS,
    HIGH,
    LEVEL,
    LOW,
    PLANE_V,
    SLICE_CUTS,
    SLICES,
    SUPPORTED,
    SUPPORTS,
    UP_MULTIPLIERS,
    Hand,
    Json,
    array,
    branch,
    certificate,
    contraction,
    coupled,
    faces,
    head,
    identity,
    level_tree,
    line,
    plane,
    plane_faces,
    resealed,
    sealed_bytes,
    section,
    slices,
    source,
    thirds,
    tree,
)

UP, DOWN = math.inf, -math.inf
CASES: dict[str, tuple[Callable[[], bytes], str]] = {}
ACCEPTED = "accepted"
BOUND = "rejected: does not show"
ROOT = "rejected: leaves out a part"


def next_to(value: float, towards: float) -> float:
    return math.nextafter(value, towards)


def case(name: str, expected: str, make: Callable[[], Any]) -> None:
    """`make` returns bytes, a certificate's content, or a loop."""

    def raw() -> bytes:
        made = make()
        made = certificate(made) if isinstance(made, Hand) else made
        return made if isinstance(made, bytes) else sealed_bytes(made)

    assert name not in CASES, name
    CASES[name] = (raw, expected)


def proof(loop: Hand, condition: str, value: Json) -> Hand:
    return replace(loop, proofs={**loop.proofs, condition: value})


def lie(loop: Hand, change: Callable[[Json], Any]) -> Json:
    """A certificate with one place changed and nothing derived anew."""
    content = certificate(loop)
    change(content)
    return content


def put(*path: Any) -> Callable[[Json], None]:
    """Set what stands at a path to the last entry."""
    *way, name, new = path

    def change(content: Json) -> None:
        place: Any = content
        for step in way:
            place = place[step]
        place[name] = new

    return change


# ---- branch proofs: rows, ties, roots, cuts, hole leaves

case("line", ACCEPTED, line)
case("decrease, ρ one ulp lower", BOUND, lambda: replace(line(), rho=next_to(0.5, DOWN)))
case("positivity, c one ulp higher", BOUND, lambda: replace(line(), positivity=next_to(1, UP)))
case("rho one, strict", ACCEPTED, lambda: replace(line(), rho=1.0))
STILL: list[Any] = [([[1.0]], [0.0])]
case("rho one, a plateau", BOUND, lambda: replace(line(), forward=STILL, rho=1.0))
case("rho below one, a plateau", BOUND, lambda: replace(line(), forward=STILL, rho=0.9375))


def with_decrease(
    axis: list[int], cut: tuple[float, ...], ends: Any = ENDS, **more: Any
) -> Callable[[], Hand]:
    def make() -> Hand:
        value = branch("decrease", tree("decrease", *ends, axis, cut, **more))
        return proof(line(), "decrease", value)

    return make


TWO = (0.9375, 1.0625)
case(
    "hole leaf touches the hole",
    "rejected: called inside the hole",
    with_decrease([0, -2, 0, -1, -2], (0.875, 1.0625)),
)
case(
    "hole leaf touches above",
    "rejected: called inside the hole",
    with_decrease([0, -2, 0, -1, -2], (0.9375, 1.125)),
)
case(
    "hole leaf just inside",
    ACCEPTED,
    with_decrease([0, -2, 0, -1, -2], (next_to(0.875, UP), next_to(1.125, DOWN))),
)
case("no hole leaf, the middle is not shown", BOUND, with_decrease([0, -2, 0, -2, -2], TWO))
case("root narrower", ROOT, with_decrease([0, -2, 0, -1, -2], TWO, ([0.0], [next_to(2, DOWN)])))
case(
    "root begins later",
    ROOT,
    with_decrease([0, -2, 0, -1, -2], TWO, ([next_to(0, UP) + 2.0**-300], [2.0])),
)
case("root wider", ROOT, with_decrease([0, -2, 0, -1, -2], TWO, ([0.0], [4.0])))
case(
    "a cut on the box's end",
    "rejected: a cut does not lie inside",
    with_decrease([0, -2, 0, -1, 0, -2, -2], (*TWO, 2.0)),
)
case(
    "a cut on the box's lower end",
    "rejected: a cut does not lie inside",
    with_decrease([0, 0, -2, -2, 0, -1, -2], (0.9375, 0.0, 1.0625)),
)
case(
    "a cut outside its box",
    "rejected: a cut does not lie inside",
    with_decrease([0, -2, 0, -1, -2], (0.9375, 0.5)),
)
case("a tree not complete", "rejected: not complete", with_decrease([0, -2, 0, -1], TWO))
case(
    "a tree too long",
    "rejected: ends before its arrays",
    with_decrease([0, -2, 0, -1, -2, -2], TWO),
)
case(
    "a cut too many",
    "rejected: do not fit together",
    with_decrease([0, -2, 0, -1, -2], (*TWO, 1.5)),
)
case("a cut too few", "rejected: do not fit together", with_decrease([0, -2, 0, -1, -2], (0.9375,)))
case("an empty tree", "rejected: do not fit together", with_decrease([], ()))
case(
    "an unknown kind of leaf",
    "rejected: do not fit together",
    with_decrease([0, -2, 0, -4, -2], TWO),
)
case(
    "an axis that is not there",
    "rejected: no such ReLU",
    with_decrease([0, -2, 5, -1, -2], TWO[:1]),
)
case(
    "a leaf of the wrong kind",
    "rejected: do not fit together",
    with_decrease([0, -3, 0, -1, -2], TWO),
)
case(
    "slopes left over",
    "rejected: do not fit together",
    with_decrease([0, -2, 0, -1, -2], TWO, slopes=[[0] * 6]),
)
case(
    "slopes too short",
    "rejected: a leaf needs 6",
    with_decrease([0, -3, 0, -1, -2], TWO, slopes=[[0] * 5]),
)
case(
    "multipliers left over",
    "rejected: left over",
    with_decrease([0, -2, 0, -1, -2], TWO, multipliers=[[1]]),
)
case(
    "another row",
    "rejected: missing or out of order",
    lambda: proof(
        line(), "decrease", branch("decrease", tree("positivity", *ENDS, [0, -2, 0, -1, -2], TWO))
    ),
)
case(
    "no tree",
    "rejected: needs a list of 1 trees",
    lambda: proof(line(), "decrease", branch("decrease")),
)
case(
    "trees of another condition",
    "rejected: this very condition",
    lambda: proof(line(), "decrease", line().proofs["invariance"]),
)
case(
    "another version",
    "rejected: version 4",
    lambda: proof(line(), "decrease", line().proofs["decrease"] | {"version": 2}),
)
case(
    "version true",
    "rejected: version 4",
    lambda: proof(line(), "decrease", line().proofs["decrease"] | {"version": True}),
)
case(
    "an unknown kind",
    "unreadable: unknown kind",
    lambda: proof(line(), "decrease", line().proofs["decrease"] | {"kind": "box"}),
)
case(
    "a kind that is no text",
    "unreadable: malformed",
    lambda: proof(line(), "decrease", line().proofs["decrease"] | {"kind": []}),
)


def rows_swapped(condition: str) -> Hand:
    loop = line()
    value = copy.deepcopy(loop.proofs[condition])
    value["trees"].reverse()
    return proof(loop, condition, value)


case("rows swapped", "rejected: out of order", lambda: rows_swapped("positivity"))
case("upper and lower swapped", "rejected: out of order", lambda: rows_swapped("invariance"))


def positivity(up: Json, down: Json, **changes: Any) -> Callable[[], Hand]:
    value = branch("positivity", up, down)
    return lambda: replace(line(), proofs={"positivity": value}, **changes)


PLUS = tree("+0", [1.125], [2.0], [-2])
MINUS = tree("-0", [0.0], [0.875], [-2])
case(
    "a root that begins before the hole's shell",
    ACCEPTED,
    positivity(tree("+0", [1.0], [2.0], [-2]), tree("-0", [0.0], [1.0], [-2])),
)
case(
    "a root that begins after it",
    ROOT,
    positivity(tree("+0", [next_to(1.125, UP)], [2.0], [-2]), MINUS),
)
case(
    "a root that ends before it",
    ROOT,
    positivity(PLUS, tree("-0", [0.0], [next_to(0.875, DOWN)], [-2])),
)
case("a sided root that ends early", ROOT, positivity(tree("+0", [1.125], [1.5], [-2]), MINUS))
case(
    "a hole leaf in a sided row",
    "rejected: called inside",
    positivity(tree("+0", [1.0], [2.0], [0, -1, -2], (1.0625,)), MINUS),
)
case(
    "a row called empty that is not",
    "unreadable: must be an object",
    positivity({"row": "+0", "empty": True}, MINUS),
)
case(
    "a row that is empty",
    ACCEPTED,
    positivity(
        {"row": "+0", "empty": True},
        tree("-0", [0.0], [0.0], [-2]),
        hole_radius=1.0,
        upper=[next_to(2, DOWN)],
    ),
)
case(
    "a shell of one point is not empty",
    "unreadable: must be an object",
    positivity({"row": "+0", "empty": True}, tree("-0", [0.0], [0.0], [-2]), hole_radius=1.0),
)
case(
    "a lower shell of one point is not empty",
    "unreadable: must be an object",
    positivity(tree("+0", [2.0], [2.0], [-2]), {"row": "-0", "empty": True}, hole_radius=1.0),
)
case(
    "a lower row that is empty",
    ACCEPTED,
    positivity(
        tree("+0", [2.0], [2.0], [-2]), {"row": "-0", "empty": True}, hole_radius=1.0, lower=[0.5]
    ),
)


def strictly_positive(leaf: Json, **changes: Any) -> Callable[[], Hand]:
    return lambda: proof(
        replace(line(), positivity=0.0, **changes), "positivity", branch("positivity", leaf)
    )


SPLIT = [0, -2, 0, -1, -2]
case("c = 0", ACCEPTED, strictly_positive(tree("positivity", *ENDS, SPLIT, TWO)))
case(
    "c = 0 and V = 0 at a point",
    BOUND,
    strictly_positive(
        tree("positivity", *ENDS, SPLIT, TWO),
        hole_radius=0.125,
        lyapunov=[([[1.0], [-1.0]], [-1.0625, 0.0]), ([[1.0, 1.0]], [0.0])],
    ),
)
case("c = 0 needs the hole", BOUND, strictly_positive(tree("positivity", *ENDS, [-2])))
case(
    "c = 0 and V = 0 at the hole's edge",
    BOUND,
    strictly_positive(
        tree("positivity", *ENDS, [0, -2, 0, -1, -2], (0.9375, 1.0625)),
        lyapunov=[([[1.0], [-1.0]], [-1.0, 0.9375]), ([[1.0, 1.0]], [0.0])],
    ),
)


def invariant(bias: float, slope: float = 0.5) -> Hand:
    loop = replace(line(), forward=[([[slope]], [bias])], equilibrium=[1.0])
    return replace(loop, proofs={"invariance": loop.proofs["invariance"]})


case("invariance touches above", ACCEPTED, lambda: invariant(1.0))
case("invariance one ulp above", BOUND, lambda: invariant(next_to(1.0, UP)))
case("invariance touches below", ACCEPTED, lambda: invariant(0.0))
case("invariance one ulp below", BOUND, lambda: invariant(-(2.0**-300)))

# ---- stored slopes


def sloped(slopes: list[int], c: float = 1.0) -> Callable[[], Hand]:
    up = tree("+0", *ENDS, [-3], slopes=[slopes])
    down = tree("-0", *ENDS, [-3], slopes=[slopes[::-1]])
    return positivity(up, down, positivity=c)


case("stored slopes", ACCEPTED, sloped([255, 0]))
case("a stored slope one step lower", BOUND, sloped([254, 0]))
case("the other stored slope", BOUND, sloped([255, 1]))
case("default slopes do not show it", BOUND, positivity(tree("+0", *ENDS, [-2]), MINUS))
case("stored slopes with another c", BOUND, sloped([255, 0], 0.5))

# ---- couplings

case("couplings", ACCEPTED, coupled)


def coupling(slopes: list[int], theta: Any, rho: float = 0.5, **changes: Any) -> Callable[[], Hand]:
    leaf = tree("decrease", *ENDS, [-3], slopes=[slopes], couplings=theta)
    return lambda: proof(
        replace(coupled(), rho=rho, **changes), "decrease", branch("decrease", leaf)
    )


HALVES = [[[0.5, 0.0], [0.0, 0.5]]]
case("couplings, ρ one ulp lower", BOUND, lambda: replace(coupled(), rho=next_to(0.5, DOWN)))
case("couplings of different slopes", BOUND, coupling([0, 0, 128, 127, 1, 1], HALVES, rho=0.75))
case("couplings of equal slopes", ACCEPTED, coupling([0, 0, 7, 7, 1, 1], HALVES, rho=0.75))
case("one unit not coupled", BOUND, coupling([0, 0, 128, 128, 1, 0], HALVES))
case("a coupling too weak", BOUND, coupling([0, 0, 128, 128, 1, 1], [[[0.25, 0.0], [0.0, 0.5]]]))
case(
    "a negative coupling",
    "rejected: numbers ≥ 0",
    coupling([0, 0, 128, 128, 1, 1], [[[0.5, -0.5], [0.0, 0.5]]]),
)
case(
    "a coupling that is not there",
    "rejected: cannot be coupled",
    coupling([0, 0, 128, 128, 1, 2], HALVES),
)
case(
    "a coupling of another shape",
    "rejected: must be 2 × 2",
    coupling([0, 0, 128, 128, 1, 1], [[[0.5, 0.0]]]),
)
# V = 2·relu(z) − relu(z) has an outer weight below zero: coupling it would prove V(F) = 0.
MIXED: list[Any] = [([[1.0], [1.0]], [-1.0, -1.0]), ([[2.0, -1.0]], [0.0])]
case(
    "a unit with a negative weight",
    "rejected: cannot be coupled",
    coupling([0, 0, 0, 0, 0, 1], [[[0.0, 0.0], [4.0, 0.0]]], lyapunov=MIXED),
)
case(
    "an overcoupled growing loop",
    BOUND,
    coupling([0, 0, 128, 128, 1, 1], [[[2.0, 0.0], [0.0, 2.0]]], forward=[([[2.0]], [-1.0])]),
)


def cut_and_coupled() -> Hand:
    """F doubles the distance: V(F(y)) = 2·V(y). On either side of Y the unit of V∘F that is not
    active there is cut, and then coupled with θ = 64. If its multiplier counted the coupled input,
    a − 64·b, whose sign the cut did not fix, that would prove a decrease."""
    theta = [[[64.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 64.0]]]
    slopes = [[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 2]]
    axis = [0, 1, -3, -2, 2, -3, -2]
    weights = [[1, 1], [1, 0], [1, 1], [1, 0]]
    leaf = tree("decrease", *ENDS, axis, (1.0,), slopes, theta, multipliers=weights)
    loop = line(hole_radius=0.0, proofs={"decrease": branch("decrease", leaf)})
    return replace(loop, forward=[([[2.0]], [-1.0])], rho=0.75)


case("a unit cut and coupled", "rejected: couples what cannot be coupled", cut_and_coupled)

# ---- unit cuts

case("unit cuts", ACCEPTED, thirds)
CELLS = [1, 2, -2, -2, 2, -2, -2]


def cells(multipliers: Any, axis: list[int] | None = None, **changes: Any) -> Callable[[], Hand]:
    def make() -> Hand:
        loop = thirds(**changes)
        value = copy.deepcopy(loop.proofs["positivity"])
        value["trees"][0] = tree("+0", *ENDS, axis or CELLS, multipliers=multipliers)
        return proof(loop, "positivity", value)

    return make


def weights(index: int, line: Any) -> list[Any]:
    return [line if i == index else old for i, old in enumerate(UP_MULTIPLIERS)]


NEEDS = "rejected: multipliers"
case("other exact multipliers", ACCEPTED, cells(weights(2, [3, 1, 1])))
case("larger multipliers", ACCEPTED, cells(weights(2, [3 * 10**30, 2 * 10**30, 0])))
case("multipliers nearly two thirds", BOUND, cells(weights(2, [3 * 10**30, 2 * 10**30 + 1, 0])))
case("multipliers one too small", BOUND, cells(weights(2, [3, 1, 0])))
case("multipliers as if signs were exchanged", BOUND, cells(weights(0, [3, 0, 1])))
case("a negative multiplier", NEEDS, cells(weights(2, [3, 3, -1])))
case("Q = 0", NEEDS, cells(weights(2, [0, 0, 0])))
case("Q below zero", NEEDS, cells(weights(2, [-1, 0, 0])))
case("a multiplier that is no integer", NEEDS, cells(weights(2, [3, 2.0, 0])))
case("a multiplier that is true", NEEDS, cells(weights(2, [True, 0, 0])))
case("multipliers too short", NEEDS, cells(weights(2, [3, 2])))
case("multipliers too long", NEEDS, cells(weights(2, [3, 2, 0, 0])))
case("a line without a number", NEEDS, cells(weights(2, [])))
case("no multipliers", NEEDS, cells(None))
case("multipliers that are no list", "unreadable: multipliers must be an object", cells({"a": 1}))
case("too few multipliers", NEEDS, cells(UP_MULTIPLIERS[:3]))
case("a unit cut twice", "rejected: cut twice", cells(UP_MULTIPLIERS, [1, 1, -2, -2, 2, -2, -2]))
case("one unit cut is not enough", BOUND, cells([[1, 0], [1, 0]], [1, -2, -2]))
case(
    "a unit that is not there",
    "rejected: no such ReLU",
    cells(UP_MULTIPLIERS, [1, 3, -2, -2, 2, -2, -2]),
)
case("unit cuts with c too large", BOUND, cells(UP_MULTIPLIERS, positivity=next_to(3.0, UP)))


# ---- levels of V

case("slices of V", ACCEPTED, slices)
SPENT = "rejected: uses more of V than there is"


def supports(index: int, line: list[float]) -> list[list[float]]:
    return [line if i == index else old for i, old in enumerate(SUPPORTS)]


def supported(index: int, line: list[int]) -> list[list[int]]:
    return [line if i == index else old for i, old in enumerate(SUPPORTED)]


def levels(**choices: Any) -> Callable[[], Hand]:
    return lambda: slices(level_tree(**choices))


def level_cuts(index: int, place: float) -> tuple[float, ...]:
    return tuple(place if i == index else old for i, old in enumerate(SLICE_CUTS))


case("a slice that is thicker by one ulp", BOUND, levels(cut=level_cuts(2, next_to(5 / 16, DOWN))))
case("a level that cuts nothing off", BOUND, levels(cut=level_cuts(2, 1 / 4)))
case("slices that do not overlap", BOUND, levels(cut=level_cuts(0, 3 / 4)))
case(
    "slices of a loop that does not decrease",
    BOUND,
    lambda: slices(forward=[([[1.0]], [0.0])]),
)
case("a negative θ", "rejected: numbers ≥ 0", levels(supports=supports(0, [0.5, 0.0, -0.5, 0.0])))
case("a negative λ", "rejected: numbers ≥ 0", levels(supports=supports(0, [-0.5, 0.0, 0.5, 0.0])))
case("a negative γ", "rejected: numbers ≥ 0", levels(supports=supports(2, [0.0, -1.0, 0.0, 0.0])))
case("θ above λ·v", SPENT, levels(supports=supports(0, [next_to(0.5, DOWN), 0.0, 0.5, 0.0])))
case("θ without λ", SPENT, levels(supports=supports(0, [0.0, 0.0, 0.5, 0.0])))
case("θ that ρ alone would allow", SPENT, levels(supports=supports(0, [0.0, 0.0, 0.25, 0.0])))
case("γ above ρ", SPENT, levels(supports=supports(2, [0.0, next_to(0.75, UP), 0.0, 0.0])))
case("γ above λ", SPENT, levels(supports=supports(0, [0.5, 0.25, 0.5, 0.0])))
case("λ without an upper level", SPENT, levels(supported=supported(4, [1, 2, 2, 1, 3])))
case("γ without a lower level", SPENT, levels(supported=supported(0, [0, 0, 0, 0, 3])))
case("large multipliers of V", ACCEPTED, levels(supports=supports(3, [2.0**90, 0.0, 0.0, 2.0**90])))
case("the wrong side's support", BOUND, levels(supported=supported(0, [0, 0, 0, 0, 5])))
case("supports exchanged", BOUND, levels(supported=supported(2, [2, 1, 1, 2, 3])))
case("no supports of the units", BOUND, levels(supported=supported(2, [0, 0, 0, 0, 3])))
case("no support of the row", BOUND, levels(supported=supported(2, [1, 2, 2, 1, 0])))
case(
    "a support that is not there",
    "rejected: not there",
    levels(supported=supported(2, [1, 2, 2, 1, 6])),
)
case(
    "a support below none", "rejected: not there", levels(supported=supported(2, [1, 2, 2, 1, -1]))
)
FIT = "rejected: do not fit together"
case("supports of a leaf left out", FIT, lambda: slices(_without_line()))
case("too few numbers of supports", FIT, levels(supported=[line[:4] for line in SUPPORTED]))
case("too few numbers in a support", "rejected: numbers ≥ 0", levels(supports=[[0.5, 0.0, 0.5]]))
case(
    "a level leaf for the hole",
    "rejected: inside the hole",
    levels(axis=[*SLICES[:4], -1, *SLICES[5:]], supported=SUPPORTED[1:]),
)
case(
    "a slice left out", "rejected: not complete", levels(axis=SLICES[:-1], supported=SUPPORTED[:-1])
)
case(
    "a slice too many",
    "rejected: ends before",
    levels(axis=[*SLICES, -4], supported=[*SUPPORTED, SUPPORTED[-1]]),
)
case("a level cut without its place", FIT, levels(cut=SLICE_CUTS[1:]))
case(
    "a plain leaf between levels", BOUND, levels(axis=[*SLICES[:-1], -2], supported=SUPPORTED[:-1])
)
case(
    "the children of a level exchanged",
    SPENT,
    levels(
        axis=[LEVEL, -4, LEVEL, LEVEL, 0, -4, 0, -1, -4, -4, -4],
        supported=[SUPPORTED[4], *SUPPORTED[:4]],
    ),
)


def unit_between_levels(unit: int) -> Callable[[], Hand]:
    """Left of the hole a unit is cut: one part by levels as before, the other a plain leaf, which
    the unit's sign empties (or does not), taken a thousand times."""
    axis = [*SLICES[:4], unit, -4, -2, *SLICES[5:]]
    return levels(axis=axis, multipliers=[[1, 0], [1, 1000]])


def couplings_of_level_leaves() -> Hand:
    count = len(SUPPORTED)
    return slices(level_tree() | {"slopes": array([0, 0, 0, 0, 7, 7] * count, [count, 6], "|u1")})


case("couplings of level leaves are not read", ACCEPTED, couplings_of_level_leaves)
case("a plain leaf below a unit cut between levels", ACCEPTED, unit_between_levels(1))
case("a plain leaf of the unit's other sign", BOUND, unit_between_levels(2))


def _without_line() -> Json:
    value = level_tree()
    return value | {"supported": array(SUPPORTED[1:], dtype="<i4")}


def without_supports() -> Hand:
    value = level_tree()
    return slices({name: entry for name, entry in value.items() if not name.startswith("support")})


case("level cuts without supports", FIT, without_supports)


def negative_gauge() -> Hand:
    """V = |y − 1| written with a third unit that counts −1/2·relu(y − 1): an outer weight below
    zero, so that V is no sum of what its supports take."""
    gauge: list[Any] = [([[1.0], [-1.0], [1.0]], [-1.0, 1.0, -1.0]), ([[1.5, 1.0, -0.5]], [0.0])]
    wide = [[*line, 0.0] for line in SUPPORTS]
    numbers = [[0, 0, *line] for line in SUPPORTED]
    leaf = level_tree([7, 7, 7, *SLICES[3:]], SLICE_CUTS, wide, numbers)
    leaf |= {"slopes": array([[0] * 9] * 5, dtype="|u1")}
    return slices(leaf, lyapunov=gauge)


case("levels of a V with a negative weight", "rejected: as v", negative_gauge)


def level_in_another_row() -> Hand:
    loop = line()
    value = tree("upper 0", *ENDS, [1, -2, -2], (0.5,))
    value |= {"supports": array(SUPPORTS), "supported": array([], [0, 5], "<i4")}
    found = copy.deepcopy(loop.proofs["invariance"])
    found["trees"][0] = value
    return proof(loop, "invariance", found)


case("a level cut in invariance", FIT, level_in_another_row)

# ---- positivity of a convex V: V ≥ θ·(Ry + r), θ ≤ v, on each side of Y


def sided(
    right: list[float] | None = None, numbers: tuple[int, int] = (1, 1), **changes: Any
) -> Hand:
    """V = |y − 1| ≥ c·|y − 1|: θ = (1, 0) on the right of Y and (0, 1) on its left."""
    trees = []
    supports = ([0.0, 0.0, 1.0, 0.0] if right is None else right, [0.0, 0.0, 0.0, 1.0])
    parts = (("+0", [1.125], [2.0]), ("-0", [0.0], [0.875]))
    for (name, lower, upper), support, number in zip(parts, supports, numbers, strict=True):
        leaf = tree(name, lower, upper, [-4], slopes=[[0, 0]])
        table = {"supports": array([support]), "supported": array([[number]], dtype="<i4")}
        trees.append(leaf | table)
    return proof(line(**changes), "positivity", branch("positivity", *trees))


case("positivity by supports", ACCEPTED, sided)
case("positivity by supports, c = 1", ACCEPTED, lambda: sided(positivity=1.0))
case("positivity by supports, c one ulp more", BOUND, lambda: sided(positivity=next_to(1.0, UP)))
case("positivity, θ one ulp above v", SPENT, lambda: sided([0.0, 0.0, next_to(1.0, UP), 0.0]))
case("positivity, θ one ulp too small", BOUND, lambda: sided([0.0, 0.0, next_to(1.0, DOWN), 0.0]))
case("positivity, θ of the other side", BOUND, lambda: sided([0.0, 0.0, 0.0, 1.0]))
case("positivity, λ without a level", SPENT, lambda: sided([0.5, 0.0, 1.0, 0.0]))
case("positivity, γ without a level", SPENT, lambda: sided([0.0, 0.5, 0.5, 0.0]))
case("positivity, no support", BOUND, lambda: sided(numbers=(0, 1)))
case("positivity, a support too many", "rejected: not there", lambda: sided(numbers=(2, 1)))


def lifted(start: float) -> Hand:
    """V = |y − 1| + v₀: what is below zero at Y has to be made up for by the distance."""
    gauge: list[Any] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[1.0, 1.0]], [start])]
    loop = sided(positivity=0.5, lyapunov=gauge)
    return replace(loop, proofs={"positivity": loop.proofs["positivity"]})


case("positivity by supports, V lower", ACCEPTED, lambda: lifted(-0.0625))
case("positivity by supports, V too low", BOUND, lambda: lifted(next_to(-0.0625, DOWN)))


def around_hole(*supports: list[float], cut: tuple[float, float] = (1.0625, 0.9375)) -> Hand:
    """c = 0: V > 0 left and right of the hole."""
    table = supports or ([0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    leaf = tree("positivity", *ENDS, [0, 0, -4, -1, -4], cut, [[0, 0]] * 2)
    leaf |= {"supports": array(list(table)), "supported": array([[2], [1]], dtype="<i4")}
    return proof(line(positivity=0.0), "positivity", branch("positivity", leaf))


case("V > 0 by supports", ACCEPTED, around_hole)
case("V > 0 by supports, only V ≥ 0", BOUND, lambda: around_hole(cut=(1.0, 0.9375)))
case(
    "V > 0 by no support",
    BOUND,
    lambda: around_hole([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]),
)


def deep_gauge() -> Hand:
    """V of two hidden layers is not said to be convex."""
    gauge: list[Any] = [
        ([[1.0], [-1.0]], [-1.0, 1.0]),
        ([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]),
        ([[1.0, 1.0]], [0.0]),
    ]
    loop = sided(lyapunov=gauge)
    return replace(loop, proofs={"positivity": loop.proofs["positivity"]})


case("positivity by supports, V too deep", FIT, deep_gauge)


def concave() -> Hand:
    """V with a weight below zero is not convex."""
    gauge: list[Any] = [([[1.0], [-1.0], [1.0]], [-1.0, 1.0, -1.5]), ([[1.0, 1.0, -0.25]], [0.0])]
    trees = []
    for name, lower, upper in (("+0", [1.125], [2.0]), ("-0", [0.0], [0.875])):
        leaf = tree(name, lower, upper, [-4], slopes=[[0, 0, 0]])
        support = [0.0, 0.0, float(name == "+0"), float(name == "-0"), 0.0]
        trees.append(leaf | {"supports": array([support]), "supported": array([[1]], dtype="<i4")})
    found = {"positivity": branch("positivity", *trees)}
    return replace(line(lyapunov=gauge), proofs=found)


case("positivity by supports, V not convex", "rejected: as v", concave)


def level_in_positivity() -> Hand:
    """Below V = 1/2 and above it c·(y − 1) ≤ V is shown as on the whole side."""
    loop = sided()
    leaf = tree("+0", [1.125], [2.0], [3, -4, -4], (0.5,), [[0, 0]] * 2)
    leaf |= {"supports": array([[0.0, 0.0, 1.0, 0.0]]), "supported": array([[1]] * 2, dtype="<i4")}
    trees = [leaf, loop.proofs["positivity"]["trees"][1]]
    return proof(loop, "positivity", branch("positivity", *trees))


case("a level cut in positivity", ACCEPTED, level_in_positivity)


def section_of_positivity() -> Hand:
    """A section has one tree; positivity has a row for every side."""
    loop = line(hole_radius=0.0)
    supports = [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]
    leaf = tree("+0", *ENDS, [-4], slopes=[[0, 0]])
    leaf |= {"supports": array(supports), "supported": array([[1]], dtype="<i4")}
    value = head("homogeneous", "positivity") | {"margin": 0.25, "level": 1.0, "faces": [2, 3]}
    return replace(loop, proofs={"positivity": value | {"tree": leaf}})


case("a section for positivity", "rejected: decrease only", section_of_positivity)
case("γ above ρ with λ", BOUND, levels(supports=supports(2, [0.25, 1.0, 0.0, 0.0])))
case("λ that θ does not pay for", BOUND, levels(supports=supports(3, [8.0, 0.0, 0.0, 0.5])))


def slower(rho: float) -> Hand:
    """ρ below 3/4, and γ with it."""
    return slices(level_tree(supports=supports(2, [0.0, rho, 0.0, 0.0])), rho=rho)


case("slices with ρ too small", BOUND, lambda: slower(0.75 - 2.0**-50))


def cut_slice(*multipliers: list[int]) -> Callable[[], Hand]:
    """The outermost slice, cut at a unit of V∘F."""
    axis = [*SLICES[:-1], 1, -4, -4]
    numbers = [*SUPPORTED, SUPPORTED[-1]]
    return levels(axis=axis, supported=numbers, multipliers=list(multipliers))


case("a slice cut at a unit", ACCEPTED, cut_slice([4, 0], [4, 0]))
case("a slice cut at a unit, β too large", BOUND, cut_slice([4, 9], [4, 0]))
case("a slice cut at a unit, a line left out", NEEDS, cut_slice([4, 0]))
case("the section of V", ACCEPTED, section)
SECTION = "rejected: V may be smaller on a face"
case("a section beyond the faces", SECTION, lambda: section(level=next_to(1.0, UP)))
case("a section inside", BOUND, lambda: section(level=0.875))
case("a section inside, smaller margin", ACCEPTED, lambda: section(level=0.875, margin=0.21875))
case("the section, margin too large", BOUND, lambda: section(margin=next_to(0.25, UP)))
case("the section, a face without a support", SECTION, lambda: section(faces=[0, 5]))
case("the section, a support of nothing", SECTION, lambda: section(faces=[6, 5]))
case("the section, a support without λ", SPENT, lambda: section(faces=[3, 5]))
case("the section, faces exchanged", SECTION, lambda: section(faces=[5, 4]))
case("the section, a face left out", "rejected: needs a list of 2", lambda: section(faces=[4]))
case("the section, a face that is true", SECTION, lambda: section(faces=[True, 5]))
case("a section at Y", "rejected: not one of V around Y", lambda: section(level=0.0))
case(
    "a section of another box",
    "rejected: not one of V around Y",
    lambda: section(tree=section().proofs["decrease"]["tree"] | {"upper": [1.5]}),
)


def flat(**changes: Any) -> Hand:
    """F(y) = 2 + 2·relu(y − 1) − relu(2·(y − 1)) touches the upper end of D everywhere: only cells
    show it."""
    forward = [([[1.0], [2.0]], [-1.0, -2.0]), ([[2.0, -1.0]], [changes.pop("top", 2.0)])]
    upper = tree("upper 0", *ENDS, CELLS, multipliers=[[1, 0, 0], [1, 0, 1], [1, 0, 1], [1, 0, 0]])
    value = branch("invariance", upper, tree("lower 0", *ENDS, [-2]))
    return replace(line(), forward=forward, proofs={"invariance": value})


case("a loop that touches everywhere", ACCEPTED, flat)
case("a loop that is above by one ulp", BOUND, lambda: flat(top=next_to(2.0, UP)))
case("bent loop", ACCEPTED, lambda: replace(line(), forward=BENT))
case("bent loop, one ulp", BOUND, lambda: replace(line(), forward=BENT, rho=next_to(0.5, DOWN)))

# ---- homogeneous faces

case("plane", ACCEPTED, plane)


def margin(value: float, **changes: Any) -> Callable[[], Hand]:
    return lambda: proof(
        plane(**changes), "decrease", plane_faces("decrease", value, ("decrease",))
    )


case("margin one ulp higher", BOUND, margin(next_to(0.125, UP)))
case("margin zero", "rejected: does not outweigh", margin(0.0))
case("margin below zero", "rejected: does not outweigh", margin(-0.125))
PLANE_ROWS = ("+0", "-0", "+1", "-1")
case(
    "positivity's margin one ulp higher",
    BOUND,
    lambda: proof(plane(), "positivity", plane_faces("positivity", next_to(0.5, UP), PLANE_ROWS)),
)
# δ = 2·shift = 1/32 and μ = 3·δ, so that r = R/2 is just enough
SHIFT = {"shift": 2.0**-6, "positivity": 0.25, "delta": 0.0625}
case("margin against residue", ACCEPTED, margin(0.09375, hole_radius=0.5, **SHIFT))
case(
    "margin against residue, r one ulp lower",
    "rejected: does not outweigh",
    margin(0.09375, hole_radius=next_to(0.5, DOWN), **SHIFT),
)
case(
    "margin against residue, strict",
    "rejected: does not outweigh",
    margin(0.09375, hole_radius=0.5, rho=1.0, **SHIFT),
)
case(
    "margin against residue, strict and more",
    ACCEPTED,
    margin(0.09375, hole_radius=next_to(0.5, UP), rho=1.0, **SHIFT),
)
case(
    "margin not above the residue",
    "rejected: does not outweigh",
    margin(0.03125, hole_radius=0.5, **SHIFT),
)
LIFTED: list[Any] = [PLANE_V[0], (PLANE_V[1][0], [0.03125])]
case(
    "V not homogeneous",
    "rejected: does not outweigh",
    margin(0.0625, hole_radius=0.5, lyapunov=LIFTED, positivity=0.25),
)
# V's own residue, 1/32, counts (1 + ρ) times: δ = 15/256, and μ = 1/8 − (1 − ρ)/32 = 31/256
case(
    "V not homogeneous, enough margin",
    ACCEPTED,
    margin(0.12109375, hole_radius=1.0, lyapunov=LIFTED, positivity=0.25),
)
case(
    "V not homogeneous, too little room",
    "rejected: does not outweigh",
    margin(0.12109375, hole_radius=0.9375 - 2.0**-10, lyapunov=LIFTED, positivity=0.25),
)


def face_list(change: Callable[[list[Json]], Any]) -> Callable[[], Hand]:
    def make() -> Hand:
        value = plane_faces("decrease", 0.125, ("decrease",))
        change(value["faces"])
        return proof(plane(), "decrease", value)

    return make


case("a face left out", "rejected: list of 4 trees", face_list(list.pop))
case("a face twice", "rejected: not that face", face_list(lambda f: f.__setitem__(1, f[0])))
case("faces out of order", "rejected: not that face", face_list(list.reverse))
case(
    "a face moved inwards",
    "rejected: not that face",
    face_list(lambda f: f[0].update(lower=[0.5, -1.0], upper=[0.5, 1.0])),
)
case(
    "a face made shorter",
    "rejected: not that face",
    face_list(lambda f: f[0].update(upper=[0.0, 0.5])),
)
case(
    "a hole leaf on a face",
    "rejected: called inside",
    face_list(lambda f: f[0].update(axis=array([-1], dtype="|i1"), cut=array([]))),
)
case(
    "faces for invariance",
    "rejected: cannot be shown by faces",
    lambda: proof(plane(), "invariance", faces("invariance", 0.125)),
)
case(
    "Y outside of D",
    "rejected: cannot be shown by faces",
    lambda: replace(plane(), lower=[1.5, -1.0], proofs={"decrease": plane().proofs["decrease"]}),
)
case(
    "Y on an end of D",
    ACCEPTED,
    lambda: replace(plane(), lower=[1.0, -1.0], proofs={"decrease": on_edge()}),
)


def on_edge() -> Json:
    """D begins at Y_0: its lower face there is no face of the cone."""
    found = []
    for axis, side, end in ((0, "upper", 2.0), (1, "lower", -1.0), (1, "upper", 1.0)):
        low, high = [1.0, -1.0], [2.0, 1.0]
        low[axis] = high[axis] = end
        cuts = ([1, -2, -2], (0.0,)) if axis == 0 else ([-2], ())
        found.append({"side": side, **tree("decrease", low, high, *cuts)})
    return faces("decrease", 0.125, *found)


# ---- contraction


def by_contraction(**changes: Any) -> Callable[[], Hand]:
    options = {"proofs": {name: contraction(name) for name in ("decrease", "positivity")}}
    return lambda: plane(**{**options, **changes})


NO = "rejected: do not give a contraction"
case("contraction", ACCEPTED, by_contraction())
case("contraction, ρ at κ", NO, by_contraction(rho=0.75))
case("contraction, ρ just above κ", ACCEPTED, by_contraction(rho=next_to(0.75, UP)))
case("contraction, c at the floor", ACCEPTED, by_contraction(positivity=1.0))
case("contraction, c above the floor", NO, by_contraction(positivity=next_to(1.0, UP)))
# the residual has V = shift: (ρ − κ)·r ≥ shift
case(
    "contraction, residual just small enough",
    ACCEPTED,
    by_contraction(shift=2.0**-6, delta=0.0625, hole_radius=0.125),
)
case(
    "contraction, residual too large",
    NO,
    by_contraction(shift=2.0**-6, delta=0.0625, hole_radius=next_to(0.125, DOWN)),
)
case(
    "contraction, residual to the other side",
    ACCEPTED,
    by_contraction(shift=-(2.0**-6), delta=0.0625, hole_radius=0.125),
)
case(
    "contraction, residual to the other side, too large",
    NO,
    by_contraction(shift=-(2.0**-6), delta=0.0625, hole_radius=next_to(0.125, DOWN)),
)
case(
    "contraction, strict tie",
    NO,
    by_contraction(shift=2.0**-6, delta=0.0625, rho=1.0, hole_radius=2.0**-4),
)
case(
    "contraction, strict and enough",
    ACCEPTED,
    by_contraction(shift=2.0**-6, delta=0.0625, rho=1.0, hole_radius=next_to(2.0**-4, UP)),
)
case("contraction without a hole", ACCEPTED, by_contraction(rho=1.0, hole_radius=0.0))
case("contraction, V lifted", ACCEPTED, by_contraction(lyapunov=LIFTED, hole_radius=1.0))
# e_V = 1/32: (1 − c)·r ≥ e_V
case(
    "positivity of a lifted V, just",
    ACCEPTED,
    by_contraction(
        lyapunov=LIFTED, hole_radius=0.0625, proofs={"positivity": contraction("positivity")}
    ),
)
case(
    "positivity of a lifted V, too near",
    NO,
    by_contraction(
        lyapunov=LIFTED,
        hole_radius=next_to(0.0625, DOWN),
        proofs={"positivity": contraction("positivity")},
    ),
)
case(
    "positivity of a lifted V, c = 0, tie",
    NO,
    by_contraction(
        lyapunov=LIFTED,
        hole_radius=0.03125,
        positivity=0.0,
        proofs={"positivity": contraction("positivity")},
    ),
)
case(
    "positivity of a lifted V, c = 0",
    ACCEPTED,
    by_contraction(
        lyapunov=LIFTED,
        hole_radius=next_to(0.03125, UP),
        positivity=0.0,
        proofs={"positivity": contraction("positivity")},
    ),
)
# (ρ − κ)(r − e) ≥ (1 + κ)·e: (r − 1/32)/8 ≥ 7/128, r = 15/32
case(
    "decrease of a lifted V, just",
    ACCEPTED,
    by_contraction(
        lyapunov=LIFTED, hole_radius=0.46875, proofs={"decrease": contraction("decrease")}
    ),
)
case(
    "decrease of a lifted V, too near",
    NO,
    by_contraction(
        lyapunov=LIFTED,
        hole_radius=next_to(0.46875, DOWN),
        proofs={"decrease": contraction("decrease")},
    ),
)
SHIFTED_V: list[Any] = [(PLANE_V[0][0], [-1.0, 0.0, 1.03125, 0.0]), PLANE_V[1]]
case(
    "decrease of a shifted V, just",
    ACCEPTED,
    by_contraction(
        lyapunov=SHIFTED_V, hole_radius=0.46875, proofs={"decrease": contraction("decrease")}
    ),
)
case(
    "decrease of a shifted V, too near",
    NO,
    by_contraction(
        lyapunov=SHIFTED_V,
        hole_radius=next_to(0.46875, DOWN),
        proofs={"decrease": contraction("decrease")},
    ),
)
NEGATIVE_V: list[Any] = [PLANE_V[0], ([[1.0, 1.0, -1.0, 1.0]], [0.0])]
case("contraction in no gauge", NO, by_contraction(lyapunov=NEGATIVE_V))
OPEN_V: list[Any] = [PLANE_V[0], ([[1.0, 1.0, 0.0, 1.0]], [0.0])]
case("contraction in a gauge that is flat one way", NO, by_contraction(lyapunov=OPEN_V))
SKEW_V: list[Any] = [
    ([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, -1.0]], [-1.0, 0.0, 1.0, 0.0]),
    PLANE_V[1],
]
case("contraction in a skew gauge", NO, by_contraction(lyapunov=SKEW_V))
UNEVEN_V: list[Any] = [PLANE_V[0], ([[1.0, 1.0, 2.0, 1.0]], [0.0])]
# p = (1, 1), m = (2, 1); the second coordinate moves the first by a quarter, and downwards that
# counts twice: κ = 2/4 + 1/2 = 1
case("contraction in an uneven gauge", NO, by_contraction(lyapunov=UNEVEN_V, rho=1.0))
MIRROR: list[Any] = [([[-0.5, 0.0], [0.0, 0.5]], [1.5, 0.0])]
# −1/2 along the first axis: going up is weighed 1, and it comes down with weight 2: κ = 2/2 / 1 = 1
case("a mirror in an uneven gauge", NO, by_contraction(lyapunov=UNEVEN_V, rho=1.0, forward=MIRROR))
case(
    "contraction for invariance",
    NO,
    by_contraction(proofs={"invariance": contraction("invariance")}),
)
DEEP: list[Any] = [
    ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [-1.0, 1.0, 1.0]),
    ([[0.5, -0.5, 0.0], [0.0, 0.0, 0.5]], [1.0, -0.5]),
]
# unit 0 and unit 1 may both pass all of the move: κ = 1/2 + 1/2 along the first axis
case("contraction, deep, κ = 1", NO, by_contraction(forward=DEEP, rho=1.0))
HALF_DEEP: list[Any] = [DEEP[0], ([[0.5, -0.25, 0.0], [0.0, 0.0, 0.5]], [1.0, -0.5])]
case("contraction, deep", ACCEPTED, by_contraction(forward=HALF_DEEP, rho=next_to(0.75, UP)))
case("contraction, deep, ρ at κ", NO, by_contraction(forward=HALF_DEEP, rho=0.75))
TWICE: list[Any] = [([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), *DEEP[:1], HALF_DEEP[1]]
case("contraction, three layers, ρ at κ", NO, by_contraction(forward=TWICE, rho=0.75))
case("contraction, three layers", ACCEPTED, by_contraction(forward=TWICE, rho=next_to(0.75, UP)))

# ---- region: F_1 − F_0 = −1 − z_0/2 + z_1/4 is at most −1/4 on D


def region(gamma: float, pulls: list[float], **changes: Any) -> Callable[[], Hand]:
    value = branch("region", tree("class 1", LOW, HIGH, [-2]), multipliers=array([pulls]))
    return lambda: proof(plane(margin=gamma, **changes), "region", value)


case("region, tie", ACCEPTED, region(0.25, [0.0, 0.0]))
case("region, γ one ulp higher", BOUND, region(next_to(0.25, UP), [0.0, 0.0]))
case("region needs its multiplier", BOUND, region(0.5, [0.0, 0.0]))
case("region with its multiplier", ACCEPTED, region(0.5, [0.0, 0.25]))
# −1 + γ + λ(1 − γ) + z_0·(λ − 1/2) + z_1·(1/4 − λ) with λ = 1/4: at most −1/2 + 3·γ/4
case("region with its multiplier, tie", ACCEPTED, region(0.6666666666666666, [0.0, 0.25]))
case("region with its multiplier, beyond", BOUND, region(0.6666666666666667, [0.0, 0.25]))
case("region, λ negative", "rejected: the multipliers must be", region(0.5, [0.0, -0.25]))
case("region, λ at c", "rejected: the multipliers must be", region(0.5, [0.5, 0.0]))
case(
    "region, λ of another shape",
    "rejected: the multipliers must be",
    lambda: proof(
        plane(),
        "region",
        branch("region", tree("class 1", LOW, HIGH, [-2]), multipliers=array([[0.0]])),
    ),
)
EVEN: list[Any] = [([[0.5, 0.25], [0.0, 0.5]], [0.25, 0.0])]
# F_0 less by 1/4: the lead on D is at least 0
case("region, strict tie", BOUND, region(0.0, [0.0, 0.0], forward=EVEN, proofs={"region": {}}))
case(
    "region, no longer a tie",
    ACCEPTED,
    region(
        0.0, [0.0, 0.0], forward=[(EVEN[0][0], [next_to(0.25, UP), 0.0])], proofs={"region": {}}
    ),
)
case(
    "region of the other class",
    "rejected: out of order",
    lambda: lie(plane(proofs={"region": plane().proofs["region"]}), put("classes", 0, "class", 1)),
)
case(
    "equilibrium of another class",
    "rejected: one of another class",
    lambda: lie(plane(proofs={"none": {}}), put("classes", 0, "class", 1)),
)

# ---- counterexamples


def refuted(condition: str, point: list[float], **changes: Any) -> Callable[[], Hand]:
    return lambda: plane(**{"proofs": {"none": {}}, "points": {condition: point}, **changes})


SATISFIED = "rejected: satisfies the condition"
ELSEWHERE = "rejected: where nothing is claimed"
GROW: list[Any] = [([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])]
case("decrease refuted", ACCEPTED, refuted("decrease", [2.0, 0.0], forward=GROW))
case("decrease satisfied", SATISFIED, refuted("decrease", [2.0, 0.0]))
case("decrease at equality", SATISFIED, refuted("decrease", [2.0, 0.0], rho=0.5))
case(
    "decrease at equality, strict", ACCEPTED, refuted("decrease", [2.0, 0.0], rho=1.0, forward=GROW)
)
case(
    "decrease in the hole",
    ELSEWHERE,
    refuted("decrease", [next_to(1.125, DOWN), 0.0], forward=GROW),
)
case("decrease on the hole's shell", ACCEPTED, refuted("decrease", [1.125, 0.0], forward=GROW))
case("decrease outside of D", ELSEWHERE, refuted("decrease", [next_to(2.0, UP), 0.0], forward=GROW))
case("decrease below D", ELSEWHERE, refuted("decrease", [1.0, next_to(-1.0, DOWN)], forward=GROW))
case("decrease at Y without a hole", ELSEWHERE, refuted("decrease", [1.0, 0.0], hole_radius=0.0))
case(
    "decrease refuted near Y without a hole",
    ACCEPTED,
    refuted("decrease", [1.0, 2.0**-300], hole_radius=0.0, forward=GROW),
)
case("positivity refuted", ACCEPTED, refuted("positivity", [2.0, 0.0], positivity=next_to(1.0, UP)))
case("positivity satisfied", SATISFIED, refuted("positivity", [2.0, 0.0], positivity=1.0))
case(
    "positivity, c = 0, V = 0",
    ACCEPTED,
    refuted(
        "positivity",
        [2.0, 0.0],
        positivity=0.0,
        lyapunov=[PLANE_V[0], ([[0.0, 1.0, 1.0, 1.0]], [0.0])],
    ),
)
case("positivity, c = 0, V > 0", SATISFIED, refuted("positivity", [2.0, 0.0], positivity=0.0))
case("positivity in the hole", ELSEWHERE, refuted("positivity", [1.0, 0.0], positivity=2.0))
JUMP: list[Any] = [([[0.5, 0.0], [0.0, 1.0]], [next_to(1.0, UP), 0.0])]
case("invariance refuted", ACCEPTED, refuted("invariance", [2.0, 0.0], forward=JUMP))
case("invariance satisfied", SATISFIED, refuted("invariance", [1.5, 0.0], forward=JUMP))
case(
    "invariance refuted in the hole",
    ACCEPTED,
    refuted("invariance", [1.0, 0.0], forward=[(JUMP[0][0], [2.0, 0.0])], delta=0.0),
)
case("invariance outside of D", ELSEWHERE, refuted("invariance", [3.0, 0.0], forward=JUMP))
case("region refuted", ACCEPTED, refuted("region", [2.0, -1.0], margin=next_to(1.75, UP)))
case("region satisfied", SATISFIED, refuted("region", [2.0, -1.0], margin=1.75))
case("region where another class leads", ELSEWHERE, refuted("region", [0.0, 1.0], margin=0.0))
case("region where the lead is too small", ELSEWHERE, refuted("region", [1.0, 0.5], margin=0.75))
case(
    "region refuted by a tie",
    ACCEPTED,
    refuted(
        "region", [0.0, 0.0], forward=[([[0.5, 0.25], [0.0, 0.5]], [0.0, 0.0])], anchor=[0.5, 0.0]
    ),
)
case(
    "a counterexample of another length",
    "unreadable: must have 2 numbers",
    refuted("decrease", [2.0]),
)

# ---- verdicts, and what is shown of them

CONDITION = ("classes", 0, "conditions")
case(
    "proved without a proof",
    "rejected: without what shows it",
    lambda: lie(plane(), put(*CONDITION, "decrease", "proof", None)),
)
case(
    "a verdict flipped",
    "rejected: without what shows it",
    lambda: lie(
        refuted("decrease", [2.0, 0.0], forward=GROW)(),
        put(*CONDITION, "decrease", "verdict", "proved"),
    ),
)
case(
    "unknown with a proof",
    "rejected: without what shows it",
    lambda: lie(plane(), put(*CONDITION, "decrease", "verdict", "unknown")),
)
case(
    "a proof and a counterexample",
    "rejected: without what shows it",
    lambda: lie(plane(), put(*CONDITION, "decrease", "counterexample", array([2.0, 0.0]))),
)
case(
    "a verdict that is none",
    "unreadable: a verdict is",
    lambda: lie(plane(), put(*CONDITION, "decrease", "verdict", "certain")),
)
case(
    "a condition left out",
    "unreadable: must be an object",
    lambda: lie(plane(), lambda c: c["classes"][0]["conditions"].pop("region")),
)
case(
    "a condition more",
    "unreadable: must be an object",
    lambda: lie(plane(), put(*CONDITION, "global", {})),
)
case("a remark", ACCEPTED, lambda: lie(plane(), put(*CONDITION, "decrease", "seconds", 1.5)))
case(
    "a remark that is none",
    "unreadable: must be an object",
    lambda: lie(plane(), put(*CONDITION, "decrease", "note", 1.5)),
)

FOLLOWS = "rejected: is not what follows"
REPRESENTATIVE = (*CONDITION, "representative")
for name, path, new in (
    ("the distance", (*REPRESENTATIVE, "distance"), 0.5),
    ("the distance as an integer", (*REPRESENTATIVE, "distance"), 0),
    ("the anchor's gap", (*REPRESENTATIVE, "anchor_gap"), 1.0),
    ("the representative's verdict", (*REPRESENTATIVE, "verdict"), "refuted"),
    ("the hole's kind", (*CONDITION, "hole", "kind"), "homogeneous"),
    ("the hole's radius", (*CONDITION, "hole", "radius"), 1.0),
    ("the hole's factor", (*CONDITION, "hole", "factor"), 0.5),
    ("the fixed point", (*CONDITION, "hole", "fixed_point"), False),
    ("the fixed point as a number", (*CONDITION, "hole", "fixed_point"), 1),
    ("the conclusion's kind", ("classes", 0, "conclusion", "kind"), "practical"),
    ("the conclusion's region", ("classes", 0, "conclusion", "region"), "D"),
    ("the conclusion's radius", ("classes", 0, "conclusion", "radius"), 1.0),
    ("the steps", ("classes", 0, "conclusion", "steps"), 1),
    ("switching", ("classes", 0, "conclusion", "switched"), False),
    ("the sentence", ("classes", 0, "conclusion", "sentence"), "All is well."),
    ("the setting", ("classes", 0, "setting"), "Everywhere."),
    ("the class's verdict", ("classes", 0, "verdict"), "unknown"),
    ("what holds together", ("together", "sentence"), "All is well."),
    ("everywhere", ("together", "everywhere"), True),
    ("the verdict of all", ("together", "verdict"), "unknown"),
    ("what is not covered", ("not_covered",), []),
):
    case(f"changed: {name}", FOLLOWS, lambda path=path, new=new: lie(plane(), put(*path, new)))
for name in ("verdict", "setting", "conclusion"):
    case(
        f"left out: {name}",
        "unreadable: must be an object",
        lambda name=name: lie(plane(), lambda c: c["classes"][0].pop(name)),
    )

# ---- δ and the anchor

case("δ at an eighth of Y", ACCEPTED, lambda: plane(delta=0.125))
case(
    "δ beyond an eighth of Y",
    "rejected: says nothing",
    lambda: lie(plane(), put("classes", 0, "problem", "delta", next_to(0.125, UP))),
)
# ‖(3, 4)/64‖ = 5/64
case("anchor just within δ", ACCEPTED, lambda: plane(anchor=[1.046875, 0.0625], delta=0.078125))
case(
    "anchor's verdict",
    FOLLOWS,
    lambda: lie(
        plane(anchor=[1.046875, 0.0625], delta=next_to(0.078125, DOWN)),
        put(*REPRESENTATIVE, "verdict", "proved"),
    ),
)
case(
    "anchor just outside of δ",
    ACCEPTED,
    lambda: plane(anchor=[1.046875, 0.0625], delta=next_to(0.078125, DOWN)),
)
case(
    "anchor of another length",
    "unreadable: must have 2 numbers",
    lambda: lie(plane(), put("classes", 0, "anchor", array([1.0]))),
)

# ---- holes and conclusions: without a contraction factor below one


ROTATE: list[Any] = [
    ([[0.5, -0.5], [0.5, 0.5]], [0.5, -0.5])
]  # κ = 1, and V falls by √2 in two steps
DIAMOND: list[Any] = [
    ([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], [-1.0, -1.0, 1.0, 1.0]),
    ([[1.0, 1.0, 1.0, 1.0]], [0.0]),
]


def skewed(**changes: Any) -> Hand:
    """The plane's loop with V = |z_0 + z_1| + |z_0 − z_1| = 2·max(|z_0|, |z_1|), no gauge of
    section 4; ‖J‖ in the sup norm is 3/4."""
    low, high = changes.pop("lower", LOW), changes.pop("upper", HIGH)
    forward = changes.pop("forward", plane().forward)
    options: dict[str, Any] = {"rho": 0.875, "positivity": 0.5, "hole_radius": 0.125, **changes}
    loop = Hand(forward, DIAMOND, low, high, [1.0, 0.0], **options)
    return replace(loop, proofs=loop.proofs or skew_proofs(loop))


def skew_proofs(loop: Hand) -> dict[str, Json]:
    rows = ("upper 0", "lower 0", "upper 1", "lower 1")
    return {
        "decrease": corner_faces("decrease", ("decrease",), 2.0**-4),
        "positivity": corner_faces("positivity", PLANE_ROWS, 2.0**-1),
        "invariance": branch("invariance", *[tree(row, LOW, HIGH, [-2]) for row in rows]),
    }


def corner_faces(condition: str, rows: tuple[str, ...], value: float) -> Json:
    """Every face cut into eight pieces."""
    found = []
    for row in rows:
        for axis in (0, 1):
            for side in ("lower", "upper"):
                low, high = list(LOW), list(HIGH)
                low[axis] = high[axis] = (low if side == "lower" else high)[axis]
                other = 1 - axis
                start = low[other]
                cuts = tuple(start + k / 4 for k in (4, 2, 1, 3, 6, 5, 7))
                axes = [other, other, other, -2, -2, other, -2, -2]
                axes += [other, other, -2, -2, other, -2, -2]
                found.append(tree(row, low, high, axes, cuts))
    return faces(condition, value, *found)


case("skewed", ACCEPTED, skewed)
case(
    "skewed, without invariance",
    ACCEPTED,
    lambda: skewed(
        proofs={k: v for k, v in skew_proofs(skewed(proofs={"x": {}})).items() if k != "invariance"}
    ),
)
case(
    "skewed, without decrease",
    ACCEPTED,
    lambda: skewed(
        proofs={k: v for k, v in skew_proofs(skewed(proofs={"x": {}})).items() if k != "decrease"}
    ),
)
case("skewed, ρ = 1", ACCEPTED, lambda: skewed(rho=1.0))
case(
    "skewed, moved a little",
    ACCEPTED,
    lambda: skewed(
        forward=[(plane().forward[0][0], [0.5 + 2.0**-9, 0.0])], delta=0.0625, hole_radius=0.25
    ),
)
case(
    "skewed, moved too much",
    ACCEPTED,
    lambda: skewed(
        forward=[(plane().forward[0][0], [0.5 + 2.0**-8, 0.0])],
        delta=0.0625,
        hole_radius=0.375,
        positivity=0.25,
    ),
)

# ---- several classes: the plane and its mirror image


def square(label: int, top: float = 2.0, **changes: Any) -> Hand:
    """z → z/4 around Y = e_label on D = [−1, top]², V = |z_0| + |z_1|."""
    centre = [float(label == 0), float(label == 1)]
    forward: list[Any] = [([[0.25, 0.0], [0.0, 0.25]], [0.75 * y for y in centre])]
    inner = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    bias = [-centre[0], -centre[1], centre[0], centre[1]]
    low, high = [-1.0, -1.0], [top, top]
    rows = ("upper 0", "lower 0", "upper 1", "lower 1")
    # F_k − F_c = −3/4 + (y_k − y_c)/4: the multiplier 1/4 takes all of it
    pulls = [0.0, 0.0]
    pulls[1 - label] = 0.25
    lead = tree(f"class {1 - label}", low, high, [-2])
    proofs = {
        "decrease": contraction("decrease"),
        "positivity": contraction("positivity"),
        "invariance": branch("invariance", *[tree(row, low, high, [-2]) for row in rows]),
        "region": branch("region", lead, multipliers=array([pulls])),
    }
    options: dict[str, Any] = {"label": label, "proofs": proofs, **changes}
    return Hand(forward, [(inner, bias), ([[1.0] * 4], [0.0])], low, high, centre, **options)


def without(loop: Hand, condition: str) -> Hand:
    return replace(loop, proofs={k: v for k, v in loop.proofs.items() if k != condition})


case("two classes", ACCEPTED, lambda: certificate(square(0), square(1)))
case("two classes, in the other order", ACCEPTED, lambda: certificate(square(1), square(0)))
case("two classes, margins", ACCEPTED, lambda: certificate(square(0, margin=0.25), square(1)))
case(
    "two classes, one without region",
    ACCEPTED,
    lambda: certificate(square(0), without(square(1), "region")),
)
case(
    "two classes, one without decrease",
    ACCEPTED,
    lambda: certificate(square(0), without(square(1), "decrease")),
)
case(
    "two classes, one without invariance",
    ACCEPTED,
    lambda: certificate(square(0), without(square(1), "invariance")),
)
case("a class twice", "rejected: stands twice", lambda: certificate(square(0), square(0)))
case(
    "a class that is not there",
    "unreadable: do not fit together",
    lambda: lie(square(1), put("classes", 0, "class", 2)),
)
case(
    "a class that is true",
    "unreadable: do not fit together",
    lambda: lie(square(1), put("classes", 0, "class", True)),
)
case(
    "a class below zero",
    "unreadable: do not fit together",
    lambda: lie(square(1), put("classes", 0, "class", -1)),
)
case(
    "everywhere with one class",
    FOLLOWS,
    lambda: lie(square(0), put("together", "everywhere", True)),
)
case(
    "another class's proofs",
    "rejected: the multipliers must be",
    lambda: certificate(square(0), replace(square(1), proofs=square(0).proofs)),
)

# ---- reading


def problem(name: str, value: Any) -> Callable[[], Json]:
    return lambda: lie(plane(), put("classes", 0, "problem", name, value))


ORDINARY = "unreadable: number of ordinary size"
case("ρ = 0", "unreadable: ρ must lie", problem("rho", 0.0))
case("ρ above one", "unreadable: ρ must lie", problem("rho", next_to(1.0, UP)))
case("ρ below zero", "unreadable: ρ must lie", problem("rho", -0.5))
case("r below zero", "unreadable: no number may be negative", problem("hole_radius", -1.0))
case("c below zero", "unreadable: no number may be negative", problem("positivity", -1.0))
case("δ below zero", "unreadable: no number may be negative", problem("delta", -1.0))
case("γ below zero", "unreadable: no number may be negative", problem("margin", -1.0))
case("ρ true", ORDINARY, problem("rho", True))
case("ρ a text", ORDINARY, problem("rho", "0.5"))
case("r tiny", ORDINARY, problem("hole_radius", 1e-320))
case("r huge", ORDINARY, problem("hole_radius", 1e308))
case("r an integer that is no float", ORDINARY, problem("hole_radius", 2**60 + 1))
case("r a long integer", ORDINARY, problem("hole_radius", 10**4000))
case("r at the limit", FOLLOWS, problem("hole_radius", 2.0**400))
case("r beyond the limit", ORDINARY, problem("hole_radius", next_to(2.0**400, UP)))
case("r at the lower limit", "rejected", problem("hole_radius", 2.0**-400))
case("r below the lower limit", ORDINARY, problem("hole_radius", next_to(2.0**-400, 0.0)))
ARRAY = "unreadable: not finite, too large or too small"
case(
    "a weight that is NaN",
    ARRAY,
    lambda: lie(plane(), put("classes", 0, "anchor", array([math.nan, 0.0]))),
)
case("a weight that is infinite", ARRAY, problem("lower", array([-math.inf, -1.0])))
case("a weight too large", ARRAY, problem("upper", array([1e308, 1.0])))
case("a weight too small", ARRAY, problem("upper", array([1e-320, 1.0])))
case("an array in float32", ACCEPTED, problem("upper", array([2.0, 1.0], dtype="<f4")))
case(
    "an array of integers",
    "unreadable: 1-dimensional array",
    problem("upper", array([2, 1], dtype="<i4")),
)
case(
    "an array of another size",
    "unreadable: as many numbers as its shape",
    problem("upper", array([2.0, 1.0], [3])),
)
case(
    "an array of another shape",
    "unreadable: 1-dimensional array",
    problem("upper", array([2.0, 1.0], [1, 2])),
)
case("an array too short", "unreadable: must have 2 numbers", problem("upper", array([2.0])))
case(
    "a shape that is true",
    "unreadable: 1-dimensional array",
    problem("upper", array([2.0], [True])),
)
case("a shape below zero", "unreadable: 1-dimensional array", problem("upper", array([2.0], [-1])))
case(
    "no base64",
    "unreadable: not base64",
    problem("upper", {"dtype": "<f8", "shape": [2], "base64": "@"}),
)
case(
    "stray characters",
    "unreadable: not base64",
    problem("upper", {**array([2.0, 1.0]), "base64": array([2.0, 1.0])["base64"] + "\n"}),
)
case(
    "base64 that is no text",
    "unreadable: not base64",
    problem("upper", {"dtype": "<f8", "shape": [2], "base64": 7}),
)
case(
    "an empty box",
    "unreadable: the box is empty",
    problem("upper", array([2.0, next_to(-1.0, DOWN)])),
)
case(
    "a problem without a name",
    "unreadable: must be an object",
    lambda: lie(plane(), lambda c: c["classes"][0]["problem"].pop("margin")),
)
case("no class", "unreadable: list of 1 to", lambda: lie(plane(), put("classes", [])))
case(
    "classes that are no list", "unreadable: list of 1 to", lambda: lie(plane(), put("classes", {}))
)
case(
    "a class that is no object",
    "unreadable: must be an object",
    lambda: lie(plane(), put("classes", [7])),
)
case("a name too many", "unreadable: must be an object", lambda: lie(plane(), put("extra", 1)))
case("no head", "unreadable: must be an object", lambda: lie(plane(), lambda c: c.pop("head")))
FIT = "unreadable: do not fit together"
case(
    "a head of another width",
    FIT,
    lambda: lie(plane(), put("head", source((identity(3), [0.0] * 3)))),
)
case(
    "a bias of another length",
    FIT,
    lambda: lie(plane(), put("head", source((identity(2), [0.0] * 3)))),
)
case(
    "a bias of V too long",
    "unreadable: factors of a layer do not fit",
    lambda: lie(
        plane(),
        put("classes", 0, "lyapunov", source((identity(2), [0.0] * 3), ([[1.0] * 2], [0.0]))),
    ),
)
case(
    "layers that do not fit",
    "unreadable: the layers do not fit",
    lambda: lie(
        plane(),
        put("classes", 0, "lyapunov", source((identity(2), [0.0] * 2), ([[1.0] * 3], [0.0]))),
    ),
)
case(
    "V with two outputs",
    FIT,
    lambda: lie(plane(), put("classes", 0, "lyapunov", source((identity(2), [0.0] * 2)))),
)
case(
    "V of another width",
    FIT,
    lambda: lie(plane(), put("classes", 0, "lyapunov", source(([[1.0] * 3], [0.0])))),
)
case(
    "a layer without a weight",
    "unreadable: a layer has no weight",
    lambda: lie(plane(), put("classes", 0, "lyapunov", [[{"weight": None, "bias": array([0.0])}]])),
)
case(
    "an empty weight",
    "unreadable: must not be empty",
    lambda: lie(
        plane(), put("classes", 0, "lyapunov", [[{"weight": array([], [0, 2]), "bias": None}]])
    ),
)


def factors(*parts: tuple[Any, Any]) -> list[list[Json]]:
    return [
        [
            {"weight": None if w is None else array(w), "bias": None if b is None else array(b)}
            for w, b in parts
        ]
    ]


# J·y + b = (J/2)·(2·(y − Y)) + Y
CHAIN = (
    (None, [-1.0, 0.0]),
    ([[2.0, 0.0], [0.0, 2.0]], None),
    ([[0.25, 0.125], [0.0, 0.25]], None),
    (None, [1.0, 0.0]),
)
case(
    "a loop of factors",
    ACCEPTED,
    lambda: lie(plane(), put("classes", 0, "controller", factors(*CHAIN))),
)
case(
    "factors in another order",
    "rejected",
    lambda: lie(plane(), put("classes", 0, "controller", factors(CHAIN[1], CHAIN[0], *CHAIN[2:]))),
)
case(
    "factors that do not fit",
    FIT,
    lambda: lie(plane(), put("classes", 0, "controller", factors((None, [1.0]), *CHAIN))),
)
case(
    "weights too long in all",
    "unreadable: too long",
    lambda: lie(
        plane(),
        put(
            "classes",
            0,
            "controller",
            source(
                *[(identity(2), [0.0] * 2)] * 3,
                *[([[2.0**-399, 0.0], [0.0, 2.0**-399]], [0.0, 0.0])] * 60,
            ),
        ),
    ),
)

LARGE = [([[2.0**399, 0.0], [0.0, 2.0**399]], [0.0, 0.0])] * 60
case(
    "weights too long before the point",
    "unreadable: too long",
    lambda: lie(plane(), put("classes", 0, "controller", source(*LARGE))),
)

RAW = sealed_bytes(certificate(line()))
case("no JSON", "unreadable: not one whole JSON", lambda: b"{")
case("nothing", "unreadable: not one whole JSON", lambda: b"")
case("another text", "unreadable: does not say that it is", lambda: b"{}")
case("a list", "unreadable: does not say that it is", lambda: b"[]")
case("two texts", "unreadable: not one whole JSON", lambda: RAW + RAW)
case(
    "not ASCII",
    "unreadable: not ASCII",
    lambda: RAW.replace(b"paper", "pap\u00e9r".encode()),
)
case("a changed byte", "rejected: SHA-256", lambda: RAW.replace(b"paper", b"Paper"))
case("a changed seal", "rejected: SHA-256", lambda: RAW[:20] + b"0" * 4 + RAW[24:])
case("a space at the end", "rejected: SHA-256", lambda: RAW + b" ")
case("a seal further down", "rejected: SHA-256", lambda: b'{\n "data": null,' + RAW[1:])
case("deep nesting", "unreadable: not one whole JSON", lambda: b"[" * 100_000)
case(
    "a name twice",
    "unreadable: stands twice",
    lambda: RAW.replace(b'"form": "paper",', b'"form": "paper", "form": "paper",'),
)
case(
    "NaN",
    "unreadable: not one whole JSON text",
    lambda: RAW.replace(b'"delta": 0.0', b'"delta": NaN'),
)
case(
    "an endless number", ORDINARY, lambda: resealed(RAW.replace(b'"delta": 0.0', b'"delta": 1e999'))
)
for version in ("2", "3", "true", "4.0", '"4"', "null"):
    case(
        f"file of version {version}",
        "unreadable: version 4",
        lambda version=version: RAW.replace(
            b'"version": 4,\n "head"', f'"version": {version},\n "head"'.encode()
        ),
    )


def nested(depth: int) -> Json:
    content = certificate(line())
    value: Any = 0
    for _ in range(depth):
        value = [value]
    content["provenance"] = value
    return content


case("nested remarks", ACCEPTED, lambda: nested(50))

case("two classes on different boxes", ACCEPTED, lambda: certificate(square(0), square(1, top=4.0)))
case(
    "a proof of version 4.0",
    "rejected: version 4",
    lambda: proof(line(), "decrease", line().proofs["decrease"] | {"version": 4.0}),
)
case(
    "hole leaves on faces in a large hole",
    "rejected: called inside",
    lambda: proof(plane(hole_radius=4.0), "decrease", hole_faces()),
)


def hole_faces() -> Json:
    value = plane_faces("decrease", 0.125, ("decrease",))
    for face in value["faces"]:
        face.update(axis=array([-1], dtype="|i1"), cut=array([]))
    return value


DOUBLE_V: list[Any] = [
    ([*PLANE_V[0][0], [1.0, 0.0]], [*PLANE_V[0][1], -1.0]),
    ([[1.5, 1.0, 1.0, 1.0, -0.5]], [0.0]),
]
case("contraction with a negative weight", NO, by_contraction(lyapunov=DOUBLE_V))
case("skewed, a hole larger than D", ACCEPTED, lambda: skewed(hole_radius=1.5))


def kinked(at: float, shift: float = 0.0, **changes: Any) -> Hand:
    """F(y) = Y + z/2 + shift through two units that change their sign at z = −at; κ = 1, so that
    the hole is closed by homogeneity or not at all."""
    forward: list[Any] = [
        ([[1.0], [-1.0]], [at - 1.0, 1.0 - at]),
        ([[0.5, -0.5]], [1.0 - at / 2 + shift]),
    ]
    return replace(line(), forward=forward, **changes)


case("a kink at Y", ACCEPTED, lambda: kinked(0.0))
case("a kink in the hole", ACCEPTED, lambda: kinked(0.0625))
case(
    "a kink on the hole's shell", ACCEPTED, lambda: kinked(0.125, rho=0.75, proofs=split_at(0.875))
)
case(
    "a kink in the hole, without invariance",
    ACCEPTED,
    lambda: without(kinked(0.0625), "invariance"),
)
case("a kink at Y and a residual", ACCEPTED, lambda: kinked(0.0, 2.0**-10, rho=0.75, delta=0.0625))
case(
    "an affine piece and a residual",
    ACCEPTED,
    lambda: kinked(0.5, 2.0**-10, rho=0.75, delta=0.0625, proofs=split_at(0.5)),
)
case(
    "a residual too large for its hole",
    ACCEPTED,
    lambda: kinked(0.0, 2.0**-6, rho=0.875, delta=0.0625, positivity=1.0),
)
RAISED: list[Any] = [ABSOLUTE[0], ([[1.0, 1.0]], [2.0**-10])]
case("a kink at Y and a lifted V", ACCEPTED, lambda: kinked(0.0, rho=0.875, lyapunov=RAISED))
SPLIT_V: list[Any] = [
    ([[1.0], [1.0], [-1.0]], [-1.0, -1.0, 1.0]),
    ([[2.0, -1.0, 1.0]], [0.0]),
]
case("a kink at Y and a V that is no gauge", ACCEPTED, lambda: kinked(0.0, lyapunov=SPLIT_V))


def split_at(place: float) -> dict[str, Json]:
    """The proofs of `line`, with one more cut below the hole."""
    axis = [0, 0, -2, -2, 0, -1, -2]
    cuts = (TWO[0], place, TWO[1])
    value = branch("decrease", tree("decrease", *ENDS, axis, cuts))
    return {**line().proofs, "decrease": value}


# ---- odd shapes: boxes of one point, networks without a hidden layer, numbers of 4,000 digits

POINT = ([1.0], [1.0])
RISING: list[Any] = [([[1.0]], [0.0])]  # V(y) = y


def affine(leaf: Json, **changes: Any) -> Callable[[], Hand]:
    """F(y) = y/2 on [1, 2] with V(y) = y: no ReLU anywhere."""
    options = {"rho": 0.5, "positivity": 0.0, "hole_radius": 0.0, **changes}
    ends = options.pop("ends", ([1.0], [2.0]))
    forward = options.pop("forward", [([[0.5]], [0.0])])
    proofs = {"decrease": branch("decrease", leaf)}
    return lambda: Hand(forward, RISING, *ends, [1.0], proofs=proofs, **options)


def on_interval(axis: list[int], cut: tuple[float, ...] = (), **more: Any) -> Json:
    return tree("decrease", [1.0], [2.0], axis, cut, **more)


case("no ReLU, tie", ACCEPTED, affine(on_interval([-2])))
case("no ReLU, ρ one ulp lower", BOUND, affine(on_interval([-2]), rho=next_to(0.5, DOWN)))
case(
    "no ReLU, stored slopes of no unit",
    ACCEPTED,
    affine(on_interval([-3]) | {"slopes": array([], [1, 0], "|u1")}),
)
case(
    "no ReLU, empty slopes of a billion leaves",
    "rejected: do not fit together",
    affine(on_interval([-2]) | {"slopes": array([], [10**9, 0], "|u1")}),
)
case(
    "no ReLU, a unit cut",
    "rejected: no such ReLU",
    affine(on_interval([1, -2, -2], multipliers=[[1, 0], [1, 0]])),
)
case("no hole, a hole leaf", "rejected: called inside the hole", affine(on_interval([-1])))
JUMPS: list[Any] = [([[0.5]], [9.0])]
case(
    "a box of one point, false there",
    BOUND,
    affine(tree("decrease", *POINT, [-2]), ends=POINT, forward=JUMPS),
)
case(
    "a box of one point, cut",
    "rejected: a cut does not lie inside",
    affine(tree("decrease", *POINT, [0, -2, -2], (1.0,)), ends=POINT),
)
case(
    "a box of one point in the hole",
    ACCEPTED,
    affine(tree("decrease", *POINT, [-1]), ends=POINT, forward=JUMPS, hole_radius=1.0),
)
case(
    "a sided root turned round",
    ROOT,
    positivity(tree("+0", [next_to(2.0, UP)], [2.0], [-2]), MINUS),
)
case("256 couplings", "rejected: numbers ≥ 0", coupling([0, 0, 128, 128, 1, 1], HALVES * 256))
LONG = 10**4000
case("multipliers of 4,000 digits", ACCEPTED, cells(weights(2, [3 * LONG, 2 * LONG, 0])))
case("one of 4,000 digits off by one", BOUND, cells(weights(2, [3 * LONG, 2 * LONG + 1, 0])))

# ---- what is said of no state, and numbers that a few digits do not hold

AWAY: list[Any] = [([[5.0]], [-4.0])]  # five times as far from Y = 1


def covered(**changes: Any) -> Hand:
    """D = [0, 2] lies in the hole, or is one state: nothing has to be shown outside of it."""
    loop = line(hole_radius=2.0, proofs={"none": {}}, **changes)
    root = (loop.lower, loop.upper)
    none: list[Json] = [{"row": row, "empty": True} for row in ("+0", "-0")]
    ends = [tree(name, *root, [-2]) for name in ("upper 0", "lower 0")]
    proofs = {
        "decrease": branch("decrease", tree("decrease", *root, [-1])),
        "positivity": branch("positivity", *none),
        "invariance": branch("invariance", *ends),
        "region": branch("region", multipliers=array([], [0, 1])),
    }
    return replace(loop, proofs=proofs)


def unled(margin: float) -> Hand:
    """`square` with a margin that no state of D has."""
    loop = square(0, margin=margin)
    lead = tree("class 1", loop.lower, loop.upper, [-2])
    region = branch("region", lead, multipliers=array([[0.0, 2.0]]))
    return proof(loop, "region", region)


case("D in the hole", ACCEPTED, covered)
case("D in the hole, F flies off", ACCEPTED, lambda: without(covered(forward=AWAY), "invariance"))
case("D is one state in the hole", ACCEPTED, lambda: covered(lower=[1.0], upper=[1.0]))
case(
    "D is one state, F flies off",
    ACCEPTED,
    lambda: covered(lower=[1.0], upper=[1.0], forward=AWAY),
)
case("D is Y, without a hole", ACCEPTED, lambda: around_no_state())
case("a margin that no state has", ACCEPTED, lambda: unled(4096.0))
case(
    "two classes, one of which leads nowhere", ACCEPTED, lambda: certificate(unled(64.0), square(1))
)
case(
    "two classes, other margins",
    ACCEPTED,
    lambda: certificate(square(0, margin=0.25), square(1, margin=0.1)),
)
case(
    "two classes, one margin",
    ACCEPTED,
    lambda: certificate(square(0, margin=0.1), square(1, margin=0.1)),
)


def around_no_state() -> Hand:
    loop = covered(lower=[1.0], upper=[1.0], forward=AWAY)
    tie = tree("decrease", [1.0], [1.0], [-2])
    sides = [tree(row, [1.0], [1.0], [-2]) for row in ("+0", "-0")]
    proofs = {
        **loop.proofs,
        "decrease": branch("decrease", tie),
        "positivity": branch("positivity", *sides),
    }
    return replace(loop, hole_radius=0.0, proofs=proofs)


def measured(**changes: Any) -> Hand:
    """`line` with other numbers, and what holds of any."""
    shown = {name: contraction(name) for name in ("decrease", "positivity")}
    return line(rho=0.75, proofs=shown, **changes)


case("D of seven digits", ACCEPTED, lambda: measured(lower=[1 - 2.0**-20], upper=[1 + 2.0**-21]))
case("D of long numbers", ACCEPTED, lambda: measured(lower=[0.1], upper=[1.7]))
case("D is one long number", ACCEPTED, lambda: measured(lower=[1.1], upper=[1.1]))
case("r and δ of long numbers", ACCEPTED, lambda: measured(hole_radius=1 / 7, delta=1 / 77))
case(
    "a form of no known name",
    "unreadable: the form is none of",
    lambda: lie(line(), put("classes", 0, "form", "\x1b[31mcertified")),
)
