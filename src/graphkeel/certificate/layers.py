"""The layers of a recognised model on one graph, in float64 with bounds on their rounding.

Each layer is Z = Σ_p Ŝᵖ·H·W_pᵀ + Ŝᵖ·b_p, with a ReLU between each two layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.bounds import (
    SLACK,
    TINY,
    UNIT,
    Bounded,
    Floats,
    Ints,
    checked_terms,
    dense,
    plus,
    relu,
)
from graphkeel.core.errors import CertificateError

Branches = Sequence[tuple[int, Floats, Floats]]  # power, weight (out, in), bias (out,)


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
        kind, _, loops = name.partition(", ")
        if kind not in ("symmetric", "mean") or loops not in ("", "loops added", "loops removed"):
            raise CertificateError("the certificate names an unknown aggregation", got=repr(name))
        sources, targets = _with(loops, edges, nodes)
        degree = np.bincount(targets, minlength=nodes).astype(np.float64)
        most = checked_terms(int(degree.max(initial=0)))
        if kind == "mean":
            ones = np.ones(nodes)
            return cls(sources, targets, 1.0 / degree[targets], ones, ones, most)
        product = degree[sources] * degree[targets]  # exact: `checked_terms`
        linked = product > 0
        weights = np.where(linked, 1.0 / np.sqrt(np.where(linked, product, 1.0)), 0.0)
        s = np.sqrt(np.maximum(degree, 1.0))
        low, high = s * (1 - 4 * UNIT), s * (1 + 4 * UNIT)
        return cls(sources, targets, weights, low, high, most)

    def apply(self, given: Bounded) -> Bounded:
        """Ŝ·H of shape (N, width), column by column."""
        loss = 4 * (self.most + 8) * UNIT
        spread = given.error + loss * np.abs(given.value)
        return Bounded(self.summed(given.value), self.summed(spread) * SLACK + TINY)

    def summed(self, values: Floats) -> Floats:
        """Ŝ·H without bounds, column by column."""
        found = np.empty(values.shape)
        for j in range(values.shape[1]):
            messages = self.weights * values[self.sources, j]
            found[:, j] = np.bincount(self.targets, weights=messages, minlength=len(values))
        return found


def _with(loops: str, edges: Ints, nodes: int) -> tuple[Ints, Ints]:
    sources, targets = edges
    if not loops:
        return sources, targets
    plain = sources != targets
    if loops == "loops removed":
        return sources[plain], targets[plain]
    every = np.arange(nodes)  # one loop at each node, whether it had one, several or none
    return np.concatenate([sources[plain], every]), np.concatenate([targets[plain], every])


def run_layers(
    layers: Sequence[Branches], operator: Operator, through: Callable[[Floats, Floats], Bounded]
) -> Bounded:
    """The model's last values on the graph, with bounds on their rounding, shape (N, n)."""
    given: Bounded | None = None
    for layer in layers:
        total: Bounded | None = None
        for power, weight, bias in layer:
            moved = through(weight, bias) if given is None else dense(relu(given), weight, bias)
            for _ in range(power):
                moved = operator.apply(moved)
            total = moved if total is None else plus(total, moved)
        given = total
    if given is None:
        raise CertificateError("the model has no layers")
    return given


def row_slices(count: int, width: int, entries: int = 1 << 20) -> Iterator[slice]:
    """Rows of a wide matrix, few enough at a time: first touch of larger arrays is slow."""
    step = max(1, entries // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def through_rows(
    features: Callable[[slice], Bounded], count: int, weight: Floats, bias: Floats
) -> Bounded:
    """X·Wᵀ + b for features (rows, d) that are made some rows at a time, shape (count, out)."""
    value = np.empty((count, len(bias)))
    error = np.empty_like(value)
    for rows in row_slices(count, weight.shape[1]):
        part = dense(features(rows), weight, bias)
        value[rows], error[rows] = part.value, part.error
    return Bounded(value, error)


def is_undirected(edges: Ints) -> bool:
    """Whether every edge (2, E) goes both ways, as often one way as the other."""
    there = edges[:, np.lexsort(edges)]
    back = edges[::-1]
    return bool(np.array_equal(there, back[:, np.lexsort(back)]))


def are_edges(edges: Ints, nodes: int) -> bool:
    """Whether both ends of every edge (2, E) are nodes."""
    pairs = edges.ndim == 2 and len(edges) == 2
    return pairs and (not edges.size or bool(0 <= edges.min() <= edges.max() < nodes))


def are_floats(x: NDArray[Any]) -> bool:
    """Whether every feature (N, d) is, exactly, a float64."""
    whole = x.dtype.kind in "iu" and x.dtype.itemsize == 8
    if whole and x.size and max(int(x.max()), -int(x.min())) > 2**53:
        return False
    return x.ndim == 2 and np.can_cast(x.dtype, np.float64)
