"""The theorem on steering linear models (docs/mathematics.md), in numbers that tests compare."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphkeel.models.linear_map import LinearMap
from graphkeel.reconstruct.steer import SteerSettings, _Loss, linear_units


@dataclass(frozen=True)
class LinearFacts:
    """V of a linear model, in the variable Δ = (X' - X)/s, Frobenius norm.

    Attributes:
        propagation: a bound of |S|₂; 1 for the symmetric normalisation.
        smoothness: L, a Lipschitz constant of the gradient of V.
        ridge: λ, by which V is strongly convex.
        step: η = 2/(L + λ).
        factor: (L - λ)/(L + λ) < 1, by which Δ ↦ Δ - η∇V(Δ) contracts.
        change: |Δ|.
        gradient: |∇V(Δ)|.
        bound: |∇V(Δ)|/λ, no less than the distance to the one minimum.
        value: V(Δ).
    """

    propagation: float
    smoothness: float
    ridge: float
    step: float
    factor: float
    change: float
    gradient: float
    bound: float
    value: float


def linear_facts(
    linear: LinearMap,
    x: Tensor,
    features: Tensor,
    wanted: Tensor,
    posterior: Tensor,
    settings: SteerSettings | None = None,
) -> LinearFacts:
    """Contraction factor and distance to the minimum of V, for any features, in double precision.

    Args:
        linear: the model.
        x: the features before, shape (N, d).
        features: those that ship, whoever found them, shape (N, d).
        wanted, posterior, settings: as for `steer`.
    """
    chosen = settings or SteerSettings()
    units = linear_units(linear, x, chosen)
    unit, length = units["unit"], units["length"]
    matrix = linear.matrix.astype(np.float64)
    weight = linear.weight.double()
    change = (features.double() - x.double()) / length
    carried = _carried(matrix, features.double() @ weight.T, linear.hops)
    logits = (carried + linear.bias.double()) / unit
    loss = _Loss(wanted, posterior.double().gather(1, wanted[:, None]), chosen.margin)
    back = _carried(matrix.T.tocsr(), loss.gradient(logits), linear.hops)
    gradient = length / unit * back @ weight + chosen.ridge * change
    propagation = propagation_bound(matrix)
    centred = weight - weight.mean(dim=0)  # only differences of logits count
    gain = propagation**linear.hops * float(torch.linalg.matrix_norm(centred, 2)) * length / unit
    smoothness = len(weight) * gain**2 + chosen.ridge
    return LinearFacts(
        propagation=propagation,
        smoothness=smoothness,
        ridge=chosen.ridge,
        step=2 / (smoothness + chosen.ridge),
        factor=(smoothness - chosen.ridge) / (smoothness + chosen.ridge),
        change=float(change.norm()),
        gradient=float(gradient.norm()),
        bound=float(gradient.norm()) / chosen.ridge,
        value=loss.value(logits) + 0.5 * chosen.ridge * float(change.square().sum()),
    )


def propagation_bound(matrix: sparse.csr_matrix) -> float:
    """A bound of |S|₂ by Schur's test: √(max Sp/p · max Sᵀp/p) for S >= 0 and any p > 0.

    p = √degree, read off the loops, gives 1 (up to rounding) for the symmetric normalisation."""
    own = matrix.diagonal()
    weights = np.where(own > 0, own, 1.0) ** -0.5
    sizes = abs(matrix)
    rows = float((sizes @ weights / weights).max())
    columns = float((sizes.T @ weights / weights).max())
    return math.sqrt(rows * columns)


def _carried(matrix: sparse.csr_matrix, values: Tensor, hops: int) -> Tensor:
    found = values.numpy()
    for _ in range(hops):
        found = matrix @ found
    return torch.from_numpy(found)
