"""Models that are linear in their features, as a matrix product."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.nn import SGConv

from graphkeel.graph.propagate.local import as_tensor, cached_width, home_of
from graphkeel.models.aggregation import spread
from graphkeel.models.frozen import FrozenModel, ReturnType
from graphkeel.models.networks import SGC, convolution


class Propagation:
    """Products with S^K and its transpose, S float32 of shape (N, N)."""

    def __init__(self, matrix: sparse.csr_matrix, hops: int) -> None:
        self.hops = hops
        self._power = _schur_bound(matrix) ** 2
        self._matrix = _sorted_tensor(matrix.copy())
        self._transposed = _sorted_tensor(matrix.T.tocsr())

    @classmethod
    def made(cls, matrix: Any, transposed: Any, bound: float, hops: int) -> Propagation:
        """Of S and Sᵀ of which nothing is asked but `@`, and a bound of |S|₂."""
        found = object.__new__(cls)
        found.hops = hops
        found._power = bound**2
        found._matrix = matrix
        found._transposed = transposed
        return found

    @classmethod
    def of(cls, edge_index: Tensor, n_nodes: int, hops: int = 2) -> Propagation | None:
        """Of a model with so many layers, two as a rule; None on other devices than the CPU."""
        if edge_index.device.type != "cpu" or not n_nodes:
            return None
        return cls(convolution(edge_index, n_nodes), hops)

    def forth(self, values: Tensor) -> Tensor:
        """S^K values, shape (N, k)."""
        return _by_columns(values, lambda part, _: spread(part, self._matrix, self.hops))

    def back(self, values: Tensor) -> Tensor:
        """(Sᵀ)^K values, shape (N, k)."""
        return _by_columns(values, lambda part, _: spread(part, self._transposed, self.hops))

    def inverse(self, gains: Tensor, ridge: float) -> Callable[[Tensor], Tensor]:
        """Nearly (g² (Sᵀ)^K S^K + ridge)⁻¹ for the gain g of each column, positive definite.

        A polynomial of degree K in t = SᵀS/σ², σ >= |S|₂: no costlier than forth and back, and far
        richer than powers of (Sᵀ)^K S^K. It is the Chebyshev series of 1/(g² (σ²t)^K + ridge) with
        Jackson's factors, which keep it positive on [0, 1]. Rows of zeros stay zero."""
        top = gains.double() ** 2 * self._power**self.hops
        angles = (torch.arange(256, dtype=torch.float64) + 0.5) * (math.pi / 256)
        places = (1 + angles.cos()) / 2
        wanted = 1 / (top * places[:, None] ** self.hops + ridge)
        degree = max(self.hops, 1)
        orders = torch.arange(degree + 1)[:, None]
        series = (orders * angles).cos() @ wanted / 128
        series[0] /= 2
        terms = (_jackson(degree)[:, None] * series).to(gains)

        def summed(values: Tensor, columns: slice) -> Tensor:
            own = terms if len(gains) == 1 else terms[:, columns]
            before, now = values, self._hopped(values)
            found = own[0] * before + own[1] * now
            for term in own[2:]:
                before, now = now, 2 * self._hopped(now) - before
                found = found + term * now
            return found

        def apply(values: Tensor) -> Tensor:
            return _by_columns(values, summed) * (values != 0).any(dim=1, keepdim=True)

        return apply

    def _hopped(self, values: Tensor) -> Tensor:
        """(2t - 1) values."""
        return (2 / self._power) * (self._transposed @ (self._matrix @ values)) - values


@dataclass(frozen=True)
class LinearMap:
    """A model that is linear in its features: logits = S^K X Wᵀ + b.

    Attributes:
        matrix: S, float32, shape (N, N); or the propagation itself, where S lives on a cluster.
        hops: K.
        weight: W, shape (C, d).
        bias: b, shape (C,).
    """

    matrix: sparse.csr_matrix | Propagation
    hops: int
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, frozen: FrozenModel, edge_index: Tensor, n_nodes: int) -> LinearMap | None:
        """The map of a simple graph convolution; None for any other model."""
        read = cls.read(frozen)
        return None if read is None else cls(convolution(edge_index, n_nodes), *read)

    @staticmethod
    def read(frozen: FrozenModel) -> tuple[int, Tensor, Tensor] | None:
        """K, W and b of a simple graph convolution; None for any other model."""
        layer = frozen.model.conv if isinstance(frozen.model, SGC) else frozen.model
        if (
            not isinstance(layer, SGConv)
            or not layer.add_self_loops
            or frozen.return_type is not ReturnType.RAW
            or frozen.calling.has_adjacency
            or layer.lin.weight.device.type != "cpu"
            or layer.lin.weight.dtype != torch.float32
            or layer.lin.weight.shape[0] < 2  # one logit for two classes
        ):
            return None
        weight = layer.lin.weight.detach()
        bias = torch.zeros(len(weight)) if layer.lin.bias is None else layer.lin.bias.detach()
        return layer.K, weight, bias

    @cached_property
    def propagation(self) -> Propagation:
        if isinstance(self.matrix, Propagation):
            return self.matrix
        return Propagation(self.matrix, self.hops)

    def logits(self, x: Tensor) -> Tensor:
        """Answers to features of shape (N, d)."""
        return self.propagation.forth(torch.nn.functional.linear(x, self.weight)) + self.bias

    def directions(self) -> tuple[Tensor, Tensor, Tensor]:
        """W up to what is the same for all classes, as U diag(σ) Qᵀ: Uᵀ (r, C), σ (r,), Q (d, r).

        Only moves along Q change the difference of two logits: a pass carries r < C columns."""
        centred = self.weight - self.weight.mean(dim=0)
        left, sizes, right = torch.linalg.svd(centred, full_matrices=False)
        rank = max(1, int((sizes > 1e-6 * sizes[0]).sum()))
        return left[:, :rank].T, sizes[:rank], right[:rank].T


def _by_columns(values: Tensor, work: Callable[[Tensor, slice], Tensor]) -> Tensor:
    """Work on as many columns at a time as the processor's cache holds, on all of a cluster's."""
    width = cached_width(len(values), least=8)
    if width >= values.shape[1] or home_of(values) is not None:
        return work(values, slice(None))
    found = torch.empty_like(values)
    for first in range(0, values.shape[1], width):
        columns = slice(first, first + width)
        found[:, columns] = work(values[:, columns].contiguous(), columns)
    return found


def _schur_bound(matrix: sparse.csr_matrix) -> float:
    """At least |S|₂, by Schur's test with √degree, read off the loops: 1 if edges go both ways."""
    own = matrix.diagonal()
    weights = np.where(own > 0, own, 1.0) ** -0.5
    rows = matrix @ weights / weights
    columns = matrix.T @ weights / weights
    return math.sqrt(float(rows.max()) * float(columns.max()))


def _jackson(degree: int) -> Tensor:
    """Factors that make a truncated Chebyshev series of a positive function positive."""
    angle = math.pi / (degree + 2)
    k = torch.arange(degree + 1, dtype=torch.float64)
    turn = (k * angle).sin() / math.tan(angle)
    return ((degree + 2 - k) * (k * angle).cos() + turn) / (degree + 2)


def _sorted_tensor(matrix: sparse.csr_matrix) -> Tensor:
    """In torch, whose products with a few columns take a third of the time; sorted in place."""
    matrix.sum_duplicates()
    return as_tensor(matrix)
