"""Proofs about networks with squares with their expected outcome (proof format, 7): bounds that can
be worked out on paper, and thresholds that touch them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checker_cases import ACCEPTED, case
from hand_loops import Json, array
from property_cases import ENDS, SHOW, TINY, asked, block, leaves, proof


def squared(bias: list[float], *terms: tuple[int, list[list[float]]]) -> Json:
    return {**block(bias, *terms), "square": True}


def below(
    blocks: list[Json], top: float, tree: Json, ends: Any = ENDS, sign: float = 1.0, **more: Any
) -> Callable[[], Json]:
    """No point has sign·out ≥ top, out being the network's only value."""
    n = len(ends[0])
    rows = [[0.0] * n + [sign]]
    return lambda: proof(n, blocks, {**asked(ends, rows, [-top], tree), **more})


def plain(units: int) -> Json:
    return leaves([-2], [[1]], relus=units)


def placed(*places: int) -> Json:
    return leaves([-3], [[1]], (), (list(places),))


# ---- one square: its chord and its tangents

SQUARE = [squared([0.0], (0, [[1.0]]))]  # x²: at most 1
case("square, the chord", ACCEPTED, below(SQUARE, 1.0 + TINY, plain(1)))
case("square, the chord touches", SHOW, below(SQUARE, 1.0, plain(1)))
case("square, at least 0", ACCEPTED, below(SQUARE, TINY, plain(1), sign=-1.0))
case("square, at least 0, touches", SHOW, below(SQUARE, 0.0, plain(1), sign=-1.0))
SIDE = ([1.0], [3.0])
case("square, all above 0", ACCEPTED, below(SQUARE, 9.0 + TINY, plain(1), SIDE))
case("square, all above 0, touches", SHOW, below(SQUARE, 9.0, plain(1), SIDE))
BELOW_ZERO = ([-3.0], [-1.0])
case("square, all below 0", ACCEPTED, below(SQUARE, 9.0 + TINY, plain(1), BELOW_ZERO))
case("square, all below 0, touches", SHOW, below(SQUARE, 9.0, plain(1), BELOW_ZERO))
# the tangent at the middle, −2: x² ≥ −4x − 4 ≥ 0
case("square, middle tangent", ACCEPTED, below(SQUARE, TINY, plain(1), BELOW_ZERO, -1.0))
case("square, middle tangent touches", SHOW, below(SQUARE, 0.0, plain(1), BELOW_ZERO, -1.0))
# (3x + 1/4)² is at most 169/16
SCALED = [squared([0.25], (0, [[3.0]]))]
case("square, scaled", ACCEPTED, below(SCALED, 10.5625 + TINY, plain(1)))
case("square, scaled, touches", SHOW, below(SCALED, 10.5625, plain(1)))
# x² − x ≤ 0 on [0, 1]: only the chord's slope shows it
SLANTED = [*SQUARE, block([0.0], (0, [[-1.0]]), (1, [[1.0]]))]
case("square, a slanted chord", ACCEPTED, below(SLANTED, TINY, plain(1), ([0.0], [1.0])))
case("square, a slanted chord touches", SHOW, below(SLANTED, 0.0, plain(1), ([0.0], [1.0])))
# x² − 2x + 1 ≥ 0 on [1, 3]: only the tangent at 1 shows it
SHIFTED = [*SQUARE, block([1.0], (0, [[-2.0]]), (1, [[1.0]]))]


def shifted(tree: Json, top: float = TINY) -> Callable[[], Json]:
    return below(SHIFTED, top, tree, SIDE, -1.0)


case("square, a tangent at the lower end", ACCEPTED, shifted(placed(0)))
case("square, a tangent at the lower end touches", SHOW, shifted(placed(0), 0.0))
case("square, the next tangent", SHOW, shifted(placed(1)))
case("square, a tangent at the upper end", SHOW, shifted(placed(255)))
case("square, a tangent at the upper end touches", SHOW, shifted(placed(255), 4.0))
case("square, a tangent at the upper end, 4 below", ACCEPTED, shifted(placed(255), 4.0 + TINY))
case("square, the middle tangent, 1 below", ACCEPTED, shifted(plain(1), 1.0 + TINY))
case("square, the middle tangent, 1 below, touches", SHOW, shifted(plain(1), 1.0))

# ---- squares of ReLUs, ReLUs of squares, squares of squares

RAMP_SQUARED = [block([0.0], (0, [[1.0]]), relu=True), squared([0.0], (1, [[1.0]]))]
WIDE = ([-1.0], [2.0])
case("square, of a ReLU", ACCEPTED, below(RAMP_SQUARED, 4.0 + TINY, plain(2), WIDE))
case("square, of a ReLU, touches", SHOW, below(RAMP_SQUARED, 4.0, plain(2), WIDE))
# relu(x)² − 2·relu(x) + 1 ≥ 0 on [1, 3]: the tangent at the lower end, one stage later
LATER = [*RAMP_SQUARED, block([1.0], (1, [[-2.0]]), (2, [[1.0]]))]
TANGENT = placed(0, 0)
case("square, a tangent behind a ReLU", ACCEPTED, below(LATER, TINY, TANGENT, SIDE, -1.0))
case("square, a tangent behind a ReLU touches", SHOW, below(LATER, 0.0, TANGENT, SIDE, -1.0))
# relu(x² − 1/4) ≤ 3/4, its square ≤ 9/16; lines of every kind touch at x = 1 and −1
NESTED = [
    *SQUARE,
    block([-0.25], (1, [[1.0]]), relu=True),
    squared([0.0], (2, [[1.0]])),
]
case("square, of a ReLU of a square", ACCEPTED, below(NESTED, 0.5625 + TINY, plain(3)))
case("square, of a ReLU of a square, touches", SHOW, below(NESTED, 0.5625, plain(3)))
FOURTH = [*SQUARE, squared([0.0], (1, [[2.0]]))]  # 4x⁴
case("square, of a square", ACCEPTED, below(FOURTH, 4.0 + TINY, plain(2)))
case("square, of a square, touches", SHOW, below(FOURTH, 4.0, plain(2)))
CHAIN = [squared([0.0], (number, [[16.0]])) for number in range(9)]
LARGE = "unreadable: too large"
case("square, a chain that overflows all limits", LARGE, below(CHAIN, 1.0, plain(9)))

# ---- what is refused

BOTH = [{**SQUARE[0], "relu": True}]
NEITHER = "unreadable: relu and square must be"
case("square, and a ReLU", NEITHER, below(BOTH, 2.0, plain(1)))
case("square, not a truth", NEITHER, below([{**SQUARE[0], "square": 1}], 2.0, plain(1)))
UNIT_CUT = leaves([1, -2, -2], [[1], [1]], relus=1)
case("square, cut as a unit", "rejected: no such ReLU", below(SQUARE, 2.0, UNIT_CUT))

# ---- other squares: x² + y² − xy, written with (x + y)² and (x − y)², and as a sum of two squares

PLANE = ([-1.0, -1.0], [1.0, 1.0])
FORM = [
    squared([0.0] * 4, (0, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])),
    block([0.0], (1, [[1.0, 1.0, -0.25, 0.25]])),
]
FORMS = [[1.0, -0.5, 0.0], [0.0, 1.0, 0.0]]  # (x − y/2)² + 3/4·y²


def other(
    gap: float, forms: list[list[float]], sums: list[float], tree: Json | None = None
) -> Callable[[], Json]:
    """No point has −out ≥ gap, with other squares: `sums` over x, y, the squares, and 1."""
    more = {"squares": array(forms), "outputs": array([[*sums[:-1], sums[-1] - gap]])}
    return below(FORM, gap, tree or plain(len(forms)), PLANE, -1.0, **more)


RIGHT = [0.0, 0.0, -1.0, -0.75, 0.0]
case("other squares, the own ones", SHOW, below(FORM, 0.5, plain(4), PLANE, -1.0))
case("other squares, own ones, 1 off", ACCEPTED, below(FORM, 1.0 + TINY, plain(4), PLANE, -1.0))
case("other squares, own ones, 1 off, touch", SHOW, below(FORM, 1.0, plain(4), PLANE, -1.0))
case("other squares", ACCEPTED, other(TINY, FORMS, RIGHT))
case("other squares that touch", SHOW, other(0.0, FORMS, RIGHT))


def differing(name: str, error: float, forms: list[list[float]], sums: list[float]) -> None:
    """Squares that differ from the network by at most `error`, which is what they cost."""
    case(f"other squares, {name}", ACCEPTED, other(error + TINY, forms, sums))
    case(f"other squares, {name}, touch", SHOW, other(error, forms, sums))


differing("a weight of one less", 0.25, FORMS, [0.0, 0.0, -1.0, -1.0, 0.0])
differing("a linear term", 1.0, FORMS, [0.5, 0.0, -1.0, -0.75, 0.0])
differing("the other linear term", 0.5, FORMS, [0.0, -0.25, -1.0, -0.75, 0.0])
differing("a constant", 0.25, FORMS, [0.0, 0.0, -1.0, -0.75, 0.125])
differing("a smaller constant", 0.0, FORMS, [0.0, 0.0, -1.0, -0.75, -0.125])
differing("another form", 1.5, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.0, 0.0, -1.0, -0.5, 0.0])
# (x + 1/2)² − x − 1/4 = x²
SHIFT = [[1.0, -0.5, 0.5], [0.0, 1.0, 0.0]]
differing("a shift", 0.0, SHIFT, [1.0, -0.5, -1.0, -0.75, 0.25])

OUTSIDE = ([-1.0, 0.0], [2.0, 2.0])  # |y| ≤ 2


def off(error: float) -> Callable[[], Json]:
    """1/8·y² too little costs 1/2, the tangent of 7/8·y² at 1 another 7/8."""
    sums = [[0.0, 0.0, -1.0, -0.875, -error]]
    more = {"squares": array(FORMS), "outputs": array(sums)}
    return below(FORM, error, plain(2), OUTSIDE, -1.0, **more)


case("other squares, another box", ACCEPTED, off(1.375 + TINY))
case("other squares, another box, touch", SHOW, off(1.375))

# units that stay: r = relu(x), (x + r)² as (2x + 2r)²/4, and a ReLU that no leaf of ours needs
STAYING = [
    block([0.0, -0.5], (0, [[1.0], [1.0]]), relu=True),
    squared([0.0], (0, [[1.0]]), (1, [[1.0, 0.0]])),
    block([0.0], (2, [[1.0]]), (1, [[0.0, 1.0]])),
]


def staying(gap: float, form: list[float], sums: list[float]) -> Callable[[], Json]:
    more = {"squares": array([form]), "outputs": array([[*sums, -gap]])}
    return below(STAYING, gap, plain(3), ENDS, 1.0, **more)


case("other squares, units stay, own", ACCEPTED, below(STAYING, 4.5 + TINY, plain(3)))
case("other squares, units stay, own, touch", SHOW, below(STAYING, 4.5, plain(3)))
DOUBLE = [2.0, 2.0, 0.0, 0.0]
case("other squares, units stay", ACCEPTED, staying(4.5 + TINY, DOUBLE, [0.0, 0.0, 1.0, 0.25]))
case("other squares, units stay, touch", SHOW, staying(4.5, DOUBLE, [0.0, 0.0, 1.0, 0.25]))
# −1/2 of the second ReLU, which is at most 1/2 by its lines and 3/2 by its reach, is left out
case("other squares, a ReLU left out", SHOW, staying(5.25, DOUBLE, [0.0, 0.0, 0.0, 0.25]))
case("other squares, a ReLU out", ACCEPTED, staying(5.75, DOUBLE, [0.0, 0.0, 0.0, 0.25]))

FITS = "unreadable: squares of a case do not fit"
case("other squares, forms too narrow", FITS, other(1.0, [[1.0, -0.5]], RIGHT[:-1]))
case("other squares, sums too narrow", FITS, other(1.0, FORMS, RIGHT[1:]))
NONE = {"squares": array([[1.0, 0.0]]), "outputs": array([[0.0, 0.0, -2.0]])}
case(
    "other squares of none",
    FITS,
    below([block([0.0], (0, [[1.0]]), relu=True)], 2.0, plain(1), **NONE),
)
