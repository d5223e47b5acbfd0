"""The part of a certificate that is about one graph: written here, and compared here again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from graphkeel.certificate.encoding import sealed
from graphkeel.certificate.graph_check import (
    Branches,
    GraphStates,
    certain_nodes,
    residual_bound,
)
from graphkeel.core.errors import CertificateError

STATES = "equilibrium.safetensors"  # beside certificate.json
ROOM = 4.0  # times the residual measured here is stated: another machine sums in another order


def with_equilibrium(
    certificate: Mapping[str, Any], layers: list[Branches], graph: GraphStates
) -> dict[str, Any]:
    """The certificate with what holds of the nodes of one graph.

    Args:
        certificate: with a `graph` whose contraction is proved.
        layers: the model's, with biases.
        graph: with states near the equilibrium.
    """
    residual = ROOM * residual_bound(certificate, layers, graph)
    facts = certain_nodes(certificate, graph, residual)
    stated = {**facts, "states_sha256": states_sha256(graph)}
    return sealed({**certificate, "graph": {**certificate["graph"], "equilibrium": stated}})


def equilibrium_difference(
    certificate: Mapping[str, Any], layers: list[Branches], graph: GraphStates
) -> str | None:
    """How what is stated of the graph's nodes differs from what the states show; None if not.

    Args:
        certificate: with `graph.equilibrium`.
        layers: of the given model, with biases.
        graph: the given graph with the stored states.
    """
    stated = certificate["graph"]["equilibrium"]
    if not isinstance(stated, dict) or stated.get("states_sha256") != states_sha256(graph):
        return "the stored states of the graph are not those that the certificate names"
    residual = stated.get("residual")
    if type(residual) is not float or not 0 < residual < np.inf:
        return "the residual on the graph is no positive number"
    measured = residual_bound(certificate, layers, graph)
    if measured > residual:
        return f"the residual on the graph is up to {measured:.3g}, not {residual:.3g} as stated"
    facts = {**certain_nodes(certificate, graph, residual), "states_sha256": states_sha256(graph)}
    if stated != facts or any(type(stated[name]) is not type(facts[name]) for name in facts):
        wrong = ", ".join(sorted(key for key in facts if stated.get(key) != facts[key]))
        return f"what is stated of the graph's nodes does not follow from their states: {wrong}"
    return None


def states_sha256(graph: GraphStates) -> str:
    """SHA-256 of states, controlled nodes and their labels.

    Args:
        graph: with the states.
    """
    digest = hashlib.sha256()
    for values, kind in ((graph.states, "<f8"), (graph.nodes, "<i8"), (graph.labels, "<i8")):
        digest.update(f"{kind} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values, dtype=kind).tobytes())
    return digest.hexdigest()


def read_states(path: Path, x: NDArray[Any], edges: NDArray[np.int64]) -> GraphStates:
    """The stored states of a graph.

    Args:
        path: of the file.
        x: features of the graph, shape (N, d).
        edges: shape (2, E).
    """
    try:
        tensors = load_file(path)
        parts = (tensors["states"], tensors["nodes"], tensors["labels"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise CertificateError(f"{path.name} cannot be read", got=str(error)) from None
    kinds = [(part.dtype.name, part.ndim) for part in parts]
    if kinds != [("float64", 2), ("int64", 1), ("int64", 1)]:
        raise CertificateError(f"{path.name} holds other arrays than it should", got=kinds)
    return GraphStates(x, edges, *parts)
