"""More certificates that tell mutants by rule from the checker, with their expected outcome: one
axis, one sign, one name or one end that no other case asks for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from checker_cases import (
    ACCEPTED,
    BOUND,
    DOWN,
    ELSEWHERE,
    HALVES,
    NO,
    ROOT,
    UP,
    by_contraction,
    case,
    coupling,
    kinked,
    levels,
    lie,
    margin,
    next_to,
    positivity,
    problem,
    proof,
    put,
    refuted,
    split_at,
    square,
    with_decrease,
)
from hand_loops import (
    ENDS,
    HIGH,
    LOW,
    PLANE_V,
    SUPPORTED,
    Hand,
    Json,
    array,
    branch,
    certificate,
    contraction,
    head,
    level_tree,
    line,
    plane,
    plane_faces,
    section,
    tree,
)
from mutant_cases import OUTWEIGH, lopsided, touching, unproved
from property_cases import ENDS as BOTH_SIDES
from property_cases import SHOW, TINY, asked, block, leaves
from property_cases import proof as property_proof
from sublevel_cases import STAY, falls, network, one_leaf, root, stays

FIT = "rejected: do not fit together"
INSIDE = "rejected: called inside the hole"
OBJECT = "unreadable: must be an object"
SPLIT, TWO = [0, -2, 0, -1, -2], (0.9375, 1.0625)

# ---- signs and sizes


def low_centre(delta: float) -> Hand:
    """Y = (−1, −2): its size is that of its second number."""
    forward: list[Any] = [([[0.5, 0.0], [0.0, 0.5]], [-0.5, -1.0])]
    gauge: list[Any] = [(PLANE_V[0][0], [1.0, 2.0, -1.0, -2.0]), PLANE_V[1]]
    return Hand(forward, gauge, [-3.0, -3.0], [0.0, 0.0], [-1.0, -2.0], delta=delta)


case("δ at an eighth of a Y below zero", ACCEPTED, lambda: low_centre(0.25))
case("an anchor that is off by nearly nothing", ACCEPTED, lambda: plane(anchor=[1.0, 2.0**-300]))
GROW: list[Any] = [([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])]
case("decrease refuted below Y", ACCEPTED, refuted("decrease", [0.0, 0.0], forward=GROW))
case(
    "one class leads by no more than one",
    ELSEWHERE,
    lambda: replace(line(margin=1.5), points={"region": [1.0]}, proofs={"none": {}}),
)
LOWERED: list[Any] = [PLANE_V[0], (PLANE_V[1][0], [-0.03125])]
POSITIVE = {"proofs": {"positivity": contraction("positivity")}}
case(
    "positivity of a lowered V, just",
    ACCEPTED,
    by_contraction(lyapunov=LOWERED, hole_radius=0.0625, **POSITIVE),
)
case(
    "positivity of a lowered V, too near",
    NO,
    by_contraction(lyapunov=LOWERED, hole_radius=next_to(0.0625, DOWN), **POSITIVE),
)
SHIFTED: list[Any] = [(PLANE_V[0][0], [-1.0, 0.0, 0.96875, 0.0]), PLANE_V[1]]
case(
    "decrease of a V shifted the other way, too near",
    NO,
    by_contraction(
        lyapunov=SHIFTED,
        hole_radius=next_to(0.46875, DOWN),
        proofs={"decrease": contraction("decrease")},
    ),
)
case(
    "positivity up to Y, c above the floor",
    NO,
    by_contraction(positivity=2.0, hole_radius=0.0, **POSITIVE),
)
case(
    "V lowered, its residue counts",
    OUTWEIGH,
    margin(0.0625, hole_radius=0.5, lyapunov=LOWERED, positivity=0.25),
)
case("a hole of nearly nothing", ACCEPTED, lambda: unproved(plane(hole_radius=2.0**-300)))
case("numbers at the limits", ACCEPTED, lambda: unproved(at_limits()))


def at_limits() -> Hand:
    return plane(lower=[-(2.0**400), -1.0], upper=[2.0, 2.0**-400])


case(
    "two classes, steps of one digit and of two",
    ACCEPTED,
    lambda: certificate(square(0, rho=0.5), square(1)),
)


# ---- holes

# relu(z + 1/16) − 1/16 is zero at Y, though its unit is not at rest
STEP_V: list[Any] = [
    ([[1.0], [-1.0], [1.0]], [-1.0, 1.0, -0.9375]),
    ([[1.0, 1.0, 1.0]], [-0.0625]),
]
case(
    "a kink at Y and a V that is zero by luck",
    ACCEPTED,
    lambda: kinked(0.0, rho=0.75, positivity=0.5, lyapunov=STEP_V, proofs=split_at(0.875)),
)
case("a hole as large as D", ACCEPTED, lambda: kinked(0.0, hole_radius=1.0))
case(
    "a hole larger than one side of D",
    ACCEPTED,
    lambda: replace(lopsided(0.5, 2.0), hole_radius=0.75),
)


def idle_unit() -> Hand:
    """A unit without weights is zero at Y and does not move: the piece is affine."""
    loop = kinked(0.5, 2.0**-10, rho=0.75, delta=0.0625, proofs=split_at(0.5))
    (weight, bias), (outer, start) = loop.forward
    forward: list[Any] = [([*weight, [0.0]], [*bias, 0.0]), ([[*outer[0], 0.5]], start)]
    return replace(loop, forward=forward)


case("a unit that never moves", ACCEPTED, idle_unit)
case("steps without number", ACCEPTED, lambda: line(rho=next_to(1.0, DOWN)))


# ---- trees of two axes


def strip() -> Hand:
    """A piece that lies in the hole along one axis only."""
    low = [0.9375, -1.0]
    leaf = tree("decrease", low, HIGH, [0, -1, -2], (1.0625,))
    return plane(lower=low, proofs={"decrease": branch("decrease", leaf)})


case("a hole leaf that is too long", INSIDE, strip)


def sides(first: float = -0.125) -> Hand:
    """c·|z_i| ≤ |z_0| + |z_1|, on the part of D beyond the hole along each axis."""
    roots = [("+0", [1.125, -1.0], HIGH), ("-0", LOW, [0.875, 1.0])]
    roots += [("+1", [0.0, 0.125], HIGH), ("-1", LOW, [2.0, first])]
    trees = [tree(name, lower, upper, [-2]) for name, lower, upper in roots]
    return plane(proofs={"positivity": branch("positivity", *trees)})


case("positivity by sides of two axes", ACCEPTED, sides)
case("positivity by sides, one too short", ROOT, lambda: sides(next_to(-0.125, DOWN)))

# ---- units that touch zero, by one last bit
LITTLE = 2.0**-200
BARELY: list[Any] = [([[1.0]], [0.0]), ([[-1.0]], [LITTLE]), ([[1.0]], [0.875])]
case("a unit that is above zero by one bit", BOUND, lambda: touching(BARELY, -0.25))
DEAD: list[Any] = [
    ([[1.0], [-1.0]], [0.0, -5.0]),
    ([[-1.0, 1.0]], [0.0]),
    ([[1.0]], [1.0]),
]
case("a unit that touches zero beside a dead one", ACCEPTED, lambda: touching(DEAD, 0.0))


def barely_cut() -> Hand:
    """The loop with the first unit cut: where it is active, its output may still be zero."""
    loop = touching(BARELY, -0.25)
    upper = tree("upper 0", [-0.25], [1.0], [1, -2, -2], multipliers=[[1, 0], [1, 0]])
    lower = tree("lower 0", [-0.25], [1.0], [-2])
    return replace(loop, proofs={"invariance": branch("invariance", upper, lower)})


case("a cut unit's output may be zero", BOUND, barely_cut)

# ---- names and kinds

case("an unknown kind of leaf below all", FIT, with_decrease([0, -2, 0, -5, -2], TWO))
case(
    "a proof by trees with a name more",
    OBJECT,
    lambda: proof(line(), "decrease", line().proofs["decrease"] | {"note": 1}),
)
case(
    "a proof by faces with a name more",
    OBJECT,
    lambda: proof(plane(), "decrease", plane().proofs["decrease"] | {"note": 1}),
)
case(
    "trees in an object",
    "rejected: needs a list of 1 trees",
    lambda: proof(line(), "decrease", branch("decrease") | {"trees": {"decrease": 1}}),
)
case(
    "an empty row with something else",
    OBJECT,
    positivity(
        {"row": "+0", "void": True},
        tree("-0", [0.0], [0.0], [-2]),
        hole_radius=1.0,
        upper=[next_to(2, DOWN)],
    ),
)
ARRAY = "unreadable: -dimensional array"
case("a shape that is a number", ARRAY, problem("upper", array([2.0, 1.0]) | {"shape": 2}))
case(
    "a shape half below zero",
    "unreadable: 2-dimensional array",
    lambda: lie(
        plane(),
        put("classes", 0, "lyapunov", 0, 0, "weight", array([1.0] * 8, [4, -2])),
    ),
)


def long_source(layers: int, factors: int) -> Json:
    one = {"weight": array([[1.0]]), "bias": None}
    value = [[one] * factors for _ in range(layers)]
    return lie(line(), put("classes", 0, "controller", value))


case("65 layers", "unreadable: list of 1 to 64", lambda: long_source(65, 1))
case("9 factors", "unreadable: list of 1 to 8", lambda: long_source(1, 9))
case("64 layers of 8 factors", "rejected", lambda: long_source(64, 8))


def misfit() -> Json:
    """Factors of V that do not fit, and no bias that would notice it."""
    factors = [
        {"weight": array(rows), "bias": None} for rows in ([[1.0, 0.0]] * 3, [[1.0] * 2] * 4)
    ]
    rest = [{"weight": array([[1.0] * 4]), "bias": None}]
    return lie(plane(), put("classes", 0, "lyapunov", [factors, rest]))


case("factors of V that do not fit", "unreadable: malformed", misfit)

# ---- couplings

FIRST = [0, 0, 128, 128, 1, 1]
case("255 couplings", ACCEPTED, coupling(FIRST, HALVES * 255))
NOTHING = [[0.0, 0.0], [0.0, 0.0]]
case("the first coupling of two", ACCEPTED, coupling(FIRST, [*HALVES, NOTHING]))


def shaped(shape: list[int]) -> Hand:
    leaf = tree("decrease", *ENDS, SPLIT, TWO) | {"couplings": array([], shape)}
    return proof(line(), "decrease", branch("decrease", leaf))


case("no couplings of another shape", ACCEPTED, lambda: shaped([0, 3, 3]))
case("a coupling of nothing", "rejected: must be 2 × 2", lambda: shaped([1, 0, 0]))
MIXED: list[Any] = [([[1.0], [1.0]], [-1.0, -1.0]), ([[2.0, -1.0]], [0.0])]


def beside_negative() -> Hand:
    """The unit of weight 2 is coupled, the one of weight −1 is not: on one side of Y both are what
    they are."""
    leaf = tree(
        "decrease", [1.0], [2.0], [-3], (), [[0, 0, 0, 0, 1, 0]], [[[0.5, 0.0], [0.0, 0.0]]]
    )
    return line(lyapunov=MIXED, lower=[1.0], proofs={"decrease": branch("decrease", leaf)})


case("a coupled unit beside a negative one", ACCEPTED, beside_negative)


def second_cut_and_coupled() -> Hand:
    """The second unit of V∘F is cut, and coupled where its sign is fixed."""
    theta = [[[0.0, 0.0], [0.0, 64.0]]]
    options: dict[str, Any] = {"multipliers": [[1, 1], [1, 0]]}
    leaf = tree("decrease", [1.0], [2.0], [2, -3, -2], (), [[0, 0, 0, 0, 0, 1]], theta, **options)
    value = {"decrease": branch("decrease", leaf)}
    return line(forward=[([[2.0]], [-1.0])], lower=[1.0], hole_radius=0.0, rho=0.75, proofs=value)


case("the second unit cut and coupled", "rejected: cannot be coupled", second_cut_and_coupled)
case("supports in one long line", FIT, lambda: in_one_line())


def in_one_line() -> Hand:
    flat = [number for line in SUPPORTED for number in line]
    leaf = level_tree() | {"supported": array(flat, [1, 25], "<i4")}
    return replace(levels()(), proofs={"decrease": branch("decrease", leaf)})


# ---- faces and sections

case(
    "faces that touch their margin, strict",
    ACCEPTED,
    lambda: plane(
        hole_radius=0.0,
        rho=1.0,
        proofs={"decrease": plane_faces("decrease", 0.25, ("decrease",))},
    ),
)
SECTION = "rejected: V may be smaller on a face"
case("the section, a face that is 4.0", SECTION, lambda: section(faces=[4.0, 5]))


def section_in_hole() -> Hand:
    """A hole leaf, where nothing but the section is looked at."""
    leaf = section().proofs["decrease"]["tree"]
    leaf |= {"axis": array([-1], dtype="|i1"), "slopes": array([], [0, 6], "|u1")}
    leaf |= {"supported": array([], [0, 5], "<i4")}
    return replace(section(tree=leaf), hole_radius=4.0)


case("a hole leaf of a section", INSIDE, section_in_hole)
case(
    "a section without supports",
    "rejected: not one of V around Y",
    lambda: section(tree=tree("decrease", *ENDS, [-2])),
)


def wide_section(leaning: int, level: float = 0.5, value: float = 0.125) -> Hand:
    """F halves z, V = |z_0| + |z_1|, V = 1/2, a quarter at a time: V/2 − 3V/4 = −1/8 there. The
    face `leaning` uses half a unit of the other axis too, so that its bound touches the level."""
    quarters = [[0.0, 0.25, 0.0, 0.0, 0.5, 0.5], [0.0, 0.25, 0.0, 0.5, 0.5, 0.0]]
    quarters += [[0.0, 0.25, 0.5, 0.0, 0.0, 0.5], [0.0, 0.25, 0.5, 0.5, 0.0, 0.0]]
    # the units are z_0, z_1, −z_0, −z_1; the faces z_0 = −1, z_0 = 1, z_1 = −1, z_1 = 1
    found = []
    for face, (own, other) in enumerate(((2, 1), (0, 3), (3, 0), (1, 2))):
        theta = [0.0] * 4
        theta[own] = 1.0
        theta[other] = 0.5 if face == leaning else 0.0
        found.append([1.0, 0.0, *theta])
    axis, cuts = [0, 1, -4, -4, 1, -4, -4], (1.0, 0.0, 0.0)
    leaf = tree("decrease", LOW, HIGH, axis, cuts, [[0] * 12] * 4)
    numbers = [[0] * 8 + [k] for k in (1, 2, 3, 4)]
    leaf |= {"supports": array(quarters + found), "supported": array(numbers, dtype="<i4")}
    stated = {"margin": value, "level": level, "faces": [5, 6, 7, 8], "tree": leaf}
    forward: list[Any] = [([[0.5, 0.0], [0.0, 0.5]], [0.5, 0.0])]
    value_of = {"decrease": head("homogeneous", "decrease") | stated}
    return plane(forward=forward, rho=0.75, hole_radius=0.0, proofs=value_of)


for face in range(4):
    case(f"a section of two axes, face {face}", ACCEPTED, lambda face=face: wide_section(face))
    case(
        f"a section of two axes too far for face {face}",
        SECTION,
        lambda face=face: wide_section(face, next_to(0.5, UP)),
    )
case(
    "a section of two axes, margin too large",
    BOUND,
    lambda: wide_section(-1, value=next_to(0.125, UP)),
)


# ---- properties

# relu(−relu(x)) is 0: intervals would show it, substitution reaches 1/4 above [−1/4, 1]
BEHIND = [
    block([4.0, 5.0, 0.0], (0, [[1.0], [1.0], [1.0]]), relu=True),
    block([0.0, -30.0], (1, [[0.0, 0.0, -1.0], [1.0, 1.0, 0.0]]), relu=True),
    block([0.0], (2, [[1.0, 1.0]])),
]


def behind(top: float) -> Json:
    ends = ([-0.25], [1.0])
    tree = leaves([-2], [[1]], relus=5)
    return property_proof(1, BEHIND, asked(ends, [[0.0, 1.0]], [-top], tree))


case("property, a unit behind a ReLU", ACCEPTED, lambda: behind(0.25 + TINY))
case("property, a unit behind a ReLU, by substitution", SHOW, lambda: behind(TINY))
# the first ReLU is needed at the end, the second one by another ReLU
CROSSED = [
    block([0.0], (0, [[1.0]]), relu=True),
    block([0.0], (0, [[-1.0]]), relu=True),
    block([-0.5], (2, [[1.0]]), relu=True),
    block([0.0], (1, [[1.0]]), (3, [[1.0]])),
]


def crossed() -> Json:
    tree = leaves([0, -2, -2], [[1], [1]], (0.0,), relus=3)
    return property_proof(1, CROSSED, asked(BOTH_SIDES, [[0.0, 1.0]], [-1.5], tree))


case("property, a late ReLU before an early one", ACCEPTED, crossed)


# ---- sublevel sets

case("sublevel, a floor beside a level that stays", ACCEPTED, stays(floor=0.125))
case(
    "sublevel, three cases in an object",
    "rejected: needs a list of 3",
    stays(cases=dict(zip("abc", STAY, strict=True))),
)
POINT = {"lower": array([0.5]), "upper": array([0.5])}
case("sublevel, a box of one point", ACCEPTED, falls([root(one_leaf(0, 1), 0.5, 0.5)], **POINT))
LEVELED = [root(leaves([0, -2, -2], [[0, 1, 2]] * 2, (0.0,), relus=4))]
case("sublevel, V once in its floor", ACCEPTED, falls(LEVELED, 0.125, floor=0.25 + TINY, level=1.0))
case(
    "sublevel, V once in its floor, touching",
    SHOW,
    falls(LEVELED, 0.125, floor=0.25, level=1.0),
)
case(
    "sublevel, 65 layers",
    "unreadable: list of 1 to 64",
    stays(F=network(*[([[0.5]], [0.0])] * 65)),
)


# ---- files that were saved anew


def sorted_bytes(content: Json) -> bytes:
    """As certificates are written: names in their order."""
    text = json.dumps(content, indent=1, sort_keys=True)
    body = text.removeprefix("{\n").encode("ascii") + b"\n"
    return b'{\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


SORTED = sorted_bytes(certificate(line()))
SAVED = "unreadable: re-formatted"
case("names in their order", ACCEPTED, lambda: SORTED)
case("saved with other line ends", SAVED, lambda: SORTED.replace(b"\n", b"\r\n"))
case("saved without its last line end", SAVED, lambda: SORTED.rstrip())
case("saved with a mark", SAVED, lambda: b"\xef\xbb\xbf" + SORTED)
for code in ("utf-16-le", "utf-16-be"):
    mark = "\ufeff".encode(code)
    case(
        f"saved as {code}", SAVED, lambda code=code, mark=mark: mark + SORTED.decode().encode(code)
    )


def endless() -> bytes:
    """A number beyond all floats, under the seal of what it would be written as."""
    content = certificate(line()) | {"provenance": float("inf")}
    return sorted_bytes(content).replace(b"Infinity", b"1e999")


case("an endless number under a seal of its text", "rejected: SHA-256", endless)
case("saved and changed", "rejected: SHA-256", lambda: SORTED.replace(b"paper", b"Paper").rstrip())


def many_values(count: int) -> bytes:
    return sorted_bytes(certificate(line()) | {"provenance": [[]] * count})


MANY = "unreadable: far more values"
case("many values", ACCEPTED, lambda: many_values(40_000))
case("far too many values", MANY, lambda: many_values(60_000))


# ---- a kink of the second layer, where the first one is far from its own

LATE: list[Any] = [
    ([[1.0]], [1.0]),
    ([[1.0], [1.0], [1.0]], [0.0, 1.0, -2.0625]),
    ([[1.0, -0.5, 0.25]], [0.5]),
]
case("a kink behind an active unit", ACCEPTED, lambda: replace(line(), forward=LATE, rho=0.75))
# twice the end, 8·shift, is the hole's radius
case(
    "a residual that ends half way out of the hole",
    ACCEPTED,
    lambda: kinked(0.0, 2.0**-6, rho=0.75, delta=0.0625),
)
case(
    "a residual that ends three eighths out of the hole",
    ACCEPTED,
    lambda: kinked(0.0, 0.75 * 2.0**-6, rho=0.75, delta=0.0625),
)
