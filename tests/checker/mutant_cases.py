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
    SATISFIED,
    SPENT,
    case,
    kinked,
    next_to,
    split_at,
    square,
)
from hand_loops import (
    SLICE_CUTS,
    SLICES,
    SUPPORTED,
    Hand,
    Json,
    array,
    branch,
    certificate,
    faces,
    level_tree,
    line,
    plane,
    slices,
    tree,
)
from property_cases import ENDS as BOTH_SIDES
from property_cases import RAMP, SHOW, TINY, asked, block, leaves
from property_cases import proof as property_proof

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


def steep(shift: float) -> Hand:
    """V = relu(z) + 4·relu(−z): the way back from a residual counts four times. ρ + back = 1 where
    shift = 1/128, while twice the end, 8·shift, is half of the hole's radius."""
    options: dict[str, Any] = {"rho": 0.75, "delta": 0.0625, "proofs": split_at(0.5)}
    return kinked(0.5, shift, lyapunov=STEEP, **options)


case("a residual whose way back is too long", ACCEPTED, lambda: steep(2.0**-7))
case("a residual whose way back is short", ACCEPTED, lambda: steep(2.0**-7 - 2.0**-20))
case("a residual to the steep side", ACCEPTED, lambda: steep(-(2.0**-9)))


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
