"""Adjacency matrices as PyG's models take them in place of an edge list: torch's sparse layouts,
dense ones, and torch_sparse's `SparseTensor` where that package is installed.

Row i holds the edges *into* node i, as in `data.adj_t`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


def is_adjacency(value: object) -> bool:
    """Whether a value is a sparse matrix, and not an edge list."""
    if isinstance(value, Tensor):
        return value.layout in _SPARSE
    return hasattr(value, "coo") and hasattr(value, "sparse_sizes")


def copy_sparse(values: Iterable[Any], memo: dict[int, Any]) -> None:
    """Copy sparse tensors ahead of `copy.deepcopy`, which cannot copy compressed ones."""
    for value in values:
        if isinstance(value, Tensor) and is_adjacency(value):
            memo[id(value)] = value.clone()


def edges_of(adjacency: Any) -> Tensor:
    """The edges source -> target of an adjacency matrix, int64, shape (2, E), by target."""
    if not isinstance(adjacency, Tensor):
        target, source, _ = adjacency.coo()
        return torch.stack([source, target])
    dense = adjacency.layout == torch.strided
    indices = adjacency.nonzero().T if dense else adjacency.to_sparse_coo().coalesce().indices()
    return indices.flip(0)


def weighs_edges(adjacency: Any) -> bool:
    """Whether an adjacency matrix says more than which edges there are: a value that is not one."""
    if isinstance(adjacency, Tensor):
        values = adjacency.to_sparse_coo().coalesce().values()
    else:
        values = adjacency.coo()[2]
    return values is not None and bool((values != 1).any())


def like_adjacency(adjacency: Any, x: Tensor, edge_index: Tensor) -> Any:
    """The adjacency matrix of another graph, in the layout of a known one; every edge weighs one,
    as the loop of a single node does in a normalised matrix.

    Args:
        x: features of the other graph, shape (n, d).
        edge_index: its edges, shape (2, e).
    """
    n_nodes = x.shape[0]
    row, column = edge_index.flip(0)
    if adjacency is not None and not isinstance(adjacency, Tensor):
        kind: Any = type(adjacency)
        return kind(row=row, col=column, sparse_sizes=(n_nodes, n_nodes))
    values = x.new_ones(edge_index.shape[1])
    matrix = torch.sparse_coo_tensor(torch.stack([row, column]), values, (n_nodes, n_nodes))
    matrix = matrix.coalesce()
    layout = torch.sparse_csr if adjacency is None else adjacency.layout
    if layout == torch.strided:
        return matrix.to_dense()
    return matrix if layout == torch.sparse_coo else matrix.to_sparse(layout=layout)
