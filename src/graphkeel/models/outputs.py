"""The output of a model, made into one row of scores per node."""

from __future__ import annotations

import warnings
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor

from graphkeel.core.errors import KeelWarning, ModelError


class ReturnType(StrEnum):
    """The meaning of the model's output."""

    RAW = "raw"  # logits
    LOG_PROBS = "log_probs"  # log-softmax of the logits
    PROBS = "probs"  # softmax of the logits
    AUTO = "auto"  # one of the others, recognised by the first scores


def first_of(returned: Any) -> Any:
    """The scores among what a forward returned: of a tuple or a list the first entry."""
    return returned[0] if isinstance(returned, tuple | list) and returned else returned


def warn_of_others(returned: Any) -> None:
    """Say that only the first entry of a tuple counts."""
    if isinstance(returned, tuple | list) and len(returned) > 1:
        warnings.warn(
            f"the model returns {len(returned)} values; the first is taken for the scores. Hand "
            "over a function that picks another one if that is wrong.",
            KeelWarning,
            stacklevel=2,
        )


def recognised(scores: Tensor) -> ReturnType:
    """The meaning of scores, by their values.

    One column between 0 and 1 may be either a probability or a logit: refused.

    >>> recognised(torch.tensor([[0.5, 0.5], [0.9, 0.1]])).value
    'probs'
    >>> recognised(torch.tensor([[0.5, 1.5], [0.9, 0.1]])).value
    'raw'
    """
    if not scores.is_floating_point() or not bool(torch.isfinite(scores).all()):
        return ReturnType.RAW
    low = float(scores.min())
    high = float(scores.max())
    if scores.shape[1] == 1:
        if low >= 0.0 and high <= 1.0:
            raise ModelError(
                "the model returns one number per node, and all lie between 0 and 1",
                got=f"from {low:.3g} to {high:.3g}",
                fix="Say what they are: return_type='probs' for probabilities of class 1, 'raw' "
                "for logits.",
            )
        return ReturnType.RAW
    # how far a row of probabilities may be from summing to one
    tolerance = {torch.float64: 1e-6, torch.float32: 1e-4}.get(scores.dtype, 2e-2)
    exact = scores.double()
    if low >= 0.0 and _are_ones(exact.sum(dim=1), tolerance):
        return ReturnType.PROBS
    if high <= 0.0 and _are_ones(exact.exp().sum(dim=1), tolerance):
        return ReturnType.LOG_PROBS
    return ReturnType.RAW


def _are_ones(sums: Tensor, tolerance: float) -> bool:
    return bool(((sums - 1.0).abs() <= tolerance).all())


def two_columns(scores: Tensor, return_type: ReturnType) -> Tensor:
    """The scores of two classes (N, 2) from the one number (N, 1) of a binary model, which speaks
    for class 1. A logit z becomes (-z/2, z/2): the same odds, and both classes can be asked for."""
    if return_type is ReturnType.PROBS:
        return torch.cat([1.0 - scores, scores], dim=1)
    if return_type is ReturnType.LOG_PROBS:
        return torch.cat([torch.log1p(-scores.exp()), scores], dim=1)
    return torch.cat([-scores / 2, scores / 2], dim=1)
