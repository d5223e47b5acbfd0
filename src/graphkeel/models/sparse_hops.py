"""Graph convolution as a sparse product: for graphs whose messages, a row of features per edge,
would not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from graphkeel.graph.propagate import multiply, normalise_as_given

# The matrix of an edge list, for as long as the list lives; the version tells whether it was
# changed in place.
_matrices: Any = WeakIdKeyDictionary()


def convolution(edge_index: Tensor, n_nodes: int) -> sparse.csr_matrix:
    """The matrix that PyG's graph convolutions multiply by, made once per edge list.

    Args:
        edge_index: int64, shape (2, E).
    """
    known = _matrices.get(edge_index)
    if known is None or known[:2] != (edge_index._version, n_nodes):
        known = (edge_index._version, n_nodes, normalise_as_given(edge_index.numpy(), n_nodes))
        _matrices[edge_index] = known
    return known[2]


def share_convolution(edge_index: Tensor, copied: Tensor) -> None:
    """A copy of an edge list has the same matrix; if there is one, it is not made again.

    Args:
        edge_index: int64, shape (2, E).
    """
    known = _matrices.get(edge_index)
    if known is not None and known[0] == edge_index._version:
        _matrices[copied] = (copied._version, *known[1:])


def hop(
    matrix: sparse.csr_matrix, values: Tensor, transposed: sparse.csr_matrix | None = None
) -> Tensor:
    """matrix @ values, with gradients into the values where they are asked for.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
    """
    if values.requires_grad and torch.is_grad_enabled():
        return _Hop.apply(values, matrix, transposed)  # type: ignore[no-any-return]
    return _product(matrix, values)


class _Hop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        matrix: sparse.csr_matrix,
        transposed: sparse.csr_matrix | None,
    ) -> Tensor:
        ctx.matrix = matrix
        ctx.transposed = transposed
        return _product(matrix, values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        transposed = ctx.matrix.T.tocsr() if ctx.transposed is None else ctx.transposed
        return _product(transposed, gradients[0]), None, None


def _product(matrix: sparse.csr_matrix, values: Tensor) -> Tensor:
    dense = np.ascontiguousarray(values.detach().numpy(), dtype=np.float32)
    return torch.from_numpy(multiply(matrix, dense))
