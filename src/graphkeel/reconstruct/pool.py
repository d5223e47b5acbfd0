"""The pool: log p_v(c) = Σ_k w_k·e_k(v, c) + b_c + const, with weights ≥ 0.

Weights and offsets minimise the log-loss at labels that had no part in the evidence, plus τ times
the mean square by which they move the scores of all nodes away from those of the prior (the g-prior
of Bayesian regression): a convex problem. What is pulled is the answer, not the weights: weight may
go from one source to another that says the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class PoolSettings:
    """Attributes:
    pull: τ where many labels judge; in labels: what it takes to move all scores by one.
    few: labels at which τ is twice that; it grows as 1 + few/n, since the fewer labels judge, the
        less of what they seem to say of the sources is so.
    small: mean square of a source's scores below which τ for the weights grows as it shrinks: where
        all sources are unsure, scores would be cheap to move, and few labels could turn them round.
    sample: nodes on which the mean over all of them is taken.
    tolerance: of the gradient, per label.
    """

    pull: float = 0.5
    few: float = 600.0
    small: float = 4.0
    sample: int = 2000
    tolerance: float = 1e-5


@dataclass(frozen=True, eq=False)
class Judged:
    """Evidence at judging labels.

    Attributes:
        evidence: from which each label was left out, shape (K, n, C).
        classes: the labels, shape (n,).
        prior: w0, shape (K,).
        products: as `gram` gives them, shape (K, K).
        parts: of the labels, in which weights are cross-fitted, shape (n,).
    """

    evidence: Doubles
    classes: NDArray[np.int64]
    prior: Doubles
    products: Doubles
    parts: NDArray[np.int64]

    def chosen(self, kept: NDArray[np.bool_]) -> Judged:
        """Some of the labels."""
        return replace(
            self,
            evidence=self.evidence[:, kept],
            classes=self.classes[kept],
            parts=self.parts[kept],
        )

    def sources(self, places: list[int]) -> Judged:
        """Some of the sources."""
        products = self.products[np.ix_(places, places)]
        return replace(
            self, evidence=self.evidence[places], prior=self.prior[places], products=products
        )


def held_out(judged: Judged, settings: PoolSettings) -> Doubles:
    """Scores of each label with weights that the other parts chose, shape (n, C)."""
    found = np.zeros(judged.evidence.shape[1:])
    for part in np.unique(judged.parts):
        here = judged.parts == part
        weights, offsets = fit_pool(judged.chosen(~here), settings)
        found[here] = np.tensordot(weights, judged.evidence[:, here], axes=1) + offsets
    return found


def gram(evidence: Doubles) -> Doubles:
    """Mean products of sources (K, n, C) at n nodes, each node's mean over classes taken out."""
    centred = evidence - evidence.mean(axis=2, keepdims=True)
    flat = centred.reshape(len(evidence), evidence.shape[1] * evidence.shape[2])
    products: Doubles = flat @ flat.T / max(1, evidence.shape[1])
    products[np.diag_indices_from(products)] += 1e-3
    return products


def fit_pool(judged: Judged, settings: PoolSettings) -> tuple[Doubles, Doubles]:
    """Weights (K,) and offsets (C,)."""
    prior = judged.prior
    n_sources, n_labels, n_classes = judged.evidence.shape
    rows = np.moveaxis(judged.evidence, 0, 2)
    stacked = np.ascontiguousarray(rows.reshape(n_labels * n_classes, n_sources))
    own = np.arange(n_labels) * n_classes + judged.classes
    scale = 1.0 / max(1, n_labels)
    pull = settings.pull * (1.0 + settings.few * scale)
    size = judged.products.diagonal().mean() if n_sources else settings.small
    products = judged.products * max(1.0, settings.small / size)

    def loss(point: Doubles) -> tuple[float, Doubles]:
        weights, offsets = point[:n_sources], point[n_sources:]
        z = (stacked @ weights).reshape(n_labels, n_classes) + offsets
        z -= z.max(axis=1, keepdims=True)
        odds = np.exp(z)
        totals = odds.sum(axis=1)
        away = weights - prior
        value = (np.log(totals) - z.ravel()[own]).sum()
        moved = products @ away
        value += pull * (away @ moved + offsets @ offsets)
        slope = odds / totals[:, None]
        slope.ravel()[own] -= 1.0
        down = np.concatenate(
            [
                stacked.T @ slope.ravel() + 2 * pull * moved,
                slope.sum(axis=0) + 2 * pull * offsets,
            ]
        )
        return scale * value, scale * down

    start = np.concatenate([prior, np.zeros(n_classes)])
    # A class that no label has seen keeps its offset: labels may have been asked for elsewhere.
    seen = np.bincount(judged.classes, minlength=n_classes) > 0
    bounds = [(0.0, None)] * n_sources + [(None, None) if c else (0.0, 0.0) for c in seen]
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"gtol": settings.tolerance, "ftol": 0.0, "maxiter": 500, "maxcor": 20},
    )
    return found.x[:n_sources], found.x[n_sources:]
