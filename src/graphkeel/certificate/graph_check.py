"""The equilibrium of the loop on one graph, enclosed node by node; numpy and rigorous rounding.

Stored states Ŷ are put through the loop once, in float64, and every operation carries a bound on
what its rounding may have lost. With ε ≥ max_v V(loop(Ŷ)_v − Ŷ_v)/s_v and the factor κ < 1, the
equilibrium y* lies within V(y*_v − Ŷ_v) ≤ s_v·ε/(1 − κ) of them. Where a node's margin exceeds
that distance, its class at the equilibrium is certain. The enclosure also bounds how far the
features at the equilibrium are from the written ones, the anchors h*. Nothing here is shared with
the finder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.bounds import (
    SLACK,
    TINY,
    UNIT,
    Bounded,
    Flags,
    Floats,
    Ints,
    clear_classes,
    dense,
    finite,
    plus,
    relu,
)
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.layers import (
    Branches,
    Operator,
    are_edges,
    are_floats,
    row_slices,
    run_layers,
    through_rows,
)
from graphkeel.core.errors import CertificateError

_LISTED = 1000  # uncertain nodes that are named: part of the format


@dataclass(frozen=True, eq=False)
class GraphStates:
    """A graph, its controlled nodes, and states near the equilibrium.

    Attributes:
        x: given features, shape (N, d).
        edges: from the first row's nodes to the second row's, shape (2, E).
        states: Ŷ, shape (N, n).
        nodes: labelled nodes, shape (L,): each is controlled, the others keep their features.
        labels: the class of each, whose controller acts there, shape (L,).
    """

    x: NDArray[Any]
    edges: Ints
    states: Floats
    nodes: Ints
    labels: Ints


class Enclosure:
    """The equilibrium of one graph, as its stored states show it, by a certificate with
    controllers, anchors, operator, gauge and κ."""

    def __init__(
        self, certificate: Mapping[str, Any], layers: Sequence[Branches], graph: GraphStates
    ) -> None:
        _check_shapes(certificate, layers, graph)
        self.certificate = certificate
        self.layers = layers
        self.graph = graph
        self.gauge = finite(decode_array(certificate["graph"]["gauge"]))
        self.operator = Operator.of(certificate["graph"]["operator"], graph.edges, len(graph.x))

    @np.errstate(all="ignore")  # what overflows is refused by `finite`
    def residual_bound(self) -> float:
        """An upper bound of max_v V(loop(Ŷ)_v − Ŷ_v)/s_v, in exact arithmetic over the given
        numbers."""
        after = self._answer(anchors=False)
        apart = np.abs(after.value - self.graph.states) * (1 + 4 * UNIT) + after.error
        largest = ((apart @ self.gauge) / self.operator.s_low).max()
        return float(finite(largest * SLACK + TINY))

    @np.errstate(all="ignore")
    def certain_nodes(self, residual: float) -> dict[str, Any]:
        """The nodes' classes as a residual shows them; equal on every machine."""
        graph = self.graph
        best, certain = self.classes(residual)
        own = certain[graph.nodes] & (best[graph.nodes] == graph.labels)
        radius = self._radius(residual).max() / self.gauge.min() * SLACK
        return {
            "nodes": len(graph.x),
            "certain": int(certain.sum()),
            "labelled": len(graph.nodes),
            "labelled_certain": int(own.sum()),
            "residual": residual,
            "radius": float(finite(radius)),
            "uncertain": np.flatnonzero(~certain)[:_LISTED].tolist(),
        }

    @np.errstate(all="ignore")
    def classes(self, residual: float) -> tuple[Ints, Flags]:
        """The class of each stored state, and whether the equilibrium certainly shares it."""
        states = self.graph.states
        best = states.argmax(axis=1)
        narrow = np.minimum(self.gauge[best][:, None], self.gauge[None, :])
        return clear_classes(states, self._radius(residual)[:, None] / narrow)

    @np.errstate(all="ignore")
    def written(self, residual: float, slack: float = 1.0) -> dict[str, Any]:
        """How the equilibrium compares with the anchors' features at labelled nodes: upper bounds
        of the distance there, the largest number in an anchor, and how many nodes, at least, have
        a class that is certain and that the anchors lead to."""
        apart = self._distances(residual, slack)
        written, clear = self._answer(anchors=True).clear_classes(slack)
        best, certain = self.classes(residual)
        anchors = [decode_array(entry["anchor"]) for entry in self.certificate["classes"]]
        return {
            "norm": "largest feature",
            "max": float(finite(apart.max(initial=0.0))),
            "median": float(finite(np.median(apart))) if len(apart) else 0.0,
            "size": float(finite(max(np.abs(anchor).max() for anchor in anchors))),
            "kept": int((clear & certain & (best == written)).sum()),
        }

    @np.errstate(all="ignore")
    def features(self, *, anchors: bool, dtype: type[np.floating[Any]]) -> NDArray[Any]:
        """The features at the stored states, or the written ones, shape (N, d); rounded."""
        found = self.graph.x.astype(dtype)
        for rows in row_slices(len(self.graph.nodes), found.shape[1]):
            found[self.graph.nodes[rows]] = self._controlled(rows, anchors=anchors).value
        return found

    def _answer(self, *, anchors: bool) -> Bounded:
        """The model's answer to the features at the stored states, or to the written ones."""
        x, nodes = self.graph.x, self.graph.nodes

        def through(weight: Floats, bias: Floats) -> Bounded:
            given = through_rows(lambda rows: Bounded.exact(x[rows]), len(x), weight, bias)
            controlled = partial(self._controlled, anchors=anchors)
            own = through_rows(controlled, len(nodes), weight, bias)
            value, error = given.value.copy(), given.error.copy()
            value[nodes], error[nodes] = own.value, own.error
            return Bounded(value, error)

        return run_layers(self.layers, self.operator, through)

    def _controlled(self, rows: slice, *, anchors: bool) -> Bounded:
        """Features of some of the labelled nodes: h*_c of their class c, or f_c of their states."""
        nodes, labels = self.graph.nodes[rows], self.graph.labels[rows]
        value = np.empty((len(nodes), self.graph.x.shape[1]))
        error = np.zeros_like(value)
        for entry in self.certificate["classes"]:
            own = labels == entry["class"]
            if anchors:
                value[own] = decode_array(entry["anchor"])
                continue
            made = _controller(entry["controller"], self.graph.states[nodes[own]])
            value[own], error[own] = made.value, made.error
        return Bounded(value, error)

    def _radius(self, residual: float) -> Floats:
        """How far V lets the equilibrium be from each node's state, shape (N,)."""
        gap = np.nextafter(1.0 - float(self.certificate["graph"]["kappa"]), 0.0)
        return finite(self.operator.s_high * (residual / gap) * SLACK + TINY)

    def _distances(self, residual: float, slack: float) -> Floats:
        """Upper bounds of ‖x_v − x*_v‖∞ between the anchors and the equilibrium's features, shape
        (L,)."""
        radius = self._radius(residual)[self.graph.nodes]
        sources = [entry["controller"] for entry in self.certificate["classes"]]
        steepest = max(_steepness(source, self.gauge) for source in sources)
        found = np.empty(len(radius))
        for rows in row_slices(len(radius), self.graph.x.shape[1]):
            here, there = (self._controlled(rows, anchors=one) for one in (False, True))
            gap = np.abs(here.value - there.value) * (1 + 4 * UNIT)
            gap += slack * (here.error + there.error)
            found[rows] = gap.max(axis=1) + steepest * radius[rows]
        return finite(found * SLACK + TINY)


def _steepness(source: list[list[dict[str, Any]]], gauge: Floats) -> float:
    """L with ‖f(y) − f(y')‖∞ ≤ L·V(y − y'): the product of the factors' sizes, column by column."""
    product = np.diag(1.0 / gauge) * (1 + 4 * UNIT) + TINY
    for layer in source:
        for factor in layer:
            if factor["weight"] is not None:
                # TINY at every factor: what underflows may meet a large factor behind.
                product = (np.abs(decode_array(factor["weight"])) @ product) * SLACK + TINY
    return float(finite(product.max(initial=0.0) * SLACK))


def _check_shapes(
    certificate: Mapping[str, Any], layers: Sequence[Branches], graph: GraphStates
) -> None:
    gauge = decode_array(certificate["graph"]["gauge"])
    n, size = len(gauge), len(graph.x)
    labels = {entry["class"] for entry in certificate["classes"]}
    fits = (
        size > 0
        and bool((gauge > 0).all())
        and 0 <= certificate["graph"]["kappa"] < 1
        and len(labels) == len(certificate["classes"])  # or a class would be controlled twice
        and labels <= set(range(n))
        and are_floats(graph.x)
        and all(weight.shape[1] == graph.x.shape[1] for _, weight, _ in layers[0])
        and are_edges(graph.edges, size)
        and graph.states.shape == (size, n)
        and graph.nodes.shape == graph.labels.shape
        and len(np.unique(graph.nodes)) == len(graph.nodes)
        and (not len(graph.nodes) or 0 <= graph.nodes.min() <= graph.nodes.max() < size)
        and set(graph.labels.tolist()) <= labels
        and bool(np.isfinite(graph.states).all())
    )
    if not fits:
        raise CertificateError("the stored states do not fit the graph and the certificate")


def _controller(source: list[list[dict[str, Any]]], states: Floats) -> Bounded:
    """f at the states of some nodes, from the shipped factors."""
    given = Bounded.exact(states)
    for i, layer in enumerate(source):
        given = given if i == 0 else relu(given)
        for factor in layer:
            weight, bias = factor["weight"], factor["bias"]
            if weight is None and bias is not None:
                shift = np.broadcast_to(decode_array(bias), given.value.shape)
                given = plus(given, Bounded.exact(shift))
            elif weight is not None:
                matrix = decode_array(weight)
                if matrix.shape[1] != given.value.shape[1]:
                    raise CertificateError("a controller's factors do not fit together")
                shift = np.zeros(len(matrix)) if bias is None else decode_array(bias)
                given = dense(given, matrix, shift)
    return given
