"""Certificates that tell mutants of the checker from the checker, with their expected outcome.

Each was written for a mutant that all other cases let through."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from checker_cases import (
    ACCEPTED,
    BOUND,
    DOWN,
    ELSEWHERE,
    NEEDS,
    SATISFIED,
    SPENT,
    UP,
    case,
    cells,
    kinked,
    lie,
    next_to,
    put,
    refuted,
    split_at,
    square,
    weights,
)
from hand_loops import (
    BENT,
    ENDS,
    HIGH,
    LOW,
    PLANE_V,
    SLICE_CUTS,
    SLICES,
    SUPPORTED,
    Hand,
    Json,
    array,
    branch,
    certificate,
    contraction,
    faces,
    level_tree,
    line,
    plane,
    plane_faces,
    section,
    slices,
    tree,
)
from property_cases import ENDS as BOTH_SIDES
from property_cases import RAMP, SHOW, TINY, asked, block, leaves
from property_cases import proof as property_proof
from sublevel_cases import FLOOR, falls, network
from sublevel_cases import proof as sublevel_proof

# ---- properties: which constant belongs to which inequality, which slopes to which leaf


def falling_constants(*multipliers: int) -> Json:
    """x + 3 ≥ 0, which always holds, and relu(x) − 2 ≥ 0, which never does."""
    rows, constants = [[1.0, 0.0], [0.0, 1.0]], [3.0, -2.0]
    tree = leaves([-2], [list(multipliers)], relus=1)
    return property_proof(1, RAMP, asked(BOTH_SIDES, rows, constants, tree))


case("property, constants that fall", ACCEPTED, lambda: falling_constants(0, 1))
case("property, the constant of the other one", SHOW, lambda: falling_constants(1, 0))
KINKS = [
    block([0.5, -0.5], (0, [[1.0], [1.0]]), relu=True),
    block([0.0], (1, [[-1.0, -1.0]]), (0, [[1.0]])),
]


def two_slopes(left: list[int], right: list[int]) -> Json:
    """x + 1/2 − relu(x + 1/2) − relu(x − 1/2) is 0 at most: below 0 the first unit has to go with
    x + 1/2, above it the second one with 0."""
    tree = leaves([0, -3, -3], [[1], [1]], (0.0,), (left, right))
    case = asked(BOTH_SIDES, [[0.0, 1.0]], [0.5 - TINY], tree)
    return property_proof(1, KINKS, case)


case("property, slopes of each leaf", ACCEPTED, lambda: two_slopes([255, 255], [0, 0]))
case("property, slopes of the other leaf", SHOW, lambda: two_slopes([0, 0], [255, 255]))


# ---- faces: the farthest one decides


def far_face(top: float, radius: float) -> Hand:
    """The plane with δ = 1/32 and μ = 3·δ on [0, 2] × [−1, top]: r ≥ R/2, and R = top."""
    low, high = [0.0, -1.0], [2.0, top]
    found = []
    for axis in (0, 1):
        for side in (low, high):
            lower, upper = list(low), list(high)
            lower[axis] = upper[axis] = side[axis]
            cut = (0.0,) if axis == 0 else (1.0,)
            found.append(tree("decrease", lower, upper, [1 - axis, -2, -2], cut))
    options: dict[str, Any] = {"positivity": 0.25, "delta": 0.0625, "upper": high}
    value = {"decrease": faces("decrease", 0.09375, *found)}
    return plane(2.0**-6, hole_radius=radius, proofs=value, **options)


OUTWEIGH = "rejected: does not outweigh"
case("the farthest face decides", ACCEPTED, lambda: far_face(2.0, 1.0))
case("the farthest face, r one ulp lower", OUTWEIGH, lambda: far_face(2.0, next_to(1.0, DOWN)))
case("the nearest face does not decide", OUTWEIGH, lambda: far_face(2.0, 0.5))


# ---- supports: what the row may use, a unit may not, in whatever order they come


def cut_outermost(*numbers: list[int]) -> Hand:
    """The outermost slice cut at Y, so that two leaves have the same level."""
    cuts = (*SLICE_CUTS, 1.0)
    axis = [*SLICES[:-1], 0, -4, -4]
    return slices(level_tree(axis, cuts, supported=[*SUPPORTED[:-1], *numbers]))


case("a slice cut at Y", ACCEPTED, lambda: cut_outermost([0, 0, 0, 0, 3], [0, 0, 0, 0, 3]))
case(
    "the row's support for a unit, later",
    SPENT,
    lambda: cut_outermost([0, 0, 0, 0, 3], [3, 0, 0, 0, 3]),
)


def raised_by_little() -> Hand:
    """V = |y − 1| + 2^-300 where it is said to be above −2^-240: what γ = 2^-60 takes off is too
    little by 2^-360, less than the last bit of the bound."""
    gauge: list[Any] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[1.0, 1.0]], [2.0**-300])]
    supports = [[0.0, 0.0, 1.0, 0.0], [0.0, 2.0**-60, 0.5, 0.0]]
    leaf = tree("+0", [1.125], [2.0], [3, -4, -4], (-(2.0**-240),), [[0, 0]] * 2)
    leaf |= {"supports": array(supports), "supported": array([[1], [2]], dtype="<i4")}
    down = tree("-0", [0.0], [0.875], [-2])
    loop = line(lyapunov=gauge, positivity=0.5)
    return replace(loop, proofs={"positivity": branch("positivity", leaf, down)})


case("a support's last bits are rounded up", BOUND, raised_by_little)


# ---- holes and what follows of them


def late_kink(at: float) -> Hand:
    """Y + relu(z)/4 + relu(relu(z) − at)/4 − relu(−z)/2: the first layer is conic, and moves a unit
    of the second one across its kink. κ = 1."""
    forward: list[Any] = [
        ([[1.0], [-1.0]], [-1.0, 1.0]),
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0.0, 0.0, -at]),
        ([[0.25, -0.5, 0.25]], [1.0]),
    ]
    return replace(line(), forward=forward)


case("a kink behind a conic unit", ACCEPTED, lambda: late_kink(0.0625))
case("a kink behind a conic unit, on the shell", ACCEPTED, lambda: late_kink(0.125))

STEEP: list[Any] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[1.0, 4.0]], [0.0])]


def steep(shift: float, c: float = 1.0) -> Hand:
    """V = relu(z) + 4·relu(−z): the way back from a residual counts four times. ρ + back = 1 where
    shift = c/128, while twice the end, 8·shift/c, is half of the hole's radius."""
    options: dict[str, Any] = {"rho": 0.75, "delta": 0.0625, "proofs": split_at(0.5)}
    return kinked(0.5, shift, lyapunov=STEEP, positivity=c, **options)


case("a residual whose way back is too long", ACCEPTED, lambda: steep(2.0**-7))
case("a residual whose way back is short", ACCEPTED, lambda: steep(2.0**-7 - 2.0**-20))
case("a residual to the steep side", ACCEPTED, lambda: steep(-(2.0**-9)))
case("a way back that is too long, c one half", ACCEPTED, lambda: steep(2.0**-8, 0.5))
case("a way back that is short, c one half", ACCEPTED, lambda: steep(2.0**-8 - 2.0**-20, 0.5))


def half_steep(shift: float) -> Hand:
    """A kink at Y, c = 1/2: twice the end, 16·shift, is the radius where shift is 1/128."""
    return kinked(0.0, shift, rho=0.75, delta=0.0625, positivity=0.5)


case("a residual half way out of the hole, c one half", ACCEPTED, lambda: half_steep(2.0**-7))
case("a residual less than that, c one half", ACCEPTED, lambda: half_steep(0.75 * 2.0**-7))


def lopsided(lower: float, upper: float) -> Hand:
    """A kink at Y, on a box that ends nearer on one side; no invariance."""
    decrease = tree("decrease", [lower], [upper], [0, -2, 0, -1, -2], (0.9375, 1.0625))
    up = tree("+0", [1.125], [upper], [-2])
    down = tree("-0", [lower], [0.875], [-2])
    proofs = {
        "decrease": branch("decrease", decrease),
        "positivity": branch("positivity", up, down),
    }
    return replace(kinked(0.0), lower=[lower], upper=[upper], proofs=proofs)


case("a box that ends early below", ACCEPTED, lambda: lopsided(0.5, 2.0))
case("a box that ends early above", ACCEPTED, lambda: lopsided(0.0, 1.25))


def moved(label: int, shift: float) -> Hand:
    """`square` with a residual."""
    loop = square(label)
    ((weight, bias),) = loop.forward
    forward: list[Any] = [(weight, [b + shift * (k == label) for k, b in enumerate(bias)])]
    return replace(loop, forward=forward, delta=0.0625)


for first, second in ((0, 1), (1, 0)):
    case(
        f"two classes, the radius of class {first}",
        ACCEPTED,
        lambda first=first, second=second: certificate(
            moved(first, 2.0**-8), moved(second, 2.0**-9)
        ),
    )


def many_steps() -> Hand:
    """max V/(c·r), in units of 2^-64, is such that three products with ρ, rounded up, just reach
    1, and one that is rounded down does not: one step more."""
    left = 1 << 64
    for _ in range(3):
        left = 4 * left // 3
    most = Fraction(left, 1 << 64) * Fraction(7, 8)  # of both units and the constant
    slope = next_to(float(most / 2), DOWN)
    rest = float(most - 2 * Fraction(slope))
    assert 2 * Fraction(slope) + Fraction(rest) == most
    gauge: list[Any] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[slope, slope]], [rest])]
    return line(lyapunov=gauge, rho=0.75, hole_radius=0.875)


case("a bound on the steps that is rounded up", ACCEPTED, many_steps)


# ---- three classes: the strongest rival decides


def cube(point: list[float], **changes: Any) -> Hand:
    """y → y/2 around Y = e_0, with a counterexample to the region."""
    identity = [[float(i == j) for j in range(3)] for i in range(3)]
    inner = identity + [[-w for w in row] for row in identity]
    gauge: list[Any] = [(inner, [-1.0, 0.0, 0.0, 1.0, 0.0, 0.0]), ([[1.0] * 6], [0.0])]
    weight = [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    forward: list[Any] = [(weight, changes.pop("bias", [0.5, 0.0, 0.0]))]
    ends = ([-2.0] * 3, [2.0] * 3)
    return Hand(forward, gauge, *ends, [1.0, 0.0, 0.0], points={"region": point}, **changes)


# the lead falls from 1 to 1/2 + 1/2·(y_0 − y_k)
case("three classes, region refuted", ACCEPTED, lambda: cube([2.0, 0.0, -2.0], margin=1.75))
case("three classes, a rival is near", ELSEWHERE, lambda: cube([1.0, 0.0, -2.0], margin=1.25))
case("three classes, satisfied", SATISFIED, lambda: cube([2.0, 0.0, -2.0], margin=1.5))


# ---- what a file costs

# relu(x) through an affine block, beside relu(−x): both belong to one stage
BESIDE = [
    block([0.0], (0, [[1.0]]), relu=True),
    block([0.0], (1, [[1.0]])),
    block([0.0], (0, [[-1.0]]), relu=True),
    block([0.0], (2, [[1.0]]), (3, [[1.0]])),
]


def beside() -> Json:
    """|x| < 2 on both sides of 0."""
    tree = leaves([0, -2, -2], [[1], [1]], (0.0,), relus=2)
    return property_proof(1, BESIDE, asked(BOTH_SIDES, [[0.0, 1.0]], [-2.0], tree))


case("property, a ReLU beside an affine block", ACCEPTED, beside)


# ---- what every place of the checker is for: a case where leaving it out shows


def unproved(loop: Hand) -> Hand:
    """Nothing but what follows from the weights."""
    return replace(loop, proofs={"none": {}})


# holes: a unit of V that is not at rest, a negative weight deep in V, signs of F's weights
BUMP: list[Any] = [([[1.0], [-1.0], [1.0]], [-1.0, 1.0, -1.0625]), ([[1.0, 1.0, 1.0]], [0.0])]
case("a kink at Y and a bump of V", ACCEPTED, lambda: kinked(0.0, rho=0.75, lyapunov=BUMP))
DEEP_V: list[Any] = [
    ([[1.0], [-1.0]], [-1.0, 1.0]),
    ([[1.0, 0.0], [-0.5, 1.0]], [0.0, 0.0]),
    ([[1.0, 1.0]], [0.0]),
]
case("a kink at Y and a V that is convex by luck", ACCEPTED, lambda: kinked(0.0, lyapunov=DEEP_V))
ONE_SIDED: list[Any] = [
    ([[1.0], [1.0], [-1.0]], [1.0, 2.0, 0.9375]),
    ([[1.0, -0.5, 0.25]], [0.5]),
]
case("a kink of a falling unit in the hole", ACCEPTED, lambda: replace(line(), forward=ONE_SIDED))


def asleep() -> Hand:
    """A unit that is inactive around Y, and would move the next one across its kink if it were not:
    z/2 around Y, −1/8 below z = −1/4."""
    forward: list[Any] = [
        ([[1.0], [-1.0]], [1.0, 0.5]),
        ([[1.0, -4.0]], [-1.75]),
        ([[0.5]], [0.875]),
    ]
    axis, cuts = [0, 0, 0, -2, -2, -2, 0, -1, -2], (0.9375, 0.75, 0.5, 1.0625)
    value = branch("decrease", tree("decrease", *ENDS, axis, cuts))
    return replace(line(), forward=forward, rho=0.75, proofs={**line().proofs, "decrease": value})


case("an inactive unit moves nothing", ACCEPTED, asleep)


def only_positive() -> Hand:
    """c = 0: V > 0 outside the hole says nothing of how far a sublevel set reaches."""
    leaf = tree("positivity", *ENDS, [0, -2, 0, -1, -2], (0.9375, 1.0625))
    loop = kinked(0.0, positivity=0.0)
    return replace(loop, proofs={**loop.proofs, "positivity": branch("positivity", leaf)})


case("a kink at Y, c = 0", ACCEPTED, only_positive)
LEANING: list[Any] = [PLANE_V[0], ([[1.0, 1.0, 2.0, 1.0]], [0.0])]
QUARTER = [[0.25, 0.0], [0.0, 0.25]]
for name, shift in (("up", 2.0**-8), ("down", -(2.0**-8))):
    case(
        f"a residual {name} in an uneven gauge",
        ACCEPTED,
        lambda shift=shift: unproved(
            plane(forward=[(QUARTER, [0.75 + shift, 0.0])], lyapunov=LEANING, delta=0.0625)
        ),
    )
IDLE: list[Any] = [
    ([*PLANE_V[0][0], [1.0, 0.0]], [*PLANE_V[0][1], -1.0]),
    ([[1.0, 1.0, 1.0, 1.0, 0.0]], [0.0]),
]
case("contraction, a unit of no weight", ACCEPTED, lambda: unproved(plane(lyapunov=IDLE)))
case(
    "contraction, V > 0 up to Y",
    ACCEPTED,
    lambda: plane(
        positivity=0.0, hole_radius=0.0, proofs={"positivity": contraction("positivity")}
    ),
)
# 1/8 of the way in every step, 126,000 steps into the hole: no bound worth stating
for name, rho in (("a hundred", 1 - 2.0**-6), ("too many", 1 - 2.2e-5)):
    case(f"{name} steps into the hole", ACCEPTED, lambda rho=rho: line(rho=rho))
case("a box below zero", ACCEPTED, lambda: below_zero(-2.0, -1.0))


def below_zero(lower: float, upper: float) -> Hand:
    return unproved(replace(line(), lower=[lower], upper=[upper]))


EMPTY = "unreadable: the box is empty"
case(
    "an empty box above zero",
    EMPTY,
    lambda: lie(line(), put("classes", 0, "problem", "lower", array([3.0]))),
)


def wide_centre(delta: float) -> Hand:
    """Y = (1, −1), whose size is 2."""
    forward: list[Any] = [([[0.5, 0.0], [0.0, 0.5]], [0.5, -0.5])]
    gauge: list[Any] = [(PLANE_V[0][0], [-1.0, 1.0, 1.0, -1.0]), PLANE_V[1]]
    return Hand(forward, gauge, [-2.0, -2.0], [2.0, 2.0], [1.0, -1.0], delta=delta)


case("δ at an eighth of the width of Y", ACCEPTED, lambda: wide_centre(0.25))
case(
    "δ beyond an eighth of the width of Y",
    "rejected: says nothing",
    lambda: lie(wide_centre(0.25), put("classes", 0, "problem", "delta", next_to(0.25, UP))),
)

# counterexamples that satisfy what they should violate
case("decrease satisfied, strict", SATISFIED, refuted("decrease", [2.0, 0.0], rho=1.0))
case("region satisfied by a small lead", SATISFIED, refuted("region", [0.5, 0.5]))
case(
    "one class leads itself",
    SATISFIED,
    lambda: replace(line(), points={"region": [1.0]}, proofs={"none": {}}),
)


# ---- trees

case(
    "a proof that is a list",
    "rejected: version 4",
    lambda: lie(line(), put("classes", 0, "conditions", "decrease", "proof", [])),
)
case("Q = 0 beside a multiplier", NEEDS, cells(weights(2, [0, 1, 0])))
case("multipliers that are a number", NEEDS, cells(7))


def cut_across(slope: float, cut: tuple[float, ...] = (1.0,)) -> Hand:
    """F_0 = 1 + y_0/2 − slope·y_1 leaves D at (2, −1) only, which is in neither the first half's
    lower edge nor the second half's upper one."""
    forward: list[Any] = [([[0.5, -slope], [0.0, 0.5]], [1.0, 0.0])]
    rows = ("upper 0", "lower 0", "upper 1", "lower 1")
    trees = [tree(row, LOW, HIGH, [0, -2, -2], cut) for row in rows]
    return plane(
        forward=forward, anchor=[1.0, 0.0], proofs={"invariance": branch("invariance", *trees)}
    )


case("a box of two axes cut", ACCEPTED, lambda: cut_across(0.0))
case("a box of two axes cut, a corner out", BOUND, lambda: cut_across(0.25))


def stored_twice(left: list[int], right: list[int]) -> Hand:
    """y + 3/2 − relu(y + 1/2) − relu(y − 1/2) reaches 1, D's upper end, all along: each half needs
    slopes of its own."""
    forward: list[Any] = [
        ([[1.0], [1.0], [1.0]], [0.5, -0.5, 4.0]),
        ([[-1.0, -1.0, 1.0]], [-2.5]),
    ]
    upper = tree("upper 0", [-1.0], [1.0], [0, -3, -3], (0.0,), [left, right])
    lower = tree("lower 0", [-1.0], [1.0], [-2])
    proofs = {"invariance": branch("invariance", upper, lower)}
    return line(forward=forward, lower=[-1.0], upper=[1.0], anchor=[1.0], proofs=proofs)


case("stored slopes of each leaf", ACCEPTED, lambda: stored_twice([255] * 3, [0] * 3))
case("stored slopes of the other leaf", BOUND, lambda: stored_twice([0] * 3, [255] * 3))
TOUCHES: list[Any] = [([[1.0]], [0.0]), ([[-1.0]], [0.0]), ([[1.0]], [1.0])]


def touching(forward: list[Any], start: float) -> Hand:
    """From 0 on, the first unit is y itself, and one of the second layer touches zero; from below
    0 on, substitution finds both signs of it."""
    ends = ([start], [1.0])
    trees = [tree(name, *ends, [-2]) for name in ("upper 0", "lower 0")]
    proofs = {"invariance": branch("invariance", *trees)}
    return line(forward=forward, lower=ends[0], upper=ends[1], anchor=[1.0], proofs=proofs)


case("a unit that touches zero from below", ACCEPTED, lambda: touching(TOUCHES, 0.0))
case("a unit that goes beyond zero", BOUND, lambda: touching(TOUCHES, -0.25))
ABOVE: list[Any] = [
    ([[1.0], [1.0]], [0.0, 1.0]),
    ([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]),
    ([[1.0, -1.0]], [1.75]),
]
case("a unit that touches zero from above", ACCEPTED, lambda: touching(ABOVE, 0.0))
case("a unit that goes below zero", BOUND, lambda: touching(ABOVE, -0.25))


# ---- faces


def still_faces(**changes: Any) -> Hand:
    """No residue, no hole: any margin carries the inside."""
    return plane(proofs={"decrease": plane_faces("decrease", 0.125, ("decrease",))}, **changes)


case("faces without a hole, strict", ACCEPTED, lambda: still_faces(hole_radius=0.0, rho=1.0))


def lifted_faces(rows: tuple[str, ...], **changes: Any) -> Hand:
    """V = |z_0| + |z_1| + 1/32: the residue is 1/32, and μ = 3/32 needs r ≥ R/2."""
    gauge: list[Any] = [PLANE_V[0], (PLANE_V[1][0], [0.03125])]
    value = plane_faces("positivity", 0.09375, rows)
    return plane(lyapunov=gauge, proofs={"positivity": value}, **changes)


SIDED = ("+0", "-0", "+1", "-1")
case("positivity by faces, a tie", ACCEPTED, lambda: lifted_faces(SIDED, hole_radius=0.5))
case(
    "positivity by faces, c = 0, a tie",
    OUTWEIGH,
    lambda: lifted_faces(("positivity",), hole_radius=0.5, positivity=0.0),
)
case(
    "positivity by faces, c = 0",
    ACCEPTED,
    lambda: lifted_faces(("positivity",), hole_radius=next_to(0.5, UP), positivity=0.0),
)


# ---- couplings


def one_unit() -> Hand:
    """V = relu(y − 1) has one unit, and its coupling is the first one."""
    leaf = tree("decrease", [1.0], [2.0], [-3], (), [[0, 0, 1]], [[[0.5]]])
    gauge: list[Any] = [([[1.0]], [-1.0]), ([[1.0]], [0.0])]
    return line(lyapunov=gauge, lower=[1.0], proofs={"decrease": branch("decrease", leaf)})


case("the only unit coupled", ACCEPTED, one_unit)


def idle_unit() -> Hand:
    """A unit of weight 0 is coupled, for nothing."""
    gauge: list[Any] = [([[1.0], [-1.0], [1.0]], [-1.0, 1.0, 0.0]), ([[1.0, 1.0, 0.0]], [0.0])]
    theta = [[[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]]
    slopes = [[0, 0, 0, 128, 128, 0, 1, 1, 1]]
    leaf = tree("decrease", *ENDS, [-3], (), slopes, theta)
    return line(lyapunov=gauge, hole_radius=0.0, proofs={"decrease": branch("decrease", leaf)})


case("a unit of no weight coupled", ACCEPTED, idle_unit)


# ---- levels


def bent_level() -> Hand:
    """A leaf with supports where F has units of its own."""
    leaf = tree("decrease", *ENDS, [0, -2, 0, -1, -4], (0.9375, 1.0625), [[0] * 6])
    numbers = array([[0] * 8 + [1]], dtype="<i4")
    leaf |= {"supports": array([[0.0, 0.0, 0.75, 0.0]]), "supported": numbers}
    return line(forward=BENT, rho=0.75, proofs={"decrease": branch("decrease", leaf)})


case("supports where F has units", ACCEPTED, bent_level)


def raised_section(start: float, **changes: Any) -> Hand:
    """V = |y − 1| + start on V = 1 + start: the bound is −1/4 + start/4, and the hole outweighs the
    residue."""
    gauge: list[Any] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[1.0, 1.0]], [start])]
    options = {"level": 1.0 + start, "margin": 0.25 - start / 4, **changes}
    return replace(section(**options), lyapunov=gauge, hole_radius=0.5)


for start in (2.0**-6, -(2.0**-6)):
    case(f"a section of V raised by {start}", ACCEPTED, lambda start=start: raised_section(start))
    case(
        f"a section of V raised by {start}, too far",
        "rejected: V may be smaller",
        lambda start=start: raised_section(start, level=next_to(1.0 + start, UP)),
    )
    case(
        f"a section of V raised by {start}, margin too large",
        BOUND,
        lambda start=start: raised_section(start, margin=next_to(0.25 - start / 4, UP)),
    )


def last_support() -> Hand:
    """A face that names no support, where the last one would do."""
    loop = section(faces=[0, 5])
    leaf = loop.proofs["decrease"]["tree"]
    supports = [[0.5, 0.0, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5], [0.0, 0.75, 0.0, 0.0]]
    supports += [[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]
    value = loop.proofs["decrease"] | {"tree": leaf | {"supports": array(supports)}}
    return replace(loop, proofs={"decrease": value})


case("a face without a support, the last one", "rejected: V may be smaller", last_support)


def nested_levels(first: float, second: float, *kinds: int) -> Hand:
    """Slices cut once more where the first cut says more than the second one."""
    axis = [*SLICES[:-1], 5, -4, -4]
    cuts = (first, *SLICE_CUTS[1:], second)
    numbers = [*SUPPORTED[:-1], *[[0, 0, 0, 0, k] for k in kinds]]
    return slices(level_tree(axis, cuts, supported=numbers))


case("a lower level above a level", ACCEPTED, lambda: nested_levels(11 / 16, 0.5, 3, 3))
case("a higher level above a level", ACCEPTED, lambda: nested_levels(11 / 16, 0.75, 3, 3))


def level_below_level() -> Hand:
    """Below V = 15/32 a cut at a higher level says nothing new."""
    axis = [5, 5, 5, 0, -4, 0, -1, -4, 5, -4, -4, -4, -4]
    cuts = (*SLICE_CUTS, 0.625)
    numbers = [*SUPPORTED[:2], SUPPORTED[2], SUPPORTED[2], *SUPPORTED[3:]]
    return slices(level_tree(axis, cuts, supported=numbers))


case("a higher level below a level", ACCEPTED, level_below_level)


def strict_by_little() -> Hand:
    """c = 0 and V = |y − 1| − 2^-300: what γ = 2^-60 leaves is −2^-360, which shows V > 0."""
    gauge: list[Any] = [([[1.0], [-1.0]], [-1.0, 1.0]), ([[1.0, 1.0]], [-(2.0**-300)])]
    supports = [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 2.0**-60, 0.0, 0.0]]
    axis = [0, -4, 0, -1, 3, -4, -4]
    leaf = tree("positivity", *ENDS, axis, (0.9375, 1.0625, 2.0**-240), [[0, 0]] * 3)
    leaf |= {"supports": array(supports), "supported": array([[2], [1], [3]], dtype="<i4")}
    proofs = {"positivity": branch("positivity", leaf)}
    return line(lyapunov=gauge, positivity=0.0, proofs=proofs)


case("a bound below zero by its last bit", ACCEPTED, strict_by_little)


# ---- reading

case(
    "an empty weight of two rows",
    "unreadable: must not be empty",
    lambda: lie(
        plane(), put("classes", 0, "lyapunov", [[{"weight": array([], [2, 0]), "bias": None}]])
    ),
)
case(
    "classes in an object",
    "unreadable: list of 1 to",
    lambda: lie(plane(), put("classes", {"0": 1})),
)


def two_inputs(lower: list[float], upper: list[float]) -> Json:
    """relu(x_0 + x_1) < 3."""
    blocks = [block([0.0], (0, [[1.0, 1.0]]), relu=True)]
    case = asked((lower, upper), [[0.0, 0.0, 1.0]], [-3.0], leaves([-2], [[1]], relus=1))
    return property_proof(2, blocks, case)


case("property, a sum of inputs", ACCEPTED, lambda: two_inputs([0.0, 0.0], [1.0, 1.0]))
case("property, half a box of nothing", EMPTY, lambda: two_inputs([0.0, 1.0], [1.0, 0.0]))
case(
    "property, a block with a name more",
    "unreadable: must be an object",
    lambda: property_proof(
        1,
        [RAMP[0] | {"note": 1}],
        asked(BOTH_SIDES, [[0.0, 1.0]], [-2.0], leaves([-2], [[1]], relus=1)),
    ),
)
case(
    "property, only inputs",
    ACCEPTED,
    lambda: property_proof(
        1, RAMP, asked(BOTH_SIDES, [[1.0, 0.0]], [-2.0], leaves([-2], [[1]], relus=1))
    ),
)


# ---- sublevel sets of two axes


def halving(low: list[float], high: list[float], **changes: Any) -> Json:
    """F(y) = y/2 and V = |y_0| + |y_1| on [−1, 1]², below V = 1/2: c − V + 2(V/2 − c) = −c."""
    identity = [[1.0, 0.0], [0.0, 1.0]]
    inner = identity + [[-w for w in row] for row in identity]
    content = {
        "F": network(([[0.5, 0.0], [0.0, 0.5]], [0.0, 0.0])),
        "V": network((inner, [0.0] * 4), ([[1.0] * 4], [0.0])),
        "lower": array([-1.0, -1.0]),
        "upper": array([1.0, 1.0]),
        "equilibrium": array([0.0, 0.0]),
        "hole_radius": 0.0,
        "inner_radius": 0.0,
        "positivity": 0.0,
        "class": 0,
        "margin": 0.0,
        "rho": 1.0,
        "level": 0.5,
    }
    quarters = leaves([0, 1, -2, -2, 1, -2, -2], [[1, 2]] * 4, (0.0,) * 3, relus=8)
    leaf = leaves([-2], [[0, 1]], relus=8)
    ends = {"lower": array(low), "upper": array(high)}
    every = {"lower": array([-1.0, -1.0]), "upper": array([1.0, 1.0])}
    cases = [ends | {"tree": quarters}, *[every | {"tree": leaf} for _ in range(4)]]
    cases[1] |= changes
    return sublevel_proof(content, stays=cases)


case("sublevel, two axes", ACCEPTED, lambda: halving([-1.0, -1.0], [1.0, 1.0]))
case(
    "sublevel, two axes, a root too narrow",
    "rejected: leaves out a part",
    lambda: halving([-1.0, -0.5], [1.0, 0.5]),
)
case(
    "sublevel, a case with a name more",
    "unreadable: must be an object",
    lambda: halving([-1.0, -1.0], [1.0, 1.0], note=1),
)
case("sublevel, a floor at the level", ACCEPTED, falls(FLOOR, floor=0.5))
