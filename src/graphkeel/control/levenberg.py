"""Levenberg–Marquardt: damped Gauss–Newton steps of least norm to C(x) = Y, several at once."""

from __future__ import annotations

import torch
from torch import Tensor

from graphkeel.control.base import Plant, jacobians

NAME = "levenberg-marquardt"  # what a regulation or anchors found this way say


def levenberg_marquardt(
    plant: Plant,
    targets: Tensor,
    start: Tensor,
    *,
    steps: int,
    damping: float,
    goal: float,
    most_damping: float = 1e9,
) -> tuple[Tensor, Tensor]:
    """Steps from each start towards its target; one that comes no nearer is taken back and damped.

    The damping of the first step is relative to the mean squared slope of a logit; a row is done
    at the goal for ‖C(x) − Y‖₂, and given up where no step helps. Returns the features (B, d),
    and what is left of Y − C(x), shape (B, n)."""
    x = start
    left = targets - plant(x).detach()
    factor = torch.full((len(x),), damping, dtype=torch.float64)
    for _ in range(steps):
        size = left.norm(dim=1)
        if bool(((size <= goal) | (factor > most_damping)).all()):
            break
        trial = x + _step(jacobians(plant, x), left, factor)
        trial_left = targets - plant(trial).detach()
        better = trial_left.norm(dim=1) < size
        x = torch.where(better.unsqueeze(1), trial, x)
        left = torch.where(better.unsqueeze(1), trial_left, left)
        factor = torch.where(better, (factor / 10).clamp_min(1e-15), factor * 4)
    return x, left


def _step(slopes: Tensor, left: Tensor, factor: Tensor) -> Tensor:
    """Jᵀ (J Jᵀ + λI)^-1 (Y − C(x)) for each row."""
    gram = slopes @ slopes.mT
    scale = gram.diagonal(dim1=1, dim2=2).mean(dim=1)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale)) * factor
    ridge = torch.diag_embed(scale.unsqueeze(1).expand_as(left))
    lever = torch.linalg.solve(gram + ridge, left)
    return (slopes.mT @ lever.unsqueeze(2)).squeeze(2)
