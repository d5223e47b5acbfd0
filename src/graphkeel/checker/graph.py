"""A contraction factor for the loop with message passing, on every graph (proof format, 6).

The model is, layer by layer, Z = Σ_p Ŝᵖ·H·W_pᵀ + const with a ReLU between each two layers, where
Ŝ ≥ 0 and Ŝs ≤ s for some s > 0. A *word* picks one W_p from every layer. Along a word the loop of a
class is a plain ReLU network, whose factor κ(word) is that of a single node; with one gauge V for
all classes, and the largest κ(word) of them, the graph's loop contracts with κ = Σ κ(word) in the
norm max_v V(y_v)/s_v. The words are summed, not merged: neighbours may move along other axes than
the node itself.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from .conclusion import NOT_COVERED, decimal
from .contraction import Gauge, contraction_factor
from .exact import Matrix, Vector, Work
from .networks import Layer, Network, collapsed, composed, read_source
from .reading import Rejected, Unreadable, items, mapping, matrix, vector

MOST_WORDS = 4096
_GIVEN = {"layers", "gauge", "operator", "undirected"}
_DERIVED = {"contraction", "kappa", "sentence"}
_BEYOND = (
    "Message passing beyond what `graph` states: there the features of nodes without a controller"
    " and the weights of controllers at a node are given and do not change."
)


def not_covered(graph: Any) -> list[str]:
    """What the certificate does not speak of; message passing only where `graph` shows nothing."""
    shown = isinstance(graph, dict) and graph.get("contraction") == "proved"
    return [_BEYOND, *NOT_COVERED[1:]] if shown else NOT_COVERED


def check_graph(value: Any, entries: list[dict[str, Any]], work: Work) -> str:
    """Rejected unless the weights give what `graph` states; its sentence."""
    if isinstance(value, dict) and value.get("contraction") == "unknown":
        mapping(value, "graph", {"contraction", "reason"})
        return ""
    content = mapping(value, "graph", _GIVEN | _DERIVED, frozenset({"equilibrium"}))
    derived = derive_graph(content, entries, work)
    if derived["contraction"] != "proved":
        raise Rejected("graph: the weights do not give a factor below one")
    for name in sorted(_DERIVED):
        if (type(content[name]), content[name]) != (type(derived[name]), derived[name]):
            raise Rejected(f"graph: its {name} is not what follows from the weights")
    return str(derived["sentence"])


def derive_graph(
    content: dict[str, Any], entries: list[dict[str, Any]], work: Work
) -> dict[str, Any]:
    """Verdict, κ rounded up, and the sentence; used by the check, and by whoever writes one."""
    if type(content["operator"]) is not str or type(content["undirected"]) is not bool:
        raise Unreadable(
            "graph: the operator is named by a text, and is for undirected graphs or not"
        )
    layers = [_branches(layer) for layer in items(content["layers"], "graph.layers", most=64)]
    gauge = _gauge(content["gauge"])
    kappa = graph_factor(entries, layers, gauge, work)
    near = kappa.numerator / kappa.denominator
    up = near if Fraction(near) >= kappa else math.nextafter(near, math.inf)
    proved = kappa < 1 and up < 1.0
    classes = ", ".join(str(entry["class"]) for entry in entries)
    sentence = (
        f"On every graph, of any size, with any aggregation Ŝ ≥ 0 that does not expand some s > 0"
        f" (Ŝs ≤ s), the loop through these layers, with controllers of class {classes} mixed in"
        " any fixed way at any nodes and given features at the others, has exactly one equilibrium"
        f" and reaches it from anywhere: the norm max_v V(y_v)/s_v of the distance falls by the"
        f" factor {decimal(kappa)} or less in every step."
    )
    verdict = "proved" if proved else "unknown"
    return {"contraction": verdict, "kappa": up, "sentence": sentence if proved else ""}


def _branches(value: Any) -> list[Matrix]:
    """The weights of one layer; powers are distinct."""
    branches = items(value, "graph.layers", most=64)
    powers = [mapping(branch, "a branch", {"power", "weight"})["power"] for branch in branches]
    if not all(type(power) is int and 0 <= power < 1024 for power in powers):
        raise Unreadable("graph: a power is a small integer")
    if len(set(powers)) < len(powers):
        raise Unreadable("graph: a power stands twice in one layer")
    return [matrix(branch["weight"], "graph.layers") for branch in branches]


def _gauge(value: Any) -> Gauge:
    """V(z) = Σ r_i·|z_i|."""
    gains = vector(value, "graph.gauge")
    if not gains.ints or min(gains.ints) <= 0:
        raise Unreadable("graph: the gauge must be positive along every axis")
    return Gauge(gains, gains, Fraction(0), min(gains.fractions()))


def graph_factor(
    entries: list[dict[str, Any]], layers: list[list[Matrix]], gauge: Gauge, work: Work
) -> Fraction:
    """κ = Σ over words of the largest factor of any class."""
    first, *rest = layers
    words = list(product(*rest))
    if len(first) * len(words) > MOST_WORDS:
        raise Unreadable("graph: too many powers in too many layers")
    heads = [_first_networks(entry, first, work) for entry in entries]
    total = Fraction(0)
    for start in range(len(first)):
        for word in words:
            beyond = [Layer(weight, Vector([0] * weight.height)) for weight in word]
            total += max(_factor([*head[start], *beyond], gauge, work) for head in heads)
    return total


def _first_networks(entry: dict[str, Any], first: list[Matrix], work: Work) -> list[Network]:
    """The controller with each weight of the first layer behind it: no ReLU is in between."""
    controller = read_source(entry["controller"], "graph: a controller")
    where = "graph: the controller and the first layer"
    return [collapsed(composed(controller, [[(one, None)]]), where, work) for one in first]


def _factor(network: Network, gauge: Gauge, work: Work) -> Fraction:
    sizes = [(layer.weight.height, layer.weight.width) for layer in network]
    fits = all(a[0] == b[1] for a, b in pairwise(sizes))
    n = len(gauge.up)
    if not fits or sizes[0][1] != n or sizes[-1][0] != n:
        raise Unreadable("graph: layers, controllers and the gauge do not fit together")
    bits = -sum(layer.weight.exp for layer in network)
    work.spend(4 * n * sum(height * width for height, width in sizes), bits)
    return contraction_factor(network, gauge)
