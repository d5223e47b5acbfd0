"""Dead-beat control: jump to the feature that solves C(h) = Y and stay there.

The plant has no memory, so a constant controller is already stable; it is the control against which
every other controller has to be read. For an affine head the jump is the pseudo-inverse; for a
multilayer perceptron it is found by Levenberg–Marquardt steps, which reduce to the same
pseudo-inverse inside an activation cell."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.base import (
    Controller,
    LayeredPlant,
    Layers,
    Plant,
    Regulation,
    jacobians,
    regulation_at,
    set_point,
)

LEVENBERG = "levenberg-marquardt"  # what a regulation or anchors found this way say


@dataclass(frozen=True)
class SolveSettings:
    """The search for h with C(h) = Y on a head with hidden layers.

    Attributes:
        steps: of Levenberg–Marquardt, at most, for each slope.
        damping: of its first step.
        restarts: from random starts, each twice as far away as the one before.
        spread: standard deviation of the first random start.
        slopes: of LeakyReLU in ReLU's place, from the linear head to nearly the real one.
        tolerance: the residual, as a part of 1 + ‖Y‖, at which a solution counts as reached.
    """

    steps: int = 100
    damping: float = 1e-3
    restarts: int = 8
    spread: float = 0.1
    slopes: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
    tolerance: float = 1e-10

    def goal(self, target: Tensor) -> float:
        """‖C(h) − Y‖₂ at which h solves C(h) = Y.

        Args:
            target: Y, shape (n,).
        """
        return self.tolerance * (1.0 + float(target.norm()))


@dataclass(frozen=True)
class Deadbeat(Controller):
    """h* = the least-norm solution of C(h) = Y.

    On a head with hidden layers there is no closed form; what `levenberg_marquardt` finds there
    goes by that name in the regulation."""

    name: str = "deadbeat"

    def regulate(self, plant: Plant, target: Tensor) -> Regulation:
        name = self.name if len(plant.layers) == 1 else LEVENBERG
        return regulation_at(name, plant, target, solve_anchor(plant, target), steps=1)


def solve_anchor(
    plant: Plant,
    target: Tensor,
    *,
    seed: int = 0,
    settings: SolveSettings = SolveSettings(),
) -> Tensor:
    """Solve C(h) = Y in float64; the best point found when there is no solution.

    Args:
        plant: the head C, from d features to n logits.
        target: Y, shape (n,).
        seed: of everything random.
        settings: of the search, where there is no closed form.

    >>> from graphkeel.models.head import Head
    >>> doubling = Head(((2.0 * torch.eye(2).double(), torch.zeros(2).double()),), n_in=2, n_out=2)
    >>> solve_anchor(doubling, torch.tensor([1.0, 0.0]))
    tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    target = set_point(plant, target)
    x = torch.zeros(plant.n_in, dtype=torch.float64)
    if len(plant.layers) == 1:
        return _least_norm(plant, target, x)
    generator = torch.Generator().manual_seed(seed)
    best = x
    best_error = float("inf")
    for scale in (0.0, *(settings.spread * 2.0**k for k in range(settings.restarts))):
        first = x + scale * torch.randn(plant.n_in, generator=generator, dtype=torch.float64)
        found, error = _continued(plant, target, first, settings)
        if error < best_error:
            best = found
            best_error = error
        if error <= settings.goal(target):
            break
    return best


def _least_norm(plant: Plant, target: Tensor, x: Tensor) -> Tensor:
    weight, _ = plant.layers[0]
    inverse = torch.linalg.pinv(weight)
    for _ in range(3):  # the second and third pass remove what rounding left of the first
        x = x + inverse @ (target - plant(x))
    return x


def _continued(
    plant: Plant, target: Tensor, x: Tensor, settings: SolveSettings
) -> tuple[Tensor, float]:
    """Follow the solution from the linear head to the real one, as LeakyReLU's slope goes from one
    to zero.

    Started on the ReLU head directly, Newton steps stall where too many units are off; the leaky
    ones never are."""
    for slope in settings.slopes if plant.layers else ():
        x, _ = _stepped(_leaky(plant.layers, slope), target, x, settings)
    return _stepped(plant, target, x, settings)


def _stepped(
    plant: Plant, target: Tensor, x: Tensor, settings: SolveSettings
) -> tuple[Tensor, float]:
    found, left = levenberg_marquardt(
        plant,
        target.unsqueeze(0),
        x.unsqueeze(0),
        steps=settings.steps,
        damping=settings.damping,
        goal=settings.goal(target),
    )
    return found[0], float(left.norm())


def _leaky(layers: Layers, slope: float) -> LayeredPlant:
    """LeakyReLU in ReLU's place, written with ReLU alone: units t and −t behind each layer."""
    doubled = []
    for i, (weight, bias) in enumerate(layers):
        weight = weight if i == 0 else torch.cat([weight, -slope * weight], dim=1)
        if i + 1 < len(layers):
            weight, bias = torch.cat([weight, -weight]), torch.cat([bias, -bias])
        doubled.append((weight, bias))
    return LayeredPlant(tuple(doubled))


# ---- Levenberg–Marquardt: damped Gauss–Newton steps of least norm to C(x) = Y, several at once


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
