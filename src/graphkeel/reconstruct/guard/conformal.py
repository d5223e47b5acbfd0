"""Prediction sets that hold the true class as often as asked for: split conformal prediction.

The score of a class is how far its logit lies behind the best other one. Labels that had no part in
the logits they are compared with (folds, or validation) say how large that gap may be."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError


def gaps(logits: Tensor) -> Tensor:
    """How far each class lies behind the best other one: negative for the class that leads.

    Args:
        logits: shape (k, n_classes).
    """
    top = logits.topk(2, dim=1)
    best = top.values[:, :1].expand_as(logits)
    second = top.values[:, 1:].expand_as(logits)
    leads = torch.zeros_like(logits, dtype=torch.bool)
    leads.scatter_(1, top.indices[:, :1], True)
    return torch.where(leads, second, best) - logits


def allowed_gap(logits: Tensor, classes: Tensor, coverage: float) -> float:
    """The gap that the asked share of labelled nodes stays within; infinite where they are too few.

    Args:
        logits: of nodes whose label is known and was not used for them, shape (k, n_classes).
        classes: their labels, int64, shape (k,).
        coverage: how often the sets are to hold the true class, in (0, 1).
    """
    if not 0.0 < coverage < 1.0:
        raise ConfigError("coverage must lie strictly between 0 and 1", got=coverage)
    n = len(classes)
    rank = math.ceil((n + 1) * coverage)
    if rank > n:
        return math.inf
    own = gaps(logits).gather(1, classes.unsqueeze(1)).flatten()
    return float(own.sort().values[rank - 1])


def prediction_sets(logits: Tensor, allowed: float) -> Tensor:
    """The classes within the gap, bool, shape (N, n_classes); a set may be empty.

    Args:
        logits: of all nodes, shape (N, n_classes).
        allowed: as `allowed_gap` gives it.
    """
    return gaps(logits) <= allowed
