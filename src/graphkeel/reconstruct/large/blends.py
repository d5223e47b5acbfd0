"""Class probabilities and blends of anchors for millions of nodes: one pass over memory each, where
a chain of tensor operations takes a pass an operation.

No row depends on another, so some nodes get, bit for bit, what they get among all."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.graph.propagate.row_blocks import on_all_cores
from graphkeel.reconstruct.candidates.evidence import FLOOR

_REST = 1e-6  # evidence for every class where no label is near
Array = NDArray[np.float32]


def write_shares(near: Tensor, out: Tensor) -> None:
    """Evidence as probabilities, none of which rules a class out.

    Args:
        near: evidence for the classes, float64, shape (k, c).
        out: float32, shape (k, c); written.
    """
    evidence = near.numpy()
    found = out.numpy()

    def piece(rows: slice) -> None:
        _shares(evidence[rows], np.float32(_REST), np.float32(FLOOR), found[rows])

    on_all_cores(piece, np.arange(len(found) + 1) * found.shape[1])


def beliefs_of(logits: Tensor) -> Tensor:
    """Class probabilities of logits, none of which rules a class out, float32, shape (k, c).

    Args:
        logits: float32, shape (k, c).
    """
    given = logits.numpy()
    found = np.empty(logits.shape, dtype=np.float32)

    def piece(rows: slice) -> None:
        _beliefs(given[rows], np.float32(FLOOR), found[rows])

    on_all_cores(piece, np.arange(len(found) + 1) * logits.shape[1])
    return torch.from_numpy(found)


def posterior_of(shares: Tensor, beliefs: Tensor | None, known: Tensor) -> Tensor:
    """The probabilities of the classes, float32, shape (k, c): what labels nearby say, joined with
    what the model says by the mean of their logarithms; a known class is certain.

    Args:
        shares: what labels nearby say, float32, shape (k, c).
        beliefs: what the model says, float32, shape (k, c); None: it is not asked.
        known: classes, int64, shape (k,); negative where none is known.
    """
    found = np.empty(shares.shape, dtype=np.float32)
    evidence = shares.numpy()
    others = evidence if beliefs is None else beliefs.numpy()
    classes = known.numpy()

    def piece(rows: slice) -> None:
        _posterior(evidence[rows], others[rows], classes[rows], found[rows])

    on_all_cores(piece, np.arange(len(found) + 1) * found.shape[1])
    return torch.from_numpy(found)


def write_blend(weights: Tensor, anchors: Tensor, out: Tensor) -> None:
    """out = weights @ anchors, for few anchors.

    Args:
        weights: float32, shape (k, c).
        anchors: float32, shape (c, d).
        out: float32, shape (k, d); written.
    """
    given = weights.contiguous().numpy()
    targets = anchors.contiguous().numpy()
    found = out.numpy()

    def piece(rows: slice) -> None:
        _blend(given[rows], targets, found[rows])

    on_all_cores(piece, np.arange(len(given) + 1) * targets.shape[1])


@njit(cache=True, nogil=True)
def _shares(
    near: NDArray[np.float64], rest: Any, floor: Any, out: Array
) -> None:  # pragma: no cover - compiled
    for i in range(near.shape[0]):
        total = np.float32(0.0)
        for c in range(near.shape[1]):
            out[i, c] = max(np.float32(near[i, c]), np.float32(0.0)) + rest
            total += out[i, c]
        for c in range(near.shape[1]):
            out[i, c] = max(out[i, c] / total, floor)


@njit(cache=True, nogil=True)
def _beliefs(logits: Array, floor: Any, out: Array) -> None:  # pragma: no cover - compiled
    for i in range(logits.shape[0]):
        largest = logits[i].max()
        total = np.float32(0.0)
        for c in range(logits.shape[1]):
            out[i, c] = np.exp(logits[i, c] - largest)
            total += out[i, c]
        for c in range(logits.shape[1]):
            out[i, c] = max(out[i, c] / total, floor)


@njit(cache=True, nogil=True)
def _posterior(
    shares: Array, others: Array, known: NDArray[np.int64], out: Array
) -> None:  # pragma: no cover - compiled
    """The square root of a share times itself is that share: `others` may be the shares."""
    for i in range(shares.shape[0]):
        total = np.float32(0.0)
        for c in range(shares.shape[1]):
            out[i, c] = np.sqrt(shares[i, c] * others[i, c])
            total += out[i, c]
        for c in range(shares.shape[1]):
            out[i, c] /= total
        if known[i] >= 0:
            out[i, :] = 0.0
            out[i, known[i]] = 1.0


@njit(cache=True, nogil=True)
def _blend(weights: Array, anchors: Array, out: Array) -> None:  # pragma: no cover - compiled
    for i in range(weights.shape[0]):
        for c in range(anchors.shape[1]):
            out[i, c] = weights[i, 0] * anchors[0, c]
        for k in range(1, anchors.shape[0]):
            weight = weights[i, k]
            for c in range(anchors.shape[1]):
                out[i, c] += weight * anchors[k, c]
