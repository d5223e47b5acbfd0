"""The graph as an operator on tensors: Ŝ = D^-1/2 (A + I) D^-1/2, and personalised smoothing."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphkeel.graph.propagate.adjacency import normalise
from graphkeel.graph.propagate.local import hops_of


class Propagator:
    """Multiplies by Ŝ, the normalised adjacency with self-loops.

    Edges are taken both ways and once each, so Ŝ is symmetric with spectrum in [-1, 1] whatever
    `edge_index` says: the contraction argument of `diffuse` rests on that.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
    """

    def __init__(self, edge_index: Tensor, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        self.matrix = normalise(edge_index.numpy(), n_nodes)

    @classmethod
    def of_matrix(cls, matrix: sparse.csr_matrix) -> Propagator:
        """Of Ŝ itself.

        Args:
            matrix: what `normalise` makes of an edge list, shape (N, N).
        """
        found = object.__new__(cls)
        found.n_nodes = matrix.shape[0]
        found.matrix = matrix
        return found

    def __call__(self, values: Tensor) -> Tensor:
        """Ŝ·values, shape (N, k)."""
        return self._hops(values, 1)

    def smooth(self, values: Tensor, teleport: float = 0.1, steps: int = 10) -> Tensor:
        """Z ← (1−a) Ŝ Z + a·values, from Z = values: personalised PageRank, cut off after `steps`.

        Args:
            values: float32, shape (N, k).
        """
        return self._hops(values, steps, teleport)

    def _hops(self, values: Tensor, hops: int, teleport: float = 0.0) -> Tensor:
        dense = np.ascontiguousarray(values.detach().numpy(), dtype=np.float32)
        return torch.from_numpy(hops_of(self.matrix, dense, hops, teleport))
