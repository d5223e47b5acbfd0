"""KDGA's graph augmentor written down directly, with N × N matrices and plain autograd: the
reference of the tests."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

EPSILON = torch.finfo(torch.float32).eps  # where the relaxed Bernoulli clamps probabilities


def dense_adjacency(edge_index: Tensor, n_nodes: int) -> Tensor:
    """0/1, symmetric, with a unit diagonal."""
    dense = torch.zeros(n_nodes, n_nodes, dtype=torch.float64)
    dense[edge_index[0], edge_index[1]] = 1.0
    dense[edge_index[1], edge_index[0]] = 1.0
    return dense.fill_diagonal_(1.0)


def dense_edge_loss(hidden: Tensor, adjacency: Tensor) -> Tensor:
    """Weighted binary cross-entropy of the logits h hᵀ against the adjacency."""
    n, ones = adjacency.shape[0], adjacency.sum()
    weight, norm = (n * n - ones) / ones, n * n / (2 * (n * n - ones))
    return norm * F.binary_cross_entropy_with_logits(
        hidden @ hidden.T, adjacency, pos_weight=weight
    )


class _Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, soft):
        return soft.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def dense_sample(
    hidden: Tensor, adjacency: Tensor, uniforms: Tensor, alpha: float, temperature: float
) -> Tensor:
    """The normalised sampled graph; `uniforms` are read above the diagonal."""
    logits = hidden @ hidden.T
    probabilities = (alpha * logits / logits.max() + (1 - alpha) * adjacency).clamp(
        EPSILON, 1 - EPSILON
    )
    noise = uniforms.clamp(EPSILON, 1 - EPSILON)
    soft = ((noise.logit() + probabilities.logit()) / temperature).sigmoid()
    upper = _Round.apply(soft).triu(1)
    sampled = upper + upper.T + torch.eye(len(hidden), dtype=hidden.dtype)
    scale = sampled.sum(dim=1).pow(-0.5)
    return scale[:, None] * sampled * scale[None, :]
