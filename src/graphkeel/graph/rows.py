"""Rows of class scores as probabilities and their logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphkeel.graph.propagate.rowwise import fold

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


def expected_accuracy(
    posterior: NDArray[np.float32], answers: NDArray[np.int64] | None = None
) -> float:
    """Percent of nodes right by the posterior's (N, C) own account, with its own answers or others
    (N,)."""

    def sure(part: NDArray[np.float32], *others: NDArray[np.int64]) -> float:
        own = others[0] if others else part.argmax(axis=1)
        return float(np.take_along_axis(part, own[:, None], axis=1).sum(dtype=np.float64))

    total = fold(sure, posterior, *([] if answers is None else [answers]))
    return min(100.0, float(100.0 * total / len(posterior)))
