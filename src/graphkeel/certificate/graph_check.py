"""The equilibrium of the loop on one graph, enclosed node by node; numpy and rigorous rounding.

Stored states Ŷ are put through the loop once, in float64, and every operation carries a bound on
what its rounding may have lost. With ε ≥ max_v V(loop(Ŷ)_v − Ŷ_v)/s_v and the factor κ < 1, the
equilibrium y* lies within V(y*_v − Ŷ_v) ≤ s_v·ε/(1 − κ) of them. Where a node's lead exceeds what
that allows, its class at the equilibrium is certain. The same enclosure bounds how far the features
at the equilibrium are from the written ones, Σ_c p_v(c)·h*_c. Nothing here is shared with the
finder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
ENTRIES = 1 << 24  # of features in work at once
LISTED = 1000  # uncertain nodes that are named


@dataclass(frozen=True, eq=False)
class GraphStates:
    """A graph, its controlled nodes, and states near the equilibrium.

    Attributes:
        x: given features, shape (N, d).
        edges: from the first row's nodes to the second row's, shape (2, E).
        states: Ŷ, shape (N, n).
        nodes: labelled nodes, shape (L,).
        labels: the class of each, shape (L,).
        mix: p, the share of each class's controller at every node, shape (N, n), each row with
            Σ_c p_v(c) ≤ 1; then every node is controlled. None: the labelled nodes are, each by the
            controller of its class, and the others keep their features.
    """

    x: NDArray[Any]
    edges: Ints
    states: Floats
    nodes: Ints
    labels: Ints
    mix: Floats | None = None

    def shares(self) -> tuple[Ints, Floats]:
        """The controlled nodes (M,), and p of each of them, shape (M, n)."""
        if self.mix is not None:
            return np.arange(len(self.x)), self.mix
        return self.nodes, np.eye(self.states.shape[1])[self.labels]


Branches = Sequence[tuple[int, Floats, Floats]]  # power, weight (out, in), bias (out,)


class Bounded(NamedTuple):
    """Numbers, and how far each is from the exact one at most."""

    value: Floats
    error: Floats


class Enclosure:
    """What the stored states of one graph show of its equilibrium.

    Args:
        certificate: with controllers, anchors, operator, gauge and κ.
        layers: the model's, with biases.
        graph: with the states.
    """

    def __init__(
        self, certificate: Mapping[str, Any], layers: Sequence[Branches], graph: GraphStates
    ) -> None:
        _check_shapes(certificate, graph)
        self.certificate = certificate
        self.layers = layers
        self.graph = graph
        self.gauge: Floats = decode_array(certificate["graph"]["gauge"])
        self.operator = Operator.of(certificate["graph"]["operator"], graph.edges, len(graph.x))

    def residual_bound(self) -> float:
        """An upper bound of max_v V(loop(Ŷ)_v − Ŷ_v)/s_v, in exact arithmetic over the given
        numbers."""
        states = self.graph.states
        after = _run(self.layers, self.operator, _Features(self.certificate, self.graph))
        apart = np.abs(after.value - states) * (1 + 4 * UNIT) + after.error
        largest = float(((apart @ self.gauge) / self.operator.s_low).max()) * SLACK + TINY
        if not np.isfinite(largest):
            raise CertificateError("the loop on the graph leaves the range of floats", got=largest)
        return largest

    def certain_nodes(self, residual: float) -> dict[str, Any]:
        """What a residual says of the nodes' classes; the same on every machine.

        Args:
            residual: ε.
        """
        graph = self.graph
        radius = self._radius(residual)
        best, certain = _classes(graph.states, radius, self.gauge)
        own = certain[graph.nodes] & (best[graph.nodes] == graph.labels)
        return {
            "nodes": len(graph.x),
            "controlled": len(graph.shares()[0]),
            "certain": int(certain.sum()),
            "labelled": len(graph.nodes),
            "labelled_certain": int(own.sum()),
            "residual": residual,
            "radius": float(radius.max() / self.gauge.min() * SLACK),
            "uncertain": np.flatnonzero(~certain)[:LISTED].tolist(),
        }

    def written(self, residual: float, slack: float = 1.0) -> dict[str, Any]:
        """How the equilibrium's features and classes compare with the written features: those are
        Σ_c p_v(c)·h*_c at controlled nodes and the given ones at others.

        Args:
            residual: ε.
            slack: times every rounding bound is used: above one, another machine finds no less.

        Returns:
            `norm`; `max` and `median`, upper bounds of the distance at the controlled nodes; `size`
            of the largest number in an anchor; and `kept`, a lower bound of the number of nodes
            whose class is certain at the equilibrium and is the one that the model gives with the
            written features.
        """
        apart = self._distances(residual, slack)
        anchors = [entry["anchor"] for entry in self.certificate["classes"]]
        features = _Features(self.certificate, self.graph, anchors=True)
        answer = _run(self.layers, self.operator, features)
        if not (np.isfinite(apart).all() and np.isfinite(answer.error).all()):
            raise CertificateError("the written features leave the range of floats")
        written, clear = _leaders(answer.value, slack * 2.0 * answer.error.max(axis=1))
        best, certain = _classes(self.graph.states, self._radius(residual), self.gauge)
        return {
            "norm": "largest feature",
            "max": float(apart.max(initial=0.0)),
            "median": float(np.median(apart)) if len(apart) else 0.0,
            "size": max(float(np.abs(decode_array(anchor)).max()) for anchor in anchors),
            "kept": int((clear & certain & (best == written)).sum()),
        }

    def _radius(self, residual: float) -> Floats:
        """How far V lets the equilibrium be from each node's state, shape (N,)."""
        room = np.nextafter(1.0 - float(self.certificate["graph"]["kappa"]), 0.0)
        radius: Floats = self.operator.s_high * (residual / room) * SLACK
        return radius

    def _distances(self, residual: float, slack: float) -> Floats:
        """Upper bounds of ‖x_v − x*_v‖∞ between written features and the equilibrium's, shape
        (M,)."""
        nodes, _ = self.graph.shares()
        radius = self._radius(residual)[nodes]
        sources = [entry["controller"] for entry in self.certificate["classes"]]
        steepest = max(_steepness(source, self.gauge) for source in sources)
        at_states = _Features(self.certificate, self.graph)
        at_rest = _Features(self.certificate, self.graph, anchors=True)
        found = np.empty(len(nodes))
        for rows in _slices(len(nodes), self.graph.x.shape[1]):
            here, there = at_states.controlled(rows), at_rest.controlled(rows)
            gap = np.abs(here.value - there.value) * (1 + 4 * UNIT)
            gap += slack * (here.error + there.error)
            found[rows] = gap.max(axis=1) + steepest * radius[rows]
        return found * SLACK + TINY


def _classes(states: Floats, radius: Floats, gauge: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """The class of each state, and whether all states within the radius share it."""
    best = states.argmax(axis=1)
    lead = np.take_along_axis(states, best[:, None], axis=1) - states
    narrow = np.minimum(gauge[best][:, None], gauge[None, :])
    kept = lead * (1 - 4 * UNIT) > radius[:, None] / narrow * SLACK
    np.put_along_axis(kept, best[:, None], True, axis=1)
    return best, np.asarray(kept.all(axis=1))


def _leaders(values: Floats, needed: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """The class of each row, and whether it leads by more than is needed."""
    best = values.argmax(axis=1)
    lead = np.take_along_axis(values, best[:, None], axis=1) - values
    clear = lead * (1 - 4 * UNIT) > needed[:, None]
    np.put_along_axis(clear, best[:, None], True, axis=1)
    return best, np.asarray(clear.all(axis=1))


def _steepness(source: list[list[dict[str, Any]]], gauge: Floats) -> float:
    """L with ‖f(y) − f(y')‖∞ ≤ L·V(y − y'): the product of the factors' sizes, column by column."""
    product = np.diag(1.0 / gauge) * (1 + 4 * UNIT)
    for layer in source:
        for factor in layer:
            if factor["weight"] is not None:
                product = (np.abs(decode_array(factor["weight"])) @ product) * SLACK
    return float(product.max(initial=0.0)) * SLACK + TINY


def _check_shapes(certificate: Mapping[str, Any], graph: GraphStates) -> None:
    n = len(decode_array(certificate["graph"]["gauge"]))
    size = len(graph.x)
    labels = {entry["class"] for entry in certificate["classes"]}
    known = set(range(n)) if graph.mix is not None else labels
    fits = (
        size > 0
        and len(labels) == len(certificate["classes"])  # or a class would be controlled twice
        and labels <= set(range(n))
        and graph.edges.ndim == 2
        and len(graph.edges) == 2
        and (not graph.edges.size or 0 <= graph.edges.min() <= graph.edges.max() < size)
        and graph.states.shape == (size, n)
        and graph.nodes.shape == graph.labels.shape
        and len(np.unique(graph.nodes)) == len(graph.nodes)
        and (not len(graph.nodes) or 0 <= graph.nodes.min() <= graph.nodes.max() < size)
        and set(graph.labels.tolist()) <= known
        and bool(np.isfinite(graph.states).all())
        and (graph.mix is None or _are_shares(graph.mix, size, n, labels))
    )
    if not fits:
        raise CertificateError("the stored states do not fit the graph and the certificate")


def _are_shares(mix: Floats, size: int, n: int, labels: set[int]) -> bool:
    """Whether p ≥ 0, p(c) = 0 for a class without a controller, and Σ_c p(c) ≤ 1 exactly."""
    if mix.shape != (size, n) or not np.isfinite(mix).all() or mix.min() < 0:
        return False
    others = [c for c in range(n) if c not in labels]
    sums = mix.sum(axis=1) * (1 + 4 * (n + 1) * UNIT)  # not below the exact ones
    return not mix[:, others].any() and bool(sums.max() <= 1.0)


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


@dataclass(frozen=True, eq=False)
class _Features:
    """What the model is fed: Σ_c p_v(c)·f_c(ŷ_v) at controlled nodes, given features at others.

    Attributes:
        certificate: with controllers and anchors.
        graph: with the states.
        anchors: h*_c in place of f_c(ŷ_v).
    """

    certificate: Mapping[str, Any]
    graph: GraphStates
    anchors: bool = False

    def controlled(self, rows: slice) -> Bounded:
        """The features of some controlled nodes, shape (rows, d).

        Args:
            rows: positions among the controlled nodes.
        """
        nodes, shares = self.graph.shares()
        nodes, shares = nodes[rows], shares[rows]
        width = self.graph.x.shape[1]
        total = Bounded(np.zeros((len(nodes), width)), np.zeros((len(nodes), width)))
        for entry in self.certificate["classes"]:
            share = shares[:, entry["class"]]
            if not share.any():
                continue
            used = slice(None) if share.all() else np.flatnonzero(share)
            feature = self._of_class(entry, nodes[used])
            part = _scaled(feature, share[used])
            before = Bounded(total.value[used], total.error[used])
            total.value[used], total.error[used] = _sum(before, part)
        return total

    def _of_class(self, entry: dict[str, Any], nodes: Ints) -> Bounded:
        if not self.anchors:
            return _controller(entry["controller"], self.graph.states[nodes])
        anchor = decode_array(entry["anchor"])
        value = np.broadcast_to(anchor, (len(nodes), len(anchor)))
        return Bounded(value, np.zeros_like(value))

    def through(self, weight: Floats, bias: Floats) -> Bounded:
        """X·Wᵀ + b, shape (N, out).

        Args:
            weight: W, shape (out, d).
            bias: b, shape (out,).
        """
        size = len(self.graph.x)
        value, error = np.empty((size, len(bias))), np.empty((size, len(bias)))
        nodes, _ = self.graph.shares()
        if len(nodes) < size:
            for rows in _slices(size, self.graph.x.shape[1]):
                given = np.asarray(self.graph.x[rows], dtype=np.float64)
                value[rows], error[rows] = _dense(
                    Bounded(given, np.zeros_like(given)), weight, bias
                )
        for rows in _slices(len(nodes), self.graph.x.shape[1]):
            own = nodes[rows]
            value[own], error[own] = _dense(self.controlled(rows), weight, bias)
        return Bounded(value, error)


def _slices(count: int, width: int) -> Iterator[slice]:
    """Rows of a wide matrix, few enough at a time."""
    step = max(1, ENTRIES // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _run(layers: Sequence[Branches], operator: Operator, features: _Features) -> Bounded:
    """The model's last values on the graph, with bounds on their rounding."""
    given: Bounded | None = None
    for layer in layers:
        total: Bounded | None = None
        for power, weight, bias in layer:
            moved = (
                features.through(weight, bias)
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


def _scaled(given: Bounded, share: Floats) -> Bounded:
    """p·x, row by row, for p ≥ 0."""
    value = given.value * share[:, None]
    error = (given.error * share[:, None] + 4 * UNIT * np.abs(value)) * SLACK + TINY
    return Bounded(value, error)


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
