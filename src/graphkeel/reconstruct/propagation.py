"""The graph as an operator: Ŝ = D^-1/2 (A + I) D^-1/2, and personalised diffusion with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.graph.propagate.adjacency import entry_values, pattern

TELEPORT, STEPS = 0.1, 10


class Propagator:
    """Multiplies by Ŝ, the normalised adjacency with self-loops.

    Edges are taken both ways and once each, so Ŝ is symmetric with spectrum in [-1, 1] whatever
    `edge_index` says: the contraction argument of `diffuse` rests on that."""

    def __init__(self, edge_index: Tensor, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        begins, neighbours = pattern(edge_index.numpy(), n_nodes)
        scale = torch.from_numpy(np.diff(begins)).float().rsqrt()
        values = torch.from_numpy(entry_values(begins, neighbours, scale.numpy(), True))
        starts, columns = torch.from_numpy(begins), torch.from_numpy(neighbours)
        if int(starts[-1]) < torch.iinfo(torch.int32).max:
            starts = starts.int()
        else:
            columns = columns.long()  # both must be of one type
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse (CSR|invariant)")
            self.matrix = torch.sparse_csr_tensor(
                starts, columns, values, (n_nodes, n_nodes), check_invariants=False
            )

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]:
        """Row starts, columns and values, sharing memory with the matrix."""
        parts = (self.matrix.crow_indices(), self.matrix.col_indices(), self.matrix.values())
        starts, columns, values = (part.numpy() for part in parts)
        return starts, columns, values

    def __call__(self, values: Tensor) -> Tensor:
        return self.matrix @ values

    def smooth(self, values: Tensor, teleport: float = TELEPORT, steps: int = STEPS) -> Tensor:
        """Z ← (1−a) Ŝ Z + a·values, from Z = values: personalised PageRank, cut off after
        `steps`."""
        smoothed = values
        source = teleport * values
        for _ in range(steps):
            smoothed = torch.add(source, self(smoothed), alpha=1.0 - teleport)
        return smoothed
