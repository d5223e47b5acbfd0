"""Certificates that speak of message passing, with their expected outcome (proof format, 6), and
κ once more in plain Fractions."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from checker_cases import FOLLOWS, case, square
from hand_loops import Hand, Json, array, certificate, identity, source

from graphkeel.checker.conclusion import decimal
from graphkeel.checker.exact import Work
from graphkeel.checker.graph import derive_graph, not_covered

Rows = list[list[float]]
Layers = list[list[tuple[int, Rows]]]
ONE: Rows = identity(2)


def scaled(rows: Rows, factor: float) -> Rows:
    return [[factor * w for w in row] for row in rows]


def graph_entry(layers: Layers, gauge: list[float]) -> Json:
    """The given part; nothing derived yet."""
    stored = [[{"power": p, "weight": array(w)} for p, w in layer] for layer in layers]
    return {"layers": stored, "gauge": array(gauge), "operator": "mean", "undirected": False}


def passing(
    layers: Layers, gauge: list[float] | None = None, loops: tuple[Hand, ...] = (), **lies: Any
) -> Json:
    """Some loops with a graph's part; κ and the sentence follow, but for the lies."""
    content = certificate(*(loops or (square(0), square(1))))
    entry = graph_entry(layers, [1.0, 1.0] if gauge is None else gauge)
    entry |= derive_graph(entry, content["classes"], Work(10**12))
    if entry["contraction"] != "proved":  # say so in spite of it, as a forger would
        said = passing(HALVES, None, loops)["graph"]["sentence"]
        factor = f"factor {decimal(Fraction(entry['kappa']))} or"
        sentence = re.sub("factor [0-9.e+-]+ or", factor, said)
        entry |= {"contraction": "proved", "sentence": sentence}
    content["graph"] = entry | lies
    content["not_covered"] = not_covered(content["graph"])
    return content


def given(name: str, value: Any) -> Json:
    """The sound certificate with another entry under a name."""
    content = passing(HALVES)
    content["graph"][name] = value
    return content


# ---- κ once more: words, moves up and down, the weighted one-norm


def plain_kappa(loops: list[Hand], layers: Layers, gauge: list[float]) -> Fraction:
    """Section 6 of the proof format, word by word."""
    words = product(*[[weight for _, weight in layer] for layer in layers])
    total = Fraction(0)
    for word in words:
        total += max(word_factor(loop, list(word), gauge) for loop in loops)
    return total


def word_factor(loop: Hand, word: list[Rows], gauge: list[float]) -> Fraction:
    *hidden, (last, _) = loop.forward
    weights = [exact(w) for w, _ in hidden] + [times(exact(word[0]), exact(last))]
    weights += [exact(w) for w in word[1:]]
    n = len(gauge)
    found = Fraction(0)
    for axis in range(n):
        up = [Fraction(i == axis) for i in range(n)]
        down = [Fraction(0)] * n
        for weight in weights[:-1]:
            up, down = moved(weight, up, down), moved(weight, down, up)
        for rises, drops in ((up, down), (down, up)):
            total = Fraction(0)
            for j in range(len(up)):
                size = sum(
                    (Fraction(g) * abs(row[j]) for g, row in zip(gauge, weights[-1], strict=True)),
                    Fraction(0),
                )
                total += size * max(rises[j], drops[j])
            found = max(found, total / Fraction(gauge[axis]))
    return found


def exact(rows: Rows) -> list[list[Fraction]]:
    return [[Fraction(w) for w in row] for row in rows]


def times(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*right, strict=True))
    return [
        [sum((a * b for a, b in zip(row, col, strict=True)), Fraction(0)) for col in columns]
        for row in left
    ]


def moved(weight: list[list[Fraction]], up: list[Fraction], down: list[Fraction]) -> list[Fraction]:
    """How far units go up."""
    return [
        sum((w * (a if w > 0 else -b) for w, a, b in zip(row, up, down, strict=True)), Fraction(0))
        for row in weight
    ]


# ---- cases: the controllers of `square` multiply by a quarter

HALVES: Layers = [[(0, scaled(ONE, 0.5)), (1, scaled(ONE, 0.5))]]
BELOW_TWO = math.nextafter(2.0, 0.0)
case("graph", "accepted", lambda: passing(HALVES))
case("graph, κ just below one", "accepted", lambda: passing([[(0, scaled(ONE, 4 - 2.0**-40))]]))
case("graph, κ = 1", FOLLOWS, lambda: passing([[(0, scaled(ONE, 4.0))]]))
case(
    "graph, κ = 1 in two words",
    FOLLOWS,
    lambda: passing([[(0, scaled(ONE, 2.0)), (3, scaled(ONE, 2.0))]]),
)
case(
    "graph, two words just below one",
    "accepted",
    lambda: passing([[(0, scaled(ONE, 2.0)), (3, scaled(ONE, 2 - 2.0**-40))]]),
)
case(
    "graph, κ within half an ulp of one",
    FOLLOWS,
    lambda: passing([[(0, scaled(ONE, 2.0)), (3, scaled(ONE, BELOW_TWO))]]),
)
case("graph, κ above one", FOLLOWS, lambda: passing([[(0, scaled(ONE, 5.0))]]))
SIGNS: Rows = [[1.0, -1.0], [0.5, 0.0]]
TWO_LAYERS: Layers = [[(0, SIGNS), (1, scaled(SIGNS, 0.5))], [(0, scaled(ONE, 0.75)), (2, SIGNS)]]
case("graph, two layers", "accepted", lambda: passing(scaled_layers(TWO_LAYERS, 0.5)))
case(
    "graph, an uneven gauge",
    "accepted",
    lambda: passing([[(0, [[2.0, 0.0], [1.0, 2.0]])]], [2.0, 1.0]),
)
case(
    "graph, the same in an even gauge",
    "accepted",
    lambda: passing([[(0, [[2.0, 0.0], [1.0, 2.0]])]]),
)
# 3/4 along the first axis, and 4·1/4 more in a gauge that weighs the second one four times
case(
    "graph, an uneven gauge that forbids it",
    FOLLOWS,
    lambda: passing([[(0, [[3.0, 0.0], [1.0, 3.0]])]], [1.0, 4.0]),
)


def scaled_layers(layers: Layers, factor: float) -> Layers:
    return [[(p, scaled(w, factor)) for p, w in layer] for layer in layers]


def faster(label: int, factor: float) -> Hand:
    """`square` with another factor and nothing proved."""
    centre = [float(label == 0), float(label == 1)]
    forward: list[Any] = [(scaled(ONE, factor), [(1 - factor) * y for y in centre])]
    return replace(square(label), forward=forward, proofs={})


def bent(label: int) -> Hand:
    """A controller with a hidden layer, κ = 1/2 along the first axis."""
    centre = [float(label == 0), float(label == 1)]
    forward: list[Any] = [
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [-centre[0], centre[0], 8.0]),
        ([[0.25, -0.25, 0.0], [0.0, 0.0, 0.25]], [centre[0], 0.75 * centre[1] - 2.0]),
    ]
    return replace(square(label), forward=forward, proofs={})


FASTER = (square(0), faster(1, 0.75))
case(
    "graph, the slower class decides",
    FOLLOWS,
    lambda: passing([[(0, scaled(ONE, 1.5))]], None, FASTER),
)
case(
    "graph, slower, but below one",
    "accepted",
    lambda: passing([[(0, scaled(ONE, 1.25))]], None, FASTER),
)
case(
    "graph, the slower class first",
    FOLLOWS,
    lambda: passing([[(0, scaled(ONE, 1.5))]], None, FASTER[::-1]),
)
BENT_LOOPS = (bent(0), square(1))
case("graph, a bent controller", "accepted", lambda: passing(HALVES, None, BENT_LOOPS))
case(
    "graph, a bent one, κ = 1",
    FOLLOWS,
    lambda: passing([[(0, scaled(ONE, 2.0))]], None, BENT_LOOPS),
)
for name, lie in (
    ("κ lowered", {"kappa": math.nextafter(0.25, 0.0)}),
    ("κ raised", {"kappa": math.nextafter(0.25, 1.0)}),
    ("κ an integer", {"kappa": 0}),
    ("κ of nothing", {"kappa": None}),
    ("another sentence", {"sentence": "It contracts."}),
    ("no sentence", {"sentence": ""}),
    ("called refuted", {"contraction": "refuted"}),
    ("called true", {"contraction": True}),
):
    case(f"graph, {name}", FOLLOWS, lambda lie=lie: passing(HALVES, **lie))
case(
    "graph, a word left out",
    FOLLOWS,
    lambda: given("layers", graph_entry([HALVES[0][:1]], [1.0, 1.0])["layers"]),
)
case(
    "graph, another gauge",
    "rejected",
    lambda: (
        passing(scaled_layers(TWO_LAYERS, 0.5))
        | {"graph": passing(scaled_layers(TWO_LAYERS, 0.5))["graph"] | {"gauge": array([1.0, 3.0])}}
    ),
)
POSITIVE = "unreadable: positive along every axis"
case("graph, a gauge of zero", POSITIVE, lambda: given("gauge", array([1.0, 0.0])))
case("graph, a negative gauge", POSITIVE, lambda: given("gauge", array([1.0, -1.0])))
case("graph, no gauge", POSITIVE, lambda: given("gauge", array([])))
case("graph, a gauge too short", "unreadable: malformed", lambda: given("gauge", array([1.0])))
case("graph, a gauge too long", "unreadable: malformed", lambda: given("gauge", array([1.0] * 3)))
POWERS = "unreadable: powers are small integers"
for name, powers in (
    ("twice", (0, 0)),
    ("below zero", (0, -1)),
    ("true", (0, True)),
    ("1.0", (0, 1.0)),
    ("too high", (0, 1024)),
):
    case(
        f"graph, a power {name}",
        POWERS,
        lambda powers=powers: given(
            "layers", [[{"power": p, "weight": array(ONE)} for p in powers]]
        ),
    )
WIDE: Rows = [[0.1, 0.1], [0.1, 0.1], [0.1, 0.1]]
for name, layers in (
    ("too wide at the end", [[(0, WIDE)]]),
    ("too narrow at the end", [[(0, [[0.5, 0.5]])]]),
    ("that do not fit", [[(0, WIDE)], [(0, ONE)]]),
    ("that do not fit the controller", [[(0, [[0.5] * 3] * 2)]]),
):
    case(
        f"graph, layers {name}",
        "unreadable: malformed",
        lambda layers=layers: given("layers", graph_entry(layers, [1.0, 1.0])["layers"]),
    )
case("graph, no layer", "unreadable: list of 1 to 64", lambda: given("layers", []))
case("graph, no branch", "unreadable: list of 1 to 64", lambda: given("layers", [[]]))
MANY = "unreadable: too many powers"
BOTH = [{"power": p, "weight": array(scaled(ONE, 0.1))} for p in range(2)]
case("graph, 8,192 words", MANY, lambda: given("layers", [BOTH] * 13))
case("graph, words without number", MANY, lambda: given("layers", [BOTH] * 64))
case("graph, an operator that is no text", "unreadable: a text", lambda: given("operator", 7))
case("graph, undirected 1", "unreadable: true or false", lambda: given("undirected", 1))
case("graph, null", "unreadable: must be an object", lambda: unknown() | {"graph": None})
case("graph, a name more", "unreadable: must be an object", lambda: given("extra", 1))
case("graph, what a graph's own check reads", "accepted", lambda: given("equilibrium", {"x": 1}))


def unknown(**more: Any) -> Json:
    content = certificate(square(0), square(1))
    content["graph"] = {"contraction": "unknown", "reason": "attention"} | more
    return content


case("graph unknown", "accepted", unknown)
case("graph unknown, with a factor", "unreadable: must be an object", lambda: unknown(kappa=0.5))
case(
    "graph unknown, said to be covered",
    FOLLOWS,
    lambda: unknown() | {"not_covered": passing(HALVES)["not_covered"]},
)
case(
    "graph proved, the whole list not covered",
    FOLLOWS,
    lambda: passing(HALVES) | {"not_covered": unknown()["not_covered"]},
)


def head_of_features(layers: Layers) -> Json:
    """The controllers map to three features, and the first weights read them."""
    content = passing(HALVES)
    for entry in content["classes"]:
        *rest, last = entry["controller"]
        lift = source(([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0] * 3))[0]
        entry["controller"] = [*rest, [*last, *lift]]
        entry["anchor"] = array([*entry_anchor(entry), sum(entry_anchor(entry))])
    content["head"] = source(([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.0, 0.0]))
    entry = graph_entry(layers, [1.0, 1.0])
    entry |= derive_graph(entry, content["classes"], Work(10**12))
    content["graph"] = entry
    content["not_covered"] = not_covered(entry)
    return content


def entry_anchor(entry: Json) -> list[float]:
    return [float(entry["class"] == 0), float(entry["class"] == 1)]


case(
    "graph, features between controller and model",
    "accepted",
    lambda: copy.deepcopy(head_of_features([[(0, [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])]])),
)
