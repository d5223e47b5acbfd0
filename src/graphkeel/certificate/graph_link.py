"""What a certificate says of message passing, tied to a model and to a graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import equilibrium_difference, read_states
from graphkeel.certificate.graph_check import Branches, GraphStates
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from torch import nn

    from graphkeel.models.aggregation import Aggregation


def graph_difference(
    content: Mapping[str, Any],
    model: nn.Module,
    data: Any | None,
    states: Path | Mapping[str, Any] | None,
) -> str | None:
    """How model, graph or states differ from what is said of message passing; None if not at all.

    Args:
        content: an accepted certificate.
        model: the model, recognised anew.
        data: a graph with `x` and `edge_index`, or None.
        states: those that the certificate counts, as a file or as tensors, or None.
    """
    graph = content.get("graph") or {}
    if graph.get("contraction") != "proved":
        return None
    from graphkeel.models.aggregation import recognise

    width = int(graph["layers"][0][0]["weight"]["shape"][1])
    found = recognise(model, width)
    difference = _layers_difference(graph, found)
    if difference is not None or data is None:
        return difference
    weighed = _weights_of(model, data)
    if weighed is not None:
        return (
            f"the model may weigh messages by the graph's {weighed}, which the loop does not know"
        )
    edges = data.edge_index.cpu().numpy()
    if graph["undirected"] and not is_undirected(edges):
        return "the model's message passing was recognised on undirected graphs only"
    if "equilibrium" not in graph:
        return None
    if states is None or (isinstance(states, Path) and not states.exists()):
        return "the certificate counts nodes of the graph, but their states are missing"
    try:
        stored = read_states(states, data.x.cpu().numpy(), edges)
        difference = _label_difference(stored, data)
        return difference or equilibrium_difference(content, model_layers(found), stored)
    except CertificateError as error:
        return str(error)


def _weights_of(model: nn.Module, data: Any) -> str | None:
    """The name of what the graph has and the model's forward takes to weigh messages by."""
    taken = inspect.signature(model.forward).parameters
    names = [name for name in ("edge_weight", "edge_attr") if name in taken]
    return next((name for name in names if getattr(data, name, None) is not None), None)


def _label_difference(stored: GraphStates, data: Any) -> str | None:
    """Whether labels that the certificate counts are others than those of the graph, where it has
    any; negative ones are unknown."""
    y = getattr(data, "y", None)
    size = len(stored.x)
    if y is None or y.numel() != size:
        return None
    if len(stored.nodes) and not 0 <= stored.nodes.min() <= stored.nodes.max() < size:
        return "the certificate counts labels of nodes that the graph does not have"
    own = y.detach().cpu().numpy().reshape(size)[stored.nodes]
    wrong = int(((own >= 0) & (own != stored.labels)).sum())
    return f"{wrong} of {len(own)} labels are not those of the graph" if wrong else None


def model_layers(found: Aggregation) -> list[Branches]:
    """The layers of a recognised model as arrays: power, weight and bias of each branch.

    Args:
        found: a recognised model.
    """
    return [
        [(branch.power, branch.weight.numpy(), branch.bias.numpy()) for branch in layer]
        for layer in found.layers
    ]


def is_undirected(edges: np.ndarray) -> bool:
    """Whether every edge goes both ways, as often one way as the other.

    Args:
        edges: shape (2, E).
    """
    there = edges[:, np.lexsort(edges)]
    back = edges[::-1]
    return bool(np.array_equal(there, back[:, np.lexsort(back)]))


def _layers_difference(graph: Mapping[str, Any], found: Aggregation) -> str | None:
    if found.reason:
        return f"the model's message passing is not recognised: {found.reason}"
    if (graph["operator"], graph["undirected"]) != (found.operator, found.undirected):
        return f"the model aggregates otherwise: {found.operator!r}, not {graph['operator']!a}"
    stored = [
        {branch["power"]: decode_array(branch["weight"]) for branch in layer}
        for layer in graph["layers"]
    ]
    own = [
        {power: weight for power, weight, _ in layer if weight.any()}
        for layer in model_layers(found)
    ]
    if len(stored) != len(own):
        return f"the model has {len(own)} layers with message passing, not {len(stored)}"
    for k, (there, here) in enumerate(zip(stored, own, strict=True)):
        used = {power: weight for power, weight in there.items() if weight.any()}
        same = used.keys() == here.keys() and all(
            np.array_equal(used[power], here[power]) for power in here
        )
        if not same:
            return f"the model's weights in layer {k} are not those of the certificate's graph part"
    return None
