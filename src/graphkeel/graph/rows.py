"""Rows of class scores as probabilities and their logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float32]


def softmax(z: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(z)).softmax(dim=-1).numpy()


def log_softmax(z: Any) -> Any:
    """Logarithms of the softmax, none below that of 1e-9."""
    logs = torch.from_numpy(np.ascontiguousarray(z)).log_softmax(dim=-1)
    return logs.clamp_min_(math.log(1e-9)).numpy()


def log_rows(p: Array) -> Array:
    """Logarithms of rows that are made to sum to one."""
    floored = np.maximum(p, 1e-9)
    floored /= floored.sum(axis=-1, keepdims=True)
    return np.log(floored, out=floored)
