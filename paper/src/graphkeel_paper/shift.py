"""How far two samples are apart: the central moment discrepancy, and the maximum mean one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def cmd(a: Array, b: Array, *, orders: int = 5) -> float:
    """Central moment discrepancy of two samples of shape (n, d): distance of the means plus that of
    the central moments 2..orders."""
    spread = np.maximum(np.maximum(a.max(0), b.max(0)) - np.minimum(a.min(0), b.min(0)), 1e-12)
    a = a / spread
    b = b / spread
    total = float(np.linalg.norm(a.mean(0) - b.mean(0)))
    ca = a - a.mean(0)
    cb = b - b.mean(0)
    for k in range(2, orders + 1):
        total += float(np.linalg.norm((ca**k).mean(0) - (cb**k).mean(0)))
    return total


def mmd(a: Array, b: Array, rng: np.random.Generator) -> float:
    """Unbiased squared MMD of two samples of shape (n, d), with an RBF kernel at the median
    distance; at most 2000 rows a side are used."""
    a, b = _subsample(a, rng), _subsample(b, rng)
    both = np.concatenate([a, b])
    norms = (both**2).sum(1)
    squared = np.maximum(norms[:, None] + norms[None] - 2 * both @ both.T, 0.0)
    kernel = np.exp(-squared / max(float(np.median(squared)), 1e-12))
    n = len(a)
    m = len(b)
    within_a = (kernel[:n, :n].sum() - n) / max(n * (n - 1), 1)
    within_b = (kernel[n:, n:].sum() - m) / max(m * (m - 1), 1)
    return float(within_a + within_b - 2 * kernel[:n, n:].mean())


def _subsample(rows: Array, rng: np.random.Generator, most: int = 2000) -> Array:
    return rows if len(rows) <= most else rows[rng.choice(len(rows), most, replace=False)]
