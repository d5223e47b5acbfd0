"""A contraction factor for the loop with message passing, on every graph (proof format, 6).

The model is, layer by layer, Z = Σ_p Ŝᵖ·H·W_pᵀ + const with a ReLU between each two layers, where
Ŝ ≥ 0 and Ŝs ≤ s for some s > 0. A *word* picks one W_p from every layer. Along a word the loop of a
class is a plain ReLU network, whose factor κ(word) is that of a single node; with one gauge V for
all classes, and the largest κ(word) of them, the graph's loop contracts with κ = Σ κ(word) in the
norm max_v V(y_v)/s_v. The words are summed, not merged: neighbours may move along other axes than
the node itself.
"""

import math
from fractions import Fraction
from itertools import product
from typing import Any

from .conclusion import NOT_COVERED, decimal
from .contraction import Gauge, contraction_factor
from .exact import Matrix, Vector, Work, float_above
from .limits import MOST_WORDS
from .networks import Layer, collapsed, composed, read_source
from .reading import Unreadable, items, mapping, matrix, same, vector

_GIVEN = {"layers", "gauge", "operator", "undirected"}
_BEYOND = (
    "Message passing beyond what `graph` states: there the features of nodes without a controller"
    " and the weights of controllers at a node are given and do not change."
)


def not_covered(graph: Any) -> list[str]:
    """The list of what is not covered; message passing only where `graph` shows nothing."""
    shown = isinstance(graph, dict) and graph.get("contraction") == "proved"
    return [_BEYOND, *NOT_COVERED[1:]] if shown else NOT_COVERED


def check_graph(value: Any, entries: list[dict[str, Any]], work: Work) -> str:
    """Rejected unless the weights give what `graph` states; its sentence."""
    if isinstance(value, dict) and value.get("contraction") == "unknown":
        mapping(value, "graph", {"contraction", "reason"})
        return ""
    names = {"contraction", "kappa", "sentence"}
    content = mapping(value, "graph", _GIVEN | names, frozenset({"equilibrium"}))
    derived = derive_graph(content, entries, work)
    same({name: content[name] for name in names}, derived, "what is said of the graph")
    return str(derived["sentence"])


def derive_graph(content: Any, entries: list[dict[str, Any]], work: Work) -> dict[str, Any]:
    """Verdict, κ rounded up, and the sentence; used by the check, and by whoever writes one."""
    if type(content["operator"]) is not str or type(content["undirected"]) is not bool:
        raise Unreadable("graph: the operator is a text, and undirected is true or false")
    layers = [_branches(layer) for layer in items(content["layers"], "graph.layers", most=64)]
    gains = vector(content["gauge"], "graph.gauge")
    if not gains.ints or min(gains.ints) <= 0:
        raise Unreadable("graph: the gauge must be positive along every axis")
    gauge = Gauge(gains, gains, Fraction(0), min(gains.fractions()))  # V(z) = Σ r_i·|z_i|
    kappa = _graph_factor(entries, layers, gauge, work)
    if float_above(kappa) >= 1:
        return {"contraction": "unknown", "kappa": float_above(kappa), "sentence": ""}
    classes = ", ".join(str(entry["class"]) for entry in entries)
    sentence = (
        f"On every graph, of any size, with any aggregation Ŝ ≥ 0 that does not expand some s > 0"
        f" (Ŝs ≤ s), the loop through these layers, with controllers of class {classes} at any"
        " nodes, mixed in fixed shares ≥ 0 whose sum at a node is at most 1, and given features for"
        " the rest, has exactly one equilibrium and reaches it from anywhere in the limit: the norm"
        f" max_v V(y_v)/s_v of the distance falls by the factor {decimal(kappa)} or less in every"
        " step."
    )
    return {"contraction": "proved", "kappa": float_above(kappa), "sentence": sentence}


def _branches(value: Any) -> list[Matrix]:
    """The weights of one layer."""
    branches = items(value, "graph.layers", most=64)
    powers = [mapping(branch, "a branch", {"power", "weight"})["power"] for branch in branches]
    small = all(type(power) is int and 0 <= power < 1024 for power in powers)
    if not small or len(set(powers)) < len(powers):
        raise Unreadable("graph: powers are small integers, and none stands twice in a layer")
    return [matrix(branch["weight"], "graph.layers") for branch in branches]


def _graph_factor(
    entries: list[Any], layers: list[list[Matrix]], gauge: Gauge, work: Work
) -> Fraction:
    """κ = Σ over words of the largest factor of any class."""
    if math.prod(map(len, layers)) > MOST_WORDS:
        raise Unreadable("graph: too many powers in too many layers")
    controllers = [read_source(entry["controller"], "graph: a controller") for entry in entries]
    first, *rest = layers
    total = Fraction(0)
    for weight in first:
        # There is no ReLU between a controller's last layer and the first weight.
        sources = [composed(controller, [[(weight, None)]]) for controller in controllers]
        starts = [collapsed(source, "graph: a controller", work) for source in sources]
        for word in product(*rest):
            beyond = [Layer(weight, Vector([0] * weight.height)) for weight in word]
            total += max(_factor([*start, *beyond], gauge, work) for start in starts)
    return total


def _factor(network: list[Layer], gauge: Gauge, work: Work) -> Fraction:
    weights = [layer.weight for layer in network]
    products = sum(weight.height * weight.width for weight in weights)
    work.spend(4 * len(gauge.up) * products, sum(weight.bits for weight in weights))
    return contraction_factor(network, gauge)
