"""The certificate's part about the features that ship, tied to a model and to a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import at_most
from graphkeel.certificate.graph_link import (
    Link,
    check_present,
    edges_difference,
    given_array,
    is_undirected,
    model_layers,
    own_answers,
    recognised_on,
)
from graphkeel.certificate.steering import (
    features_difference,
    features_sentence,
    read_shipped,
)
from graphkeel.checker.steering import SYMMETRIC
from graphkeel.core.errors import CertificateError

if TYPE_CHECKING:
    from torch import Tensor

    from graphkeel.models.aggregation import Aggregation
    from graphkeel.models.frozen import FrozenModel


def steering_link(
    content: Mapping[str, Any],
    found: Aggregation,
    frozen: FrozenModel,
    data: Any | None,
    scores: Tensor | None,
    stored: Path | Mapping[str, Any] | None,
) -> Link:
    """The part about steering, tied to model, graph and stored features.

    Args:
        scores: what the model answers on that graph, shape (N, n); needed with a graph.
    """
    steering = content["steering"]
    if found.reason:
        return Link(f"the model's message passing is not recognised: {found.reason}")
    edges = None if data is None else data.edge_index.cpu().numpy()
    if steering["contraction"] is not None:
        weight = decode_array(content["head"][0][0]["weight"])
        difference = linear_difference(weight, steering["contraction"]["hops"], found, edges)
        if difference is not None:
            return Link(difference)
    if data is None or scores is None:
        return Link()
    try:
        return _on_this_graph(steering, found, frozen, data, scores, stored)
    except CertificateError as error:
        return Link(str(error))


def linear_difference(
    weight: np.ndarray, hops: int, found: Aggregation, edges: np.ndarray | None
) -> str | None:
    """How a model, or its graph, differs from Ŝᴷ·X·Wᵀ + b with the symmetric Ŝ of an undirected
    graph; None if it is of that form.

    Args:
        weight: W, shape (n, d).
        edges: shape (2, E), or None.
    """
    if found.operator not in SYMMETRIC:
        return f"steering contracts with a symmetric aggregation, not with {found.operator!r}"
    if found.output != "logits":
        return f"steering contracts in logits, and the model gives {found.output}"
    layers = [[part for part in layer if part[1].any()] for layer in model_layers(found)]
    used = [(power, own) for layer in layers for power, own, _ in layer]
    if len(found.layers) != 1 or len(used) != 1:
        return "steering contracts for models that are linear with a single power of Ŝ"
    if used[0][0] != hops or not np.array_equal(used[0][1], weight):
        return f"the model's hops or weights are not those of steering: {used[0][0]}, not {hops}"
    if edges is not None and not is_undirected(edges):
        return "the graph is directed, and steering is shown to contract on undirected ones only"
    return None


def _on_this_graph(
    steering: Mapping[str, Any],
    found: Aggregation,
    frozen: FrozenModel,
    data: Any,
    scores: Tensor,
    stored: Path | Mapping[str, Any] | None,
) -> Link:
    """The model's own answers to the given features, then to those that ship."""
    from torch import tensor

    difference = edges_difference(found.undirected, frozen, data)
    if difference is not None:
        return Link(difference)
    pair = recognised_on(found, frozen, data.edge_index, len(data.x))
    given = own_answers(pair, data.x, scores)
    facts = steering["features"]
    if given.difference is not None or facts is None:
        return Link(given.difference)
    what = "the certificate speaks of features that ship, but these are missing"
    if stored is None:
        return Link(what)
    check_present(stored, what)
    shipped = read_shipped(stored, given_array(data.x), data.edge_index.cpu().numpy())
    difference = features_difference(facts, shipped, pair.layers, found.operator)
    if difference is not None:
        return Link(difference)
    own = pair.run(tensor(shipped.features), "the shipped")
    if own.difference is not None or own.classes is None:
        return Link(own.difference)
    certain = shipped.as_decided(pair.layers, found.operator)
    kept = int((certain & (own.classes == shipped.wanted)).sum())
    agreed = (
        f"The model itself, run with them, answers like its layers up to the rounding of"
        f" {own.precision}, within {at_most(own.gap)}, and gives {kept} of these"
        f" {int(certain.sum())} nodes the decided class."
    )
    return Link(None, (features_sentence(facts), agreed))
