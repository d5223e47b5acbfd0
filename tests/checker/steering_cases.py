"""Certificates that speak of steering, with their expected outcome (proof format, 9).

The head is the identity of two classes: W̄W̄ᵀ has the eigenvalues 1 and 0, so that with s = ℓ = 1 and
λ = 1 the smoothness is L = 3 exactly, and the step 1/2 contracts with the factor 1/2."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

from checker_cases import FOLLOWS, case, square
from graph_cases import HALVES, ONE, head_of_features, passing
from hand_loops import Hand, Json, certificate, identity, line, rederived, source, stated

from graphkeel.checker import Rejected, Unreadable
from graphkeel.checker.exact import Work
from graphkeel.checker.networks import read_source
from graphkeel.checker.steering import derive_steering

UP, DOWN = math.inf, -math.inf
LINEAR: Json = {
    "ridge": 1.0,
    "hops": 2,
    "length": 1.0,
    "unit": 1.0,
    "smoothness": 3.0,
    "step": 0.5,
    "factor": 0.5,
}
FACTS: Json = {
    "nodes": 5,
    "as_decided": 4,
    "changed": 3,
    "median_change": 0.25,
    "fall": [2.0, 1.5, 1.5, 0.0],
    "passes": 7,
    "sha256": "0123456789abcdef" * 4,
}


def with_part(content: Json, contraction: Any, features: Any, **lies: Any) -> Json:
    """A certificate with a part `steering`; its sentence follows, if it can, but for the lies."""
    given = {"contraction": copy.deepcopy(contraction), "features": copy.deepcopy(features)}
    honest = {"contraction": LINEAR, "features": FACTS}
    work = Work(10**12)
    try:
        head = read_source(content["head"], "head")
        sentence = derive_steering(given, head, content.get("graph"), work)
    except (Rejected, Unreadable, ArithmeticError, TypeError, LookupError, ValueError):
        head = read_source(source((ONE, [0.0, 0.0])), "head")
        sentence = derive_steering(honest, head, None, work)
    return content | {"steering": given | {"sentence": sentence} | lies}


def steered(**lies: Any) -> Json:
    return with_part(certificate(square(0), square(1)), LINEAR, FACTS, **lies)


def linear(**changes: Any) -> Json:
    return with_part(certificate(square(0), square(1)), LINEAR | changes, None)


def facts(**changes: Any) -> Json:
    return with_part(certificate(square(0), square(1)), None, FACTS | changes)


def unproved(head: list[list[Json]], *loops: Hand) -> Json:
    """Some loops with another head and nothing searched."""
    content = stated(*[replace(loop, proofs={}) for loop in loops])
    return rederived(content | {"head": head})


case("steering", "accepted", steered)
case("steering, contraction alone", "accepted", linear)
case("steering, features alone", "accepted", facts)
case("steering, null", "unreadable: must be an object", lambda: steered() | {"steering": None})
NOTHING = "unreadable: nothing is stated"
case(
    "steering, nothing",
    NOTHING,
    lambda: with_part(certificate(square(0)), None, None),
)
OBJECT = "unreadable: must be an object"
case("steering, a name more", OBJECT, lambda: steered(extra=1))
case("steering, contraction, a name more", OBJECT, lambda: linear(sigma=1.0))
case("steering, features, a name more", OBJECT, lambda: facts(margin=1.0))
for part, names in (("contraction", LINEAR), ("features", FACTS)):
    for left in names:

        def short(part: str = part, left: str = left) -> Json:
            content = steered()
            del content["steering"][part][left]
            return content

        case(f"steering, {part} without {left}", OBJECT, short)
for lie in ("It contracts.", "", None, 1):
    case(f"steering, another sentence: {lie!r}", FOLLOWS, lambda lie=lie: steered(sentence=lie))
case(
    "steering, the factor's sentence lowered",
    FOLLOWS,
    lambda: steered(sentence=steered()["steering"]["sentence"].replace("1 − 0.5", "1 − 0.51")),
)
case(
    "steering, the count's sentence raised",
    FOLLOWS,
    lambda: steered(sentence=steered()["steering"]["sentence"].replace("4 of 5", "5 of 5")),
)

# ---- the contraction: every inequality at its end, and one ulp beyond

SHORT = "rejected: the smoothness L is not shown"
SMALL = "rejected: the factor is smaller"
BELOW = "rejected: not below one"
for name, expected, changes in (
    ("L one ulp lower", SHORT, {"smoothness": math.nextafter(3.0, DOWN)}),
    ("L higher, the factor too small", SMALL, {"smoothness": math.nextafter(3.0, UP)}),
    ("L higher", "accepted", {"smoothness": 3.25, "factor": 0.625}),
    ("L below λ", SHORT, {"ridge": 1.5, "smoothness": 1.0, "factor": 0.5}),
    ("L far below λ", SHORT, {"ridge": 3.5, "smoothness": 1.5, "factor": 0.75}),
    ("λ one ulp higher", SHORT, {"ridge": math.nextafter(1.0, UP)}),
    ("λ lower", SMALL, {"ridge": 0.5}),
    ("λ lower, its factor", "accepted", {"ridge": 0.5, "factor": 0.75}),
    ("s one ulp longer", SHORT, {"length": math.nextafter(1.0, UP)}),
    ("s half", "accepted", {"length": 0.5, "smoothness": 1.5}),
    ("s half, L one ulp lower", SHORT, {"length": 0.5, "smoothness": math.nextafter(1.5, DOWN)}),
    ("ℓ one ulp shorter", SHORT, {"unit": math.nextafter(1.0, DOWN)}),
    ("ℓ twice", "accepted", {"unit": 2.0, "smoothness": 1.5}),
    ("ℓ twice, L one ulp lower", SHORT, {"unit": 2.0, "smoothness": math.nextafter(1.5, DOWN)}),
    ("the step one ulp longer", SMALL, {"step": math.nextafter(0.5, UP)}),
    ("the step one ulp shorter", SMALL, {"step": math.nextafter(0.5, DOWN)}),
    ("a short step", "accepted", {"step": 0.25, "factor": 0.75}),
    ("a long step", "accepted", {"step": 0.625, "factor": 0.875}),
    ("a long step, the factor too small", SMALL, {"step": 0.625, "factor": 0.8125}),
    ("the step 2/L", SMALL, {"smoothness": 4.0, "factor": math.nextafter(1.0, DOWN)}),
    ("the step beyond 2/L", SMALL, {"step": 1.0, "factor": math.nextafter(1.0, DOWN)}),
    ("the step 2/L, the factor one", BELOW, {"smoothness": 4.0, "factor": 1.0}),
    ("the factor one ulp lower", SMALL, {"factor": math.nextafter(0.5, DOWN)}),
    ("the factor higher", "accepted", {"factor": 0.75}),
    ("the factor one", BELOW, {"factor": 1.0}),
    ("the factor above one", BELOW, {"factor": 2.0}),
    ("the factor one as an integer", BELOW, {"factor": 1}),
    ("no hop", "accepted", {"hops": 0}),
    ("the most hops", "accepted", {"hops": 1023}),
):
    case(f"steering, {name}", expected, lambda changes=changes: linear(**changes))
POSITIVE = "rejected: has to be positive"
SIZE = "unreadable: number of ordinary size"
for name in ("ridge", "length", "unit", "smoothness", "step", "factor"):
    for value in (0, 0.0, -8.0, -LINEAR[name]):
        case(
            f"steering, {name} = {value!r}",
            POSITIVE,
            lambda name=name, value=value: linear(**{name: value}),
        )
    for value in (5e-324, 1e-200, 1e200, 10**400, 2**53 + 1, "1.0", True, None, [1.0]):
        case(
            f"steering, {name} = {str(value)[:9]}, no ordinary number ({type(value).__name__})",
            SIZE,
            lambda name=name, value=value: linear(**{name: value}),
        )
    for value in (math.nan, math.inf, -math.inf):
        case(
            f"steering, {name} = {value!r}",
            "unreadable: not one whole JSON",
            lambda name=name, value=value: linear(**{name: value}),
        )
for hops in (-1, 1024, 2.0, True, "2", None):
    case(
        f"steering, hops = {hops!r}",
        "unreadable: hops is a small integer",
        lambda hops=hops: linear(hops=hops),
    )
ONE_CLASS = "rejected: one class only"
case("steering, one class", ONE_CLASS, lambda: with_part(certificate(line()), LINEAR, None))
TWO_LAYERS = source((ONE, [0.0, 0.0]), (ONE, [0.0, 0.0]))
case(
    "steering, a head of two layers",
    "rejected: no single affine layer",
    lambda: with_part(unproved(TWO_LAYERS, square(0)), LINEAR, None),
)


# |W̄|² of other heads: diag(2, 2) has 4; a common row in all classes changes no difference
HEADS: dict[str, tuple[list[list[float]], float, bool]] = {
    "twice": ([[2.0, 0.0], [0.0, 2.0]], 9.0, True),
    "twice, L one ulp lower": ([[2.0, 0.0], [0.0, 2.0]], math.nextafter(9.0, DOWN), False),
    "with a common row": ([[4.0, 5.0], [3.0, 6.0]], 3.0, True),
    "with a common row, L one ulp lower": (
        [[4.0, 5.0], [3.0, 6.0]],
        math.nextafter(3, DOWN),
        False,
    ),
    "with one class moved": ([[1.0, 0.0], [0.0, 3.0]], 11.0, True),
    "with one class moved, L one ulp lower": (
        [[1.0, 0.0], [0.0, 3.0]],
        math.nextafter(11.0, DOWN),
        False,
    ),
    "of halves": ([[0.5, 0.0], [0.0, 0.5]], 1.5, True),
    "of halves, L one ulp lower": ([[0.5, 0.0], [0.0, 0.5]], math.nextafter(1.5, DOWN), False),
    "that tells no classes apart": ([[1.0, 3.0], [1.0, 3.0]], 1.0, True),
    "of the least numbers": ([[2.0**-400, 0.0], [0.0, 2.0**-400]], math.nextafter(1.0, UP), True),
    "of the least numbers, L = λ": ([[2.0**-400, 0.0], [0.0, 2.0**-400]], 1.0, False),
    "of the largest numbers": ([[2.0**400, 0.0], [0.0, 2.0**400]], 3.0, False),
}


def other_head(weight: list[list[float]], smoothness: float) -> Json:
    """With the step 2/(L + λ), or nearly so, and a factor that is large enough."""
    content = unproved(source((weight, [0.0, 0.0])), square(0))
    step = 1 / smoothness
    changes = {"smoothness": smoothness, "step": step, "factor": 1 - step / 2}
    return with_part(content, LINEAR | changes, None)


for name, (weight, smoothness, holds) in HEADS.items():
    case(
        f"steering, a head {name}",
        "accepted" if holds else SHORT,
        lambda weight=weight, smoothness=smoothness: other_head(weight, smoothness),
    )


def three_classes(smoothness: float) -> Json:
    """W = diag(1, 2, 4): the trace of the 16th power is a little more than that of |W̄|₂³²."""
    loop = replace(square(0), proofs={})
    lifted = replace(
        loop,
        forward=[(identity(3), [0.0] * 3)],
        lyapunov=[(identity(3), [0.0] * 3), ([[1.0] * 3], [0.0])],
        lower=[-1.0] * 3,
        upper=[2.0] * 3,
        equilibrium=[1.0, 0.0, 0.0],
    )
    weight = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]
    content = unproved(source((weight, [0.0] * 3)), lifted)
    step = 1 / smoothness
    changes = {"smoothness": smoothness, "step": step, "factor": 1 - step / 2}
    return with_part(content, LINEAR | changes, None)


# The least float L with ((L − 1)/3)¹⁶ ≥ tr((W̄W̄ᵀ)¹⁶), found by bisection in Fractions
LEAST = 35.74772708489568
case("steering, three classes", "accepted", lambda: three_classes(LEAST))
case(
    "steering, three classes, L one ulp lower",
    SHORT,
    lambda: three_classes(math.nextafter(LEAST, DOWN)),
)


# ---- beside a graph


def on_graph(operator: str) -> Json:
    content = passing(HALVES)
    content["graph"]["operator"] = operator
    return with_part(content, LINEAR, FACTS)


for operator in ("symmetric", "symmetric, loops added", "symmetric, loops removed"):
    case(f"steering, {operator}", "accepted", lambda operator=operator: on_graph(operator))
for operator in ("mean", "mean, loops added", "symmetric, of one direction", ""):
    case(
        f"steering, aggregation {operator!r}",
        "rejected: not the symmetric one",
        lambda operator=operator: on_graph(operator),
    )
case(
    "steering, features with a mean",
    "accepted",
    lambda: with_part(passing(HALVES), None, FACTS),
)
WIDE = [[(0, [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])]]


def of_features() -> Json:
    """A head of three features."""
    content = copy.deepcopy(head_of_features(WIDE))
    content["graph"]["operator"] = "symmetric"
    return content


case("steering, a head of features", "accepted", lambda: with_part(of_features(), LINEAR, None))
case(
    "steering, a head of features, L one ulp lower",
    SHORT,
    lambda: with_part(of_features(), LINEAR | {"smoothness": math.nextafter(3, DOWN)}, None),
)
case(
    "steering, the graph unknown",
    "accepted",
    lambda: with_part(
        certificate(square(0)) | {"graph": {"contraction": "unknown", "reason": "attention"}},
        LINEAR,
        None,
    ),
)

# ---- the features that ship

RISES = "rejected: V rises"
MORE = "rejected: more nodes are counted"
INTEGERS = "unreadable: counts are integers"
FALL = "unreadable: fall is a list"
for name, expected, changes in (
    ("no step recorded", "accepted", {"fall": []}),
    ("one value", "accepted", {"fall": [0.5]}),
    ("many digits", "accepted", {"fall": [2.23456789, 1.23456789]}),
    ("a rise of one ulp", RISES, {"fall": [2.0, 1.0, math.nextafter(1.0, UP), 0.0]}),
    ("a rise at the end", RISES, {"fall": [2.0, 1.0, 3.0]}),
    ("a rise at the start", RISES, {"fall": [1.0, 2.0]}),
    ("V below zero", RISES, {"fall": [1.0, -0.5]}),
    ("V below zero alone", RISES, {"fall": [-0.5]}),
    ("V a text", SIZE, {"fall": ["1.0"]}),
    ("V huge", SIZE, {"fall": [1e300]}),
    ("V denormal", SIZE, {"fall": [1.0, 5e-324]}),
    ("V not a number", "unreadable: not one whole JSON", {"fall": [1.0, math.nan]}),
    ("V infinite", "unreadable: not one whole JSON", {"fall": [math.inf, 1.0]}),
    ("fall an object", FALL, {"fall": {}}),
    ("fall a number", FALL, {"fall": 1.0}),
    ("the most steps", "accepted", {"fall": [0] * 10**4}),
    ("a step too many", FALL, {"fall": [0] * (10**4 + 1)}),
    ("all as decided", "accepted", {"as_decided": 5}),
    ("one more than there are", MORE, {"as_decided": 6}),
    ("all changed", "accepted", {"changed": 5}),
    ("one more changed", MORE, {"changed": 6}),
    ("none of none", MORE, {"nodes": 0, "as_decided": 0, "changed": 0}),
    ("one node", "accepted", {"nodes": 1, "as_decided": 1, "changed": 0}),
    ("none changed", "accepted", {"changed": 0, "median_change": 0.0}),
    ("none changed, an integer", "accepted", {"changed": 0, "median_change": 0}),
    ("a negative change", MORE, {"median_change": -0.25}),
    ("a change that is no number", SIZE, {"median_change": "0.25"}),
    ("a huge change", SIZE, {"median_change": 1e200}),
    ("no pass", "accepted", {"passes": 0}),
    ("most nodes", "accepted", {"nodes": 2**53 - 1}),
    ("too many nodes", INTEGERS, {"nodes": 2**53}),
    ("SHA-256 too short", INTEGERS, {"sha256": "ab" * 31}),
    ("SHA-256 too long", INTEGERS, {"sha256": "ab" * 33}),
    ("SHA-256 in capitals", INTEGERS, {"sha256": "AB" * 32}),
    ("SHA-256 a list", INTEGERS, {"sha256": ["a"] * 64}),
    ("no SHA-256", INTEGERS, {"sha256": None}),
):
    case(f"steering, features, {name}", expected, lambda changes=changes: facts(**changes))
for name in ("nodes", "as_decided", "changed", "passes"):
    for value in (-1, 2.0, True, "2", None):
        case(
            f"steering, features, {name} = {value!r}",
            INTEGERS,
            lambda name=name, value=value: facts(**{name: value}),
        )
