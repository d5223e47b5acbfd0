"""One sparsity pattern, many weightings: products with D^-1/2 (A + I) D^-1/2 while edges come and
go.

Methods that retrain on augmented graphs drop other edges at every step. The pattern never changes,
so it is sorted once; a dropped edge is a stored zero."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor


class Pattern:
    """The edges of a graph, once each, and a self-loop per node, in row order (a row gathers from
    its columns).

    Attributes:
        rows, columns: target and source of every entry, shape (E + N,).
        edges: positions of the entries that are edges, not loops.
    """

    def __init__(self, edge_index: Tensor, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        loops = torch.arange(n_nodes).repeat(2, 1)
        sources, targets = torch.cat([edge_index, loops], dim=1)
        codes = torch.unique(targets * n_nodes + sources)
        self.rows, self.columns = codes // n_nodes, codes % n_nodes
        self.edges = (self.rows != self.columns).nonzero().flatten()
        self._starts = _row_starts(self.rows, n_nodes)
        # Entries in column order: the transpose.
        self._turn = torch.argsort(self.columns * n_nodes + self.rows)
        self._turned_starts = _row_starts(self.columns, n_nodes)
        self._turned_columns = self.rows[self._turn]

    @property
    def n_edges(self) -> int:
        return int(self.edges.numel())

    def gcn_weights(self, kept: Tensor | None = None) -> Tensor:
        """Symmetric normalisation of the entries that are kept (all when None); degrees count kept
        entries only."""
        present = torch.ones(self.rows.shape[0]) if kept is None else kept.float()
        scale = self.row_sums(present).rsqrt()
        return present * scale[self.rows] * scale[self.columns]

    def without_edges(self, dropped: Tensor) -> Tensor:
        """Which entries are left when the edges at these positions of `edges` go."""
        kept = torch.ones(self.rows.shape[0], dtype=torch.bool)
        kept[self.edges[dropped]] = False
        return kept

    def row_sums(self, weights: Tensor) -> Tensor:
        """The sum of every row, shape (N,)."""
        return torch.zeros(self.n_nodes, dtype=weights.dtype).index_add_(0, self.rows, weights)

    def product(self, weights: Tensor, values: Tensor) -> Tensor:
        """The weighted matrix times values of shape (N, k), differentiable in the values."""
        return _Product.apply(self, weights, values)

    def matrix(self, weights: Tensor) -> Tensor:
        """The weighted matrix, shape (N, N)."""
        return csr(self._starts, self.columns, weights, (self.n_nodes, self.n_nodes))

    def transposed(self, weights: Tensor) -> Tensor:
        """The transposed weighted matrix, shape (N, N)."""
        shape = (self.n_nodes, self.n_nodes)
        return csr(self._turned_starts, self._turned_columns, weights[self._turn], shape)


class _Product(torch.autograd.Function):
    """torch transposes a CSR matrix anew in every backward pass; here the transpose is a stored
    permutation."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, weights: Tensor, values: Tensor) -> Tensor:
        ctx.pattern, ctx.weights = pattern, weights
        return pattern.matrix(weights) @ values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.pattern.transposed(ctx.weights) @ gradients[0].contiguous()


def _row_starts(rows: Tensor, n_rows: int) -> Tensor:
    """Where each row's entries begin, shape (n_rows + 1,)."""
    counts = torch.bincount(rows, minlength=n_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def csr(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A matrix in CSR form, without the warning that the form is new."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR|invariant)")
        return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)
