"""Units in which features and answers are measured: a typical length, a typical margin."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph.propagate.rowwise import rowwise


def relative_change(features: Tensor, x: Tensor) -> Tensor:
    """|x' − x| / |x| of every node, (N,), of features x' and x; of the median |x| for x = 0."""
    return rowwise(partial(_relative, typical_length(x)), features, x)  # type: ignore[no-any-return]


def _relative(usual: float, features: Tensor, x: Tensor) -> Tensor:
    lengths = x.norm(dim=1)
    return (features - x).norm(dim=1) / torch.where(lengths > 0, lengths, usual)


def moved_along(x: Tensor, moves: Tensor, directions: Tensor) -> Tensor:
    """x + moves · directionsᵀ, of moves (N, r) and directions (d, r), by blocks of rows; rows that
    do not move are those of x to the bit."""
    return rowwise(partial(_moved, directions), x, moves)  # type: ignore[no-any-return]


def _moved(directions: Tensor, x: Tensor, moves: Tensor) -> Tensor:
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
