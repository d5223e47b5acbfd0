"""The equilibrium of the loop on one graph, enclosed node by node; numpy and rigorous rounding.

Stored states Ŷ are put through the loop once, in float64, and every operation carries a bound on
what its rounding may have lost. With ε ≥ max_v V(loop(Ŷ)_v − Ŷ_v)/s_v and the factor κ < 1, the
equilibrium y* lies within V(y*_v − Ŷ_v) ≤ s_v·ε/(1 − κ) of them. Where a node's lead exceeds what
that allows, its class at the equilibrium is certain. Nothing here is shared with the finder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.encoding import decode_array
from graphkeel.core.errors import CertificateError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT = 2.0**-53
SLACK = 1.0 + 2.0**-20  # covers the rounding of the bounds themselves, by orders of magnitude
TINY = 1e-290  # what underflow may lose
ROWS = 1 << 16  # of features in work at once
LISTED = 1000  # uncertain nodes that are named


@dataclass(frozen=True, eq=False)
class GraphStates:
    """A graph, its controlled nodes, and states near the equilibrium.

    Attributes:
        x: given features, shape (N, d).
        edges: from the first row's nodes to the second row's, shape (2, E).
        states: Ŷ, shape (N, n).
        nodes: controlled nodes, shape (L,).
        labels: the class whose controller each of them has, shape (L,).
    """

    x: NDArray[Any]
    edges: Ints
    states: Floats
    nodes: Ints
    labels: Ints


Branches = Sequence[tuple[int, Floats, Floats]]  # power, weight (out, in), bias (out,)


class Bounded(NamedTuple):
    """Numbers, and how far each is from the exact one at most."""

    value: Floats
    error: Floats


def residual_bound(
    certificate: Mapping[str, Any], layers: Sequence[Branches], graph: GraphStates
) -> float:
    """An upper bound of max_v V(loop(Ŷ)_v − Ŷ_v)/s_v, in exact arithmetic over the given numbers.

    Args:
        certificate: with controllers, operator and gauge.
        layers: the model's, with biases.
        graph: with the states.
    """
    _check_shapes(certificate, graph)
    operator = Operator.of(certificate["graph"]["operator"], graph.edges, len(graph.x))
    after = _loop(certificate, layers, graph, operator)
    gauge = decode_array(certificate["graph"]["gauge"])
    apart = np.abs(after.value - graph.states) * (1 + 4 * UNIT) + after.error
    largest = float(((apart @ gauge) / operator.s_low).max()) * SLACK + TINY
    if not np.isfinite(largest):
        raise CertificateError("the loop on the graph leaves the range of floats", got=largest)
    return largest


def certain_nodes(
    certificate: Mapping[str, Any], graph: GraphStates, residual: float
) -> dict[str, Any]:
    """What a residual says of the nodes' classes; the same on every machine.

    Args:
        certificate: with operator, gauge and κ.
        graph: with the states.
        residual: ε.
    """
    _check_shapes(certificate, graph)
    operator = Operator.of(certificate["graph"]["operator"], graph.edges, len(graph.x))
    gauge = decode_array(certificate["graph"]["gauge"])
    room = np.nextafter(1.0 - float(certificate["graph"]["kappa"]), 0.0)
    radius = operator.s_high * (residual / room) * SLACK
    best = graph.states.argmax(axis=1)
    lead = np.take_along_axis(graph.states, best[:, None], axis=1) - graph.states
    narrow = np.minimum(gauge[best][:, None], gauge[None, :])
    kept = lead * (1 - 4 * UNIT) > radius[:, None] / narrow * SLACK
    np.put_along_axis(kept, best[:, None], True, axis=1)
    certain = kept.all(axis=1)
    own = certain[graph.nodes] & (best[graph.nodes] == graph.labels)
    return {
        "nodes": len(graph.x),
        "certain": int(certain.sum()),
        "labelled": len(graph.nodes),
        "labelled_certain": int(own.sum()),
        "residual": residual,
        "radius": float(radius.max() / gauge.min() * SLACK),
        "uncertain": np.flatnonzero(~certain)[:LISTED].tolist(),
    }


def _check_shapes(certificate: Mapping[str, Any], graph: GraphStates) -> None:
    n = len(decode_array(certificate["graph"]["gauge"]))
    size = len(graph.x)
    labels = {entry["class"] for entry in certificate["classes"]}
    fits = (
        graph.states.shape == (size, n)
        and graph.nodes.shape == graph.labels.shape
        and len(np.unique(graph.nodes)) == len(graph.nodes)
        and (not len(graph.nodes) or 0 <= graph.nodes.min() <= graph.nodes.max() < size)
        and set(graph.labels.tolist()) <= labels
        and np.isfinite(graph.states).all()
    )
    if not fits:
        raise CertificateError("the stored states do not fit the graph and the certificate")


# ---- the aggregation


@dataclass(frozen=True, eq=False)
class Operator:
    """Ŝ as weighted edges, and s between two floats; Ŝs ≤ s in exact arithmetic.

    Attributes:
        sources, targets: of each edge, shape (E,).
        weights: of each edge, each within 4 units in the last place of the exact one.
        s_low, s_high: shape (N,).
        most: the largest number of edges into one node.
    """

    sources: Ints
    targets: Ints
    weights: Floats
    s_low: Floats
    s_high: Floats
    most: int

    @classmethod
    def of(cls, name: str, edges: Ints, nodes: int) -> Operator:
        """The named operator of a graph.

        Args:
            name: symmetric or mean, and what it does with loops.
            edges: shape (2, E).
            nodes: how many there are.
        """
        kind, _, loops = name.partition(", ")
        if kind not in ("symmetric", "mean") or loops not in ("", "loops added", "loops removed"):
            raise CertificateError("the certificate names an unknown aggregation", got=repr(name))
        sources, targets = _with(loops, edges, nodes)
        degree = np.bincount(targets, minlength=nodes).astype(np.float64)
        if kind == "mean":
            ones = np.ones(nodes)
            weights = 1.0 / degree[targets]
            return cls(sources, targets, weights, ones, ones, int(degree.max(initial=0)))
        both = degree[sources] * degree[targets]  # exact: degrees are below 2^26
        linked = both > 0
        weights = np.where(linked, 1.0 / np.sqrt(np.where(linked, both, 1.0)), 0.0)
        s = np.sqrt(np.maximum(degree, 1.0))
        low, high = s * (1 - 4 * UNIT), s * (1 + 4 * UNIT)
        return cls(sources, targets, weights, low, high, int(degree.max(initial=0)))

    def apply(self, given: Bounded) -> Bounded:
        """Ŝ·H, column by column.

        Args:
            given: H, shape (N, width).
        """
        nodes, width = given.value.shape
        loss = 4 * (self.most + 8) * UNIT
        value, error = np.empty((nodes, width)), np.empty((nodes, width))
        for j in range(width):
            column = np.ascontiguousarray(given.value[:, j])
            spread = given.error[:, j] + loss * np.abs(column)
            value[:, j] = self._summed(column)
            error[:, j] = self._summed(spread) * SLACK + TINY
        return Bounded(value, error)

    def _summed(self, column: Floats) -> Floats:
        messages = self.weights * column[self.sources]
        sums = np.bincount(self.targets, weights=messages, minlength=len(column))
        return sums.astype(np.float64, copy=False)


def _with(loops: str, edges: Ints, nodes: int) -> tuple[Ints, Ints]:
    sources, targets = edges
    if not loops:
        return sources, targets
    plain = sources != targets
    if loops == "loops removed":
        return sources[plain], targets[plain]
    every = np.arange(nodes)  # one loop at each node, whether it had one, several or none
    return np.concatenate([sources[plain], every]), np.concatenate([targets[plain], every])


# ---- the loop, once


def _loop(
    certificate: Mapping[str, Any],
    layers: Sequence[Branches],
    graph: GraphStates,
    operator: Operator,
) -> Bounded:
    given: Bounded | None = None
    for layer in layers:
        total: Bounded | None = None
        for power, weight, bias in layer:
            moved = (
                _first(certificate, graph, weight, bias)
                if given is None
                else _dense(_relu(given), weight, bias)
            )
            for _ in range(power):
                moved = operator.apply(moved)
            total = moved if total is None else _sum(total, moved)
        given = total
    if given is None:
        raise CertificateError("the model has no layers")
    return given


def _first(
    certificate: Mapping[str, Any], graph: GraphStates, weight: Floats, bias: Floats
) -> Bounded:
    """The first layer: given features but at the controlled nodes."""
    size = len(graph.x)
    value, error = np.empty((size, len(bias))), np.empty((size, len(bias)))
    for start in range(0, size, ROWS):
        rows = slice(start, min(start + ROWS, size))
        features = np.asarray(graph.x[rows], dtype=np.float64)
        part = _dense(Bounded(features, np.zeros_like(features)), weight, bias)
        value[rows], error[rows] = part
    for entry in certificate["classes"]:
        nodes = graph.nodes[graph.labels == entry["class"]]
        if len(nodes):
            feature = _controller(entry["controller"], graph.states[nodes])
            value[nodes], error[nodes] = _dense(feature, weight, bias)
    return Bounded(value, error)


def _controller(source: list[list[dict[str, Any]]], states: Floats) -> Bounded:
    """f at the states of some nodes, from the shipped factors."""
    given = Bounded(states, np.zeros_like(states))
    for i, layer in enumerate(source):
        given = given if i == 0 else _relu(given)
        for factor in layer:
            weight, bias = factor["weight"], factor["bias"]
            width = given.value.shape[1]
            if weight is None and bias is not None:
                shift = decode_array(bias)
                given = _sum(given, Bounded(np.broadcast_to(shift, given.value.shape), 0.0 * shift))
            elif weight is not None:
                matrix = decode_array(weight)
                if matrix.shape[1] != width:
                    raise CertificateError("a controller's factors do not fit together")
                shift = np.zeros(len(matrix)) if bias is None else decode_array(bias)
                given = _dense(given, matrix, shift)
    return given


def _relu(given: Bounded) -> Bounded:
    return Bounded(np.maximum(given.value, 0.0), given.error)


def _sum(one: Bounded, two: Bounded) -> Bounded:
    value = one.value + two.value
    error = (one.error + two.error + 4 * UNIT * np.abs(value)) * SLACK + TINY
    return Bounded(value, error)


def _dense(given: Bounded, weight: Floats, bias: Floats) -> Bounded:
    """H·Wᵀ + b; however the sums are ordered, each loses at most γ times the sum of its sizes."""
    sizes = np.abs(weight).T
    loss = 4 * (weight.shape[1] + 8) * UNIT
    value = given.value @ weight.T + bias
    spread = (given.error + loss * np.abs(given.value)) @ sizes + loss * np.abs(bias)
    return Bounded(value, spread * SLACK + TINY)
