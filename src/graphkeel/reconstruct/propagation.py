"""The graph as an operator: Ŝ = D^-1/2 (A + I) D^-1/2, and personalised diffusion with it."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

TELEPORT, STEPS = 0.1, 10


class Propagator:
    """Multiplies by Ŝ, the normalised adjacency with self-loops.

    Edges are taken both ways and once each, so Ŝ is symmetric with spectrum in [-1, 1] whatever `edge_index` says:
    the contraction argument of `diffuse` rests on that.
    """

    def __init__(self, edge_index: Tensor, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        loops = torch.arange(n_nodes).repeat(2, 1)
        pairs = torch.cat([edge_index, edge_index.flip(0), loops], dim=1)
        codes = torch.unique(pairs[0] * n_nodes + pairs[1])
        rows, columns = codes // n_nodes, codes % n_nodes
        counts = torch.bincount(rows, minlength=n_nodes)
        scale = counts.float().rsqrt()
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse (CSR|invariant)")
            self.matrix = torch.sparse_csr_tensor(
                starts, columns, scale[rows] * scale[columns], (n_nodes, n_nodes), check_invariants=False
            )

    def __call__(self, values: Tensor) -> Tensor:
        return self.matrix @ values

    def smooth(self, values: Tensor, teleport: float = TELEPORT, steps: int = STEPS) -> Tensor:
        """Z ← (1−a) Ŝ Z + a·values, from Z = values: personalised PageRank, cut off after `steps`."""
        smoothed = values
        source = teleport * values
        for _ in range(steps):
            smoothed = torch.add(source, self(smoothed), alpha=1.0 - teleport)
        return smoothed
