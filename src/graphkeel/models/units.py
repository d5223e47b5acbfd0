"""Units in which features and answers are measured: a typical length, a typical margin."""

from __future__ import annotations

import torch
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph.propagate.local import home_of, row_blocks


def relative_change(features: Tensor, x: Tensor) -> Tensor:
    """|x' − x| / |x| of every node, of features x' and x; for x = 0 relative to the median length,
    shape (N,)."""
    usual = typical_length(x)
    home = home_of(x)
    if home is not None:
        return home.lazy(_relative, features, x, usual)  # type: ignore[no-any-return]
    parts = [_relative(features[rows], x[rows], usual) for rows in row_blocks(len(x))]
    return torch.cat([*parts, x.new_zeros(0)])


def _relative(features: Tensor, x: Tensor, usual: float) -> Tensor:
    lengths = x.norm(dim=1)
    return (features - x).norm(dim=1) / torch.where(lengths > 0, lengths, usual)


def moved_along(x: Tensor, moves: Tensor, directions: Tensor) -> Tensor:
    """x + moves · directionsᵀ, of moves (N, r) and directions (d, r), by blocks of rows; rows that
    do not move are those of x to the bit."""
    home = home_of(x)
    if home is not None:
        return home.lazy(_moved, x, moves, directions)  # type: ignore[no-any-return]
    moved = x.clone()
    for rows in row_blocks(len(x)):
        moved[rows] = _moved(x[rows], moves[rows], directions)
    return moved


def _moved(x: Tensor, moves: Tensor, directions: Tensor) -> Tensor:
    change = moves @ directions.T
    is_moved = (change != 0).any(dim=1, keepdim=True)
    return torch.where(is_moved, change.add_(x), x)


def typical_length(x: Tensor) -> float:
    """Median length of the rows that are not zero; one where all are."""
    lengths = x.norm(dim=1)
    lengths = lengths[lengths > 0]
    return float(lengths.median()) if len(lengths) else 1.0


def typical_margin(logits: Tensor) -> float:
    """Median distance of the best two logits; one for a model that tells no classes apart."""
    check_finite(logits, "answers of the model")
    best = logits.topk(2, dim=1)[0]
    distance = best[:, 0] - best[:, 1]
    return float(distance.median()) or float(distance.mean()) or 1.0


def check_finite(values: Tensor, what: str) -> None:
    if not bool(torch.isfinite(values.norm(dim=1)).all()):
        raise DataError(f"{what} must be finite to be steered", got="nan or inf")
