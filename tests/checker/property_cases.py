"""Proofs of properties with their expected outcome (proof format, 7): small networks whose values
can be worked out on paper, and thresholds that touch."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from checker_cases import ACCEPTED, case
from hand_loops import Json, array

UP = math.inf
SHOW = "rejected: does not show"
TINY = 2.0**-40


def block(bias: list[float], *terms: tuple[int, list[list[float]]], relu: bool = False) -> Json:
    stored = [{"source": source, "weight": array(weight)} for source, weight in terms]
    return {"terms": stored, "bias": array(bias), "relu": relu}


def leaves(
    axis: list[int],
    multipliers: list[list[int]],
    cut: tuple[float, ...] = (),
    slopes: tuple[list[int], ...] = (),
    relus: int = 0,
) -> Json:
    shape = [len(slopes), len(slopes[0]) if slopes else relus]
    return {
        "axis": array(axis, dtype="<i2"),
        "cut": array(list(cut)),
        "slopes": array([q for line in slopes for q in line], shape, "|u1"),
        "multipliers": array(multipliers, None, "<i4"),
    }


def asked(
    ends: tuple[list[float], list[float]],
    rows: list[list[float]],
    constant: list[float],
    tree: Json,
) -> Json:
    lower, upper = map(array, ends)
    weight, bias = array(rows), array(constant)
    return {"lower": lower, "upper": upper, "weight": weight, "constant": bias, "tree": tree}


def proof(inputs: int, blocks: list[Json], *cases: Json) -> Json:
    network = {"inputs": inputs, "blocks": blocks}
    return {"format": "graphkeel-proof", "version": 4, "network": network, "cases": list(cases)}


# ---- networks over [−1, 1]

ENDS = ([-1.0], [1.0])
RAMP = [block([0.0], (0, [[1.0]]), relu=True)]  # relu(x)
ABSOLUTE = [block([0.0, 0.0], (0, [[1.0], [-1.0]]), relu=True), block([0.0], (1, [[1.0, 1.0]]))]
# relu(x) − 2·relu(relu(x) − 1/2): a tent whose top is 1/2; the first ReLU goes along
TENT = [
    block([0.0], (0, [[1.0]]), relu=True),
    block([-0.5], (1, [[1.0]]), relu=True),
    block([0.0], (1, [[1.0]]), (2, [[-2.0]])),
]
# the same through an affine block: relu(2·relu(x) − 1)
BENT_TENT = [
    block([0.0], (0, [[1.0]]), relu=True),
    block([-1.0], (1, [[2.0]])),
    block([0.0], (2, [[1.0]]), relu=True),
    block([0.0], (1, [[0.5]]), (1, [[0.5]]), (3, [[-1.0]])),
]
# and with a copy of the first ReLU between it and the second one
LATE_TENT = [
    TENT[0],
    block([0.0], (1, [[1.0]])),
    TENT[1],
    block([0.0], (2, [[1.0]]), (3, [[-2.0]])),
]
SKIP = [*ABSOLUTE[:1], block([0.0], (1, [[1.0, 1.0]]), (0, [[-1.0]]))]  # |x| − x


def ramp(top: float, *kinds: int, ends: Any = ENDS) -> Callable[[], Json]:
    """No x has relu(x) ≥ top."""
    tree = leaves([*(kinds or (-2,))], [[1]], relus=1)
    return lambda: proof(1, RAMP, asked(ends, [[0.0, 1.0]], [-top], tree))


case("property, a ramp", ACCEPTED, ramp(2.0))
case("property, a ramp that touches", SHOW, ramp(1.0))
case("property, a ramp just above", ACCEPTED, ramp(math.nextafter(1.0, UP)))
case("property, a ramp just below", SHOW, ramp(math.nextafter(1.0, 0.0)))
case(
    "property, multiplied by two",
    ACCEPTED,
    lambda: proof(1, RAMP, asked(ENDS, [[0.0, 1.0]], [-1.0 - TINY], leaves([-2], [[2]], relus=1))),
)
case("property, a wider box", SHOW, ramp(1.5, ends=([-1.0], [2.0])))
case("property, a box of one point", ACCEPTED, ramp(0.5 + TINY, ends=([0.5], [0.5])))
case("property, one point that touches", SHOW, ramp(0.5, ends=([0.5], [0.5])))
case("property, a box of nothing", "unreadable: the box is empty", ramp(9.0, ends=([1.0], [0.0])))
case("property, a hole leaf", "rejected: called inside the hole", ramp(2.0, -1))
case("property, an unknown leaf", "rejected: do not fit together", ramp(2.0, -4))


def absolute(tree: Json, gap: float = 0.125) -> Callable[[], Json]:
    """x ≥ 1/2 + gap and |x| ≤ 1/2 cannot both be."""
    rows, constant = [[1.0, 0.0], [0.0, -1.0]], [-0.5 - gap, 0.5]
    return lambda: proof(1, ABSOLUTE, asked(ENDS, rows, constant, tree))


CUT = ([0, -2, -2], [[1, 1], [1, 1]], (0.0,))
case("property, two halves", ACCEPTED, absolute(leaves(*CUT, relus=2)))
case("property, two halves, just", ACCEPTED, absolute(leaves(*CUT, relus=2), TINY))
case("property, two halves that touch", SHOW, absolute(leaves(*CUT, relus=2), 0.0))
case("property, no cut", SHOW, absolute(leaves([-2], [[1, 1]], relus=2)))
case("property, stored slopes", ACCEPTED, absolute(leaves([-3], [[1, 1]], (), ([255, 0],))))
case(
    "property, stored slopes, just",
    ACCEPTED,
    absolute(leaves([-3], [[1, 1]], (), ([255, 0],)), TINY),
)
case(
    "property, a slope one step lower",
    SHOW,
    absolute(leaves([-3], [[1, 1]], (), ([254, 0],)), TINY),
)
case("property, the other slope", SHOW, absolute(leaves([-3], [[1, 1]], (), ([255, 1],)), TINY))
case("property, slopes exchanged", SHOW, absolute(leaves([-3], [[1, 1]], (), ([0, 255],)), TINY))
case(
    "property, one multiplier more",
    SHOW,
    absolute(leaves(*CUT[:1], [[1, 1], [2, 1]], (0.0,), relus=2), TINY),
)
case(
    "property, one inequality forgotten",
    SHOW,
    absolute(leaves(*CUT[:1], [[1, 1], [1, 0]], (0.0,), relus=2)),
)
case(
    "property, the other one forgotten",
    SHOW,
    absolute(leaves(*CUT[:1], [[1, 1], [0, 1]], (0.0,), relus=2)),
)
MU = "rejected: integers ≥ 0, those of rows not all 0"
case("property, no multiplier", MU, absolute(leaves(*CUT[:1], [[1, 1], [0, 0]], (0.0,), relus=2)))
case(
    "property, a negative multiplier",
    MU,
    absolute(leaves(*CUT[:1], [[1, 1], [1, -1]], (0.0,), relus=2)),
)
FIT = "rejected: do not fit together"
case(
    "property, a leaf without multipliers",
    "rejected: needs its multipliers",
    absolute(leaves(*CUT[:1], [[1, 1]], (0.0,), relus=2)),
)
case("property, a cut too many", FIT, absolute(leaves([0, -2, -2], CUT[1], (0.0, 0.5), relus=2)))
case("property, slopes of another width", FIT, absolute(leaves(*CUT, relus=3)))
case("property, slopes left over", FIT, absolute(leaves(*CUT, slopes=([1, 1],))))
case(
    "property, multipliers of another width",
    "rejected: needs its multipliers",
    absolute(leaves(*CUT[:1], [[1], [1]], (0.0,), relus=2)),
)
case(
    "property, a leaf left out",
    "rejected: not complete",
    absolute(leaves([0, -2], [[1, 1]], (0.0,), relus=2)),
)
case(
    "property, a leaf too many",
    "rejected: ends before",
    absolute(leaves([-2, -2], [[1, 0], [1, 0]], relus=2), 2.0),
)
case(
    "property, a cut on the end",
    "rejected: a cut does not lie inside",
    absolute(leaves([0, -2, -2], CUT[1], (1.0,), relus=2)),
)
case(
    "property, a unit cut with a place",
    FIT,
    absolute(leaves([1, -2, -2], CUT[1], (0.5,), relus=2)),
)
# only the first inequality on one leaf, only the second on the other
case(
    "property, one inequality a leaf",
    ACCEPTED,
    absolute(leaves([0, -2, -2], [[1, 0], [0, 1]], (0.5 + 2 * TINY,), relus=2), 4 * TINY),
)
case(
    "property, the wrong one a leaf",
    SHOW,
    absolute(leaves([0, -2, -2], [[0, 1], [1, 0]], (0.5 + 2 * TINY,), relus=2), 4 * TINY),
)


def tent(
    blocks: list[Json], above: float, axis: list[int], cut: tuple[float, ...], relus: int = 2
) -> Any:
    tree = leaves(axis, [[1]] * sum(a < 0 for a in axis), cut, relus=relus)
    return lambda: proof(1, blocks, asked(ENDS, [[0.0, 1.0]], [-0.5 - above], tree))


THREE = [0, -2, 0, -2, -2]
for name, blocks in (("a tent", TENT), ("a bent tent", BENT_TENT), ("a late tent", LATE_TENT)):
    case(f"property, {name}", ACCEPTED, tent(blocks, TINY, THREE, (0.0, 0.5)))
    case(f"property, {name} that touches", SHOW, tent(blocks, 0.0, THREE, (0.0, 0.5)))
    case(f"property, {name} cut elsewhere", SHOW, tent(blocks, TINY, THREE, (0.0, 0.75)))
    case(f"property, {name}, two leaves", ACCEPTED, tent(blocks, TINY, [0, -2, -2], (0.0,)))
    case(f"property, {name}, two leaves that touch", SHOW, tent(blocks, 0.0, [0, -2, -2], (0.0,)))
    case(f"property, {name}, one leaf", SHOW, tent(blocks, TINY, [-2], ()))


def skipped(top: float) -> Any:
    """|x| − x + x/2 ≥ top: 3/2 at x = −1."""
    tree = leaves([0, -2, -2], [[1], [1]], (0.0,), relus=2)
    return lambda: proof(1, SKIP, asked(ENDS, [[0.5, 1.0]], [-top], tree))


case("property, a skip", ACCEPTED, skipped(1.5 + TINY))
case("property, a skip that touches", SHOW, skipped(1.5))


# relu(x) − 2·relu(relu(x)) = −relu(x): the second ReLU is a unit, though its input has one entry
# and no bias; its stored slope counts. r ≤ (x + 1)/2, so r·(1 − 2·127/255) ≤ 1/255.
TWICE = [TENT[0], block([0.0], (1, [[1.0]]), relu=True), TENT[2]]
STORED_SLOPES = leaves([-3], [[1]], (), ([255, 127],))
# relu(−relu(x)) = 0; by substitution its input is at most 1/2, and it at most (1 − x/2)/3 ≤ 1/2
OFF = [TENT[0], block([0.0], (1, [[-1.0]]), relu=True), block([0.0], (2, [[1.0]]))]


def behind(blocks: list[Json], top: float, tree: Json) -> Callable[[], Json]:
    """No x of [−1, 1] has a value ≥ top."""
    return lambda: proof(1, blocks, asked(ENDS, [[0.0, 1.0]], [-top], tree))


case("property, a ReLU behind a ReLU", ACCEPTED, behind(TWICE, 1 / 255 + TINY, STORED_SLOPES))
case("property, a ReLU behind one, just", SHOW, behind(TWICE, 1 / 255 - TINY, STORED_SLOPES))
ONE_LEAF = leaves([-2], [[1]], relus=2)
case("property, a ReLU behind one, default slopes", ACCEPTED, behind(TWICE, 0.5 + TINY, ONE_LEAF))
case("property, a ReLU behind one that touches", SHOW, behind(TWICE, 0.5, ONE_LEAF))
case("property, off behind a ReLU", ACCEPTED, behind(OFF, 0.5 + TINY, ONE_LEAF))
case("property, off behind a ReLU, by intervals", SHOW, behind(OFF, 0.5 - TINY, ONE_LEAF))


def turned(name: str, value: Any, *path: Any) -> Callable[[], Json]:
    """The proof of a tent with one place changed."""

    def make() -> Json:
        content = tent([dict(one) for one in TENT], TINY, THREE, (0.0, 0.5))()
        place: Any = content
        for step in path:
            place[step] = place[step].copy()
            place = place[step]
        place[name] = value
        return content

    return make


BLOCKS = ("network", "blocks")
case("property, another bias", SHOW, turned("bias", array([-0.5 - TINY * 4]), *BLOCKS, 1))
case("property, a ReLU left out", FIT, turned("relu", False, *BLOCKS, 1))
case("property, another constant", SHOW, turned("constant", array([TINY]), "cases", 0))
case("property, relu 1", "unreadable: relu and square must be", turned("relu", 1, *BLOCKS, 1))
FIT_BLOCKS = "unreadable: blocks do not fit"
for name, source in (("later", 3), ("own", 2), ("below zero", -1), ("true", True), ("1.0", 1.0)):
    case(
        f"property, a source {name}",
        FIT_BLOCKS,
        turned("source", source, *BLOCKS, 1, "terms", 0),
    )
case(
    "property, a weight of another shape",
    FIT_BLOCKS,
    turned("weight", array([[1.0, 1.0]]), *BLOCKS, 1, "terms", 0),
)
case(
    "property, a weight of another height",
    FIT_BLOCKS,
    turned("weight", array([[1.0], [1.0]]), *BLOCKS, 1, "terms", 0),
)
case("property, no terms", "unreadable: list of 1 to", turned("terms", [], *BLOCKS, 1))
case("property, inputs 1.0", "unreadable: inputs must", turned("inputs", 1.0, "network"))
case("property, two inputs", "unreadable", turned("inputs", 2, "network"))
case(
    "property, cases that are no list",
    "unreadable: cases a list",
    lambda: proof(1, RAMP) | {"cases": {}},
)
case("property, no cases", "unreadable: vacuous", lambda: proof(1, RAMP))
case("property, a remark", ACCEPTED, lambda: ramp(2.0)() | {"provenance": {"by": "hand"}})
case(
    "property, a remark that is none",
    "unreadable: must be an object",
    lambda: ramp(2.0)() | {"by": 1},
)
case(
    "property, inequalities of another width",
    "unreadable: inequalities do not fit",
    turned("weight", array([[1.0]]), "cases", 0),
)
case(
    "property, a constant too many",
    "unreadable: inequalities do not fit",
    turned("constant", array([0.0, 0.0]), "cases", 0),
)
case(
    "property, a false second case",
    SHOW,
    lambda: proof(1, RAMP, *(ramp(t)()["cases"][0] for t in (2.0, 0.5))),
)


# ---- what is claimed, in Fractions


def values(blocks: list[Json], x: list[Fraction], decoded: Callable[[Json], list[Any]]) -> Any:
    """The output of a network."""
    known = [x]
    for one in blocks:
        total = [Fraction(b) for b in decoded(one["bias"])]
        for term in one["terms"]:
            source, flat = known[term["source"]], decoded(term["weight"])
            for i in range(len(total)):
                line = flat[i * len(source) : (i + 1) * len(source)]
                total[i] += sum(
                    (Fraction(w) * v for w, v in zip(line, source, strict=True)), Fraction(0)
                )
        known.append([max(v, Fraction(0)) for v in total] if one["relu"] else total)
    return known[-1]


# ---- unit cuts: relu(relu(x) − 1/4) ≤ 3/4 on [−1, 1], cut at the first unit, then into eighths

LATE_RAMP = [*RAMP, block([-0.25], (1, [[1.0]]), relu=True)]
EIGHTHS = [0, 0, 0, -2, -2, 0, -2, -2, 0, 0, -2, -2, 0, -2, -2]
AT_EIGHTHS = (0.0, -0.5, -0.75, -0.25, 0.5, 0.25, 0.75)


def below_unit_cut(limit: float) -> Any:
    """Where the first unit is off the second one is, too, on the whole box: leaves share that."""
    tree = leaves([1, *EIGHTHS, *EIGHTHS], [[1, 0]] * 16, AT_EIGHTHS * 2, relus=2)
    return lambda: proof(1, LATE_RAMP, asked(ENDS, [[0.0, 1.0]], [-limit], tree))


case("property, below a unit cut", ACCEPTED, below_unit_cut(0.75 + TINY))
case("property, below a unit cut, touching", SHOW, below_unit_cut(0.75))


# ---- a leaf that the view of the whole box, where the first units are known, bounds by −3.69, and
# its own box by −4: bounds do not always fall with the box

WAVES = [
    block([0.0, 0.0, -0.5], (0, [[1.5], [-0.5], [-2.0]]), relu=True),
    block(
        [-1.5, -1.0, -1.5], (1, [[1.5, 2.0, 1.0], [-2.0, 1.5, -0.5], [0.5, -2.0, -2.0]]), relu=True
    ),
    block([-0.5, 2.0], (2, [[1.0, -1.0, -2.0], [1.0, 0.5, 1.0]]), relu=True),
    block([0.0], (3, [[-2.0, -2.0]])),
]
WAVE_CUTS = (-63 / 64, 35 / 64, 0.625, 0.6875, 0.75, 0.8125, 0.875)


def waves(limit: float) -> Any:
    tree = leaves([0, -2] * 7 + [-2], [[1]] * 8, WAVE_CUTS, relus=8)
    return lambda: proof(1, WAVES, asked(ENDS, [[0.0, 1.0]], [limit], tree))


case("property, a leaf that is bounded better alone", ACCEPTED, waves(3.875))
case("property, a leaf bounded alone that touches", SHOW, waves(4.0))
