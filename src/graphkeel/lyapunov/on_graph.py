"""Claims of a certificate about one graph: its equilibrium, and the features that ship."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphkeel.certificate.agreement import Differs, answers_difference, given_array, model_layers
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.equilibrium import with_equilibrium, without_equilibrium
from graphkeel.certificate.graph_check import GraphStates
from graphkeel.certificate.layers import is_undirected
from graphkeel.certificate.steering import (
    ShippedFeatures,
    compare_linear,
    linear_contraction,
    with_steering,
    without_features,
)
from graphkeel.core.errors import CertificateError
from graphkeel.lyapunov.graph_loop import run_loop
from graphkeel.lyapunov.result import CertifyResult
from graphkeel.models.aggregation import Aggregation, recognise
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import Head

_log = logging.getLogger(__name__)


def passing_of(
    frozen: FrozenModel, head: Head, x: Tensor, edge_index: Tensor, model_kwargs: dict[str, Any]
) -> Aggregation:
    """The model with its message passing, which answers like its layers on this very graph, or the
    reason why nothing is said of that."""
    if model_kwargs:
        given = ", ".join(sorted(model_kwargs))
        return Aggregation(reason=f"the model takes further arguments: {given}")
    if frozen.calling.has_adjacency:
        return Aggregation(reason="the model is given an adjacency matrix, which may weigh edges")
    if not isinstance(frozen.model, nn.Module):
        return Aggregation(reason="the model is a callable, not a module whose layers can be seen")
    found = recognise(frozen.model, head.n_in)
    if found.layers and len(found.layers[-1][0].bias) != head.n_out:
        return Aggregation(reason="the model's last layer has another width than its classes")
    if not found.layers or _is_directed(found, edge_index.cpu().numpy()):
        return found  # nothing is claimed of a directed graph then
    difference = answers_difference(found, frozen, x, edge_index)
    return found if difference is None else Aggregation(reason=difference)


def _is_directed(found: Aggregation, edges: NDArray[np.int64]) -> bool:
    return found.undirected and not is_undirected(edges)


def enclosed(
    result: CertifyResult, x: Tensor, edge_index: Tensor, labelled: tuple[Tensor, Tensor]
) -> CertifyResult:
    """The result with a claim about one graph's nodes, where the loop on the graph contracts.

    The labelled nodes, given with their classes, int64, shape (L,) each, are controlled, each by
    the controller of its class."""
    certificate = result.certificate
    if certificate is None or certificate["graph"]["contraction"] != "proved":
        return result
    edges = edge_index.cpu().numpy()
    if _is_directed(result.passing, edges):
        _log.warning(
            "the graph is directed; message passing was recognised on undirected ones only"
        )
        return result
    started = time.monotonic()
    controls = {outcome.label: outcome.control for outcome in result.outcomes}
    nodes, labels = (part.long().cpu() for part in labelled)
    known = torch.isin(labels, torch.tensor(list(controls)))
    nodes, labels = nodes[known], labels[known]
    gauge = torch.from_numpy(decode_array(certificate["graph"]["gauge"]))
    kappa = certificate["graph"]["kappa"]
    given = (x.cpu(), edge_index.cpu())
    run = run_loop(result.passing, *given, controls, nodes, labels, kappa=kappa, gauge=gauge)
    states = {"states": run.states, "nodes": nodes, "labels": labels}
    graph = GraphStates(x.cpu().numpy(), edges, *(part.numpy() for part in states.values()))
    steps = {"residuals": list(run.residuals), "certain": list(run.certain)}  # of a figure
    provenance = {**certificate["provenance"], "graph_steps": steps}
    try:
        stated = with_equilibrium(
            {**certificate, "provenance": provenance}, model_layers(result.passing), graph
        )
    except CertificateError as error:  # numbers beyond what floats can bound: nothing is claimed
        _log.warning("the equilibrium on this graph is not enclosed: %s", error)
        return result
    return replace(
        result,
        certificate=stated,
        states=states,
        seconds=result.seconds + time.monotonic() - started,
    )


def steered(
    result: CertifyResult,
    frozen: FrozenModel,
    x: Tensor,
    edge_index: Tensor,
    features: Tensor,
    wanted: Tensor,
    *,
    fall: Sequence[float] = (),
    passes: int = 0,
    linear: dict[str, Any] | None = None,
) -> CertifyResult:
    """The result with a claim about the features that ship (N, d) in the given ones' place, and
    the decided classes `wanted` (N,), where the model was recognised."""
    found = result.passing
    edges = edge_index.cpu().numpy()
    if result.certificate is None or not found.layers or _is_directed(found, edges):
        return result
    difference = answers_difference(found, frozen, features, edge_index, "the shipped")
    if difference is not None:
        _log.warning("nothing is certified of the features that ship: %s", difference)
        return result
    kept = torch.from_numpy(given_array(features)).clone()
    parts = {"features": kept, "wanted": wanted.long().cpu().clone()}
    try:
        shipped = ShippedFeatures(given_array(x), edges, kept.numpy(), parts["wanted"].numpy())
        certificate = with_steering(
            result.certificate,
            model_layers(found),
            found.operator,
            shipped,
            fall=fall,
            passes=passes,
            contraction=_linear(result, edges, linear),
        )
    except CertificateError as error:  # numbers beyond what floats can bound: nothing is claimed
        _log.warning("nothing is certified of the features that ship: %s", error)
        return result
    return replace(result, certificate=certificate, steering=parts)


def _linear(
    result: CertifyResult, edges: NDArray[np.int64], linear: dict[str, Any] | None
) -> dict[str, Any] | None:
    """L, step and factor of a model that is linear on an undirected graph."""
    if linear is None:
        return None
    weight = result.head.layers[0][0].detach().double().cpu().numpy()
    try:
        compare_linear(weight, linear["hops"], result.passing, edges)
    except Differs:
        return None
    return linear_contraction(weight, **linear)


def released(certificate: dict[str, Any]) -> dict[str, Any]:
    """The certificate without what `enclosed` and `steered` said of one graph."""
    return without_features(without_equilibrium(certificate))
