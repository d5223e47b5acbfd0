"""The pool: log p_v(c) = Σ_k w_k·e_k(v, c) + b_c + const, with weights ≥ 0.

Weights and offsets minimise the log-loss at labels that had no part in the evidence, plus the
squared distance from the prior: a convex problem with one minimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class PoolSettings:
    """Attributes:
    pull: τ, of the weights towards the prior; as many labels' worth of log-loss.
    offset_pull: τ_b, of the class offsets towards zero.
    tolerance: of the gradient, per label.
    """

    pull: float = 1.5
    offset_pull: float = 1.0
    tolerance: float = 1e-5


def fit_pool(
    evidence: Doubles,
    classes: NDArray[np.int64],
    prior: Doubles,
    settings: PoolSettings = PoolSettings(),
    label_weights: Doubles | None = None,
) -> tuple[Doubles, Doubles]:
    """Weights (K,) and offsets (C,) of evidence (K, n, C) at n labels."""
    n_sources, n_labels, n_classes = evidence.shape
    stacked = np.ascontiguousarray(np.moveaxis(evidence, 0, 2).reshape(-1, n_sources))
    own = np.arange(n_labels) * n_classes + classes
    each = np.ones(n_labels) if label_weights is None else label_weights
    scale = 1.0 / max(1, n_labels)

    def loss(point: Doubles) -> tuple[float, Doubles]:
        weights, offsets = point[:n_sources], point[n_sources:]
        z = (stacked @ weights).reshape(n_labels, n_classes) + offsets
        z -= z.max(axis=1, keepdims=True)
        odds = np.exp(z)
        totals = odds.sum(axis=1)
        away = weights - prior
        value = (each * (np.log(totals) - z.ravel()[own])).sum()
        value += settings.pull * away @ away + settings.offset_pull * offsets @ offsets
        slope = odds * (each / totals)[:, None]
        slope.ravel()[own] -= each
        down = np.concatenate(
            [
                stacked.T @ slope.ravel() + 2 * settings.pull * away,
                slope.sum(axis=0) + 2 * settings.offset_pull * offsets,
            ]
        )
        return scale * value, scale * down

    start = np.concatenate([prior, np.zeros(n_classes)])
    bounds = [(0.0, None)] * n_sources + [(None, None)] * n_classes
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"gtol": settings.tolerance, "ftol": 0.0, "maxiter": 500, "maxcor": 20},
    )
    return found.x[:n_sources], found.x[n_sources:]
