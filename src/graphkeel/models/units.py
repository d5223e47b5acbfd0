"""Units in which features and answers are measured: a typical length, a typical margin."""

from __future__ import annotations

import torch
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph.propagate.local import row_blocks


def relative_change(features: Tensor, x: Tensor) -> Tensor:
    """|x' − x| / |x| of every node, of features x' and x; for x = 0 relative to the median length,
    shape (N,)."""
    lengths = x.norm(dim=1)
    lengths = torch.where(lengths > 0, lengths, lengths.new_tensor(typical_length(x)))
    moved = [(features[rows] - x[rows]).norm(dim=1) for rows in row_blocks(len(x))]
    return torch.cat([*moved, lengths[:0]]) / lengths


def moved_along(x: Tensor, moves: Tensor, directions: Tensor) -> Tensor:
    """x + moves · directionsᵀ, of moves (N, r) and directions (d, r), by blocks of rows; rows that
    do not move are those of x to the bit."""
    moved = x.clone()
    for rows in row_blocks(len(x)):
        change = moves[rows] @ directions.T
        is_moved = change.abs().amax(dim=1, keepdim=True) > 0
        moved[rows] = torch.where(is_moved, x[rows] + change, x[rows])
    return moved


def typical_length(x: Tensor) -> float:
    """Median length of the rows that are not zero; one where all are."""
    lengths = x.norm(dim=1)
    lengths = lengths[lengths > 0]
    return float(lengths.median()) if len(lengths) else 1.0


def typical_margin(logits: Tensor) -> float:
    """Median distance of the best two logits; one for a model that tells no classes apart."""
    check_finite(logits, "answers of the model")
    best = logits.topk(2, dim=1).values
    distance = best[:, 0] - best[:, 1]
    return float(distance.median()) or float(distance.mean()) or 1.0


def check_finite(values: Tensor, what: str) -> None:
    if not bool(torch.isfinite(values).all()):
        raise DataError(f"{what} must be finite to be steered", got="nan or inf")
