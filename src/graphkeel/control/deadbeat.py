"""Dead-beat control: jump to the feature that solves C(h) = Y and stay there.

The plant has no memory, so a constant controller is already stable; it is the control against which every
other controller has to be read. For an affine head the jump is the pseudo-inverse; for a multilayer
perceptron it is found by Levenberg–Marquardt steps, which reduce to the same pseudo-inverse inside an
activation cell.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphkeel.control.base import Plant, Regulation, jacobian, origin, settle

STEPS = 300
RESTARTS = 8
GOOD = 1e-10  # relative residual at which a solution counts as reached in float64


class Deadbeat:
    """h* = the least-norm solution of C(h) = Y (affine head), or the nearest one found (MLP head)."""

    name = "deadbeat"

    def regulate(self, plant: Plant, target: Tensor, start: Tensor | None = None) -> Regulation:
        x = origin(plant, start)
        first = plant(x)
        x = solve_anchor(plant, target, start)
        return settle(self.name, plant, target, x, [first, plant(x)])


def solve_anchor(plant: Plant, target: Tensor, start: Tensor | None = None, *, seed: int = 0) -> Tensor:
    """Solve C(h) = Y in float64; the best point found when there is no solution."""
    target = target.double()
    if len(plant.layers) == 1:
        return _least_norm(plant, target, origin(plant, start))
    generator = torch.Generator().manual_seed(seed)
    starts = [origin(plant, start)]
    starts += [torch.randn(plant.n_in, generator=generator, dtype=torch.float64) * s for s in _scales()]
    best, best_error = starts[0], float("inf")
    for x in starts:
        x, error = _levenberg(plant, target, x)
        if error < best_error:
            best, best_error = x, error
        if error <= GOOD * (1.0 + float(target.norm())):
            break
    return best


def _scales() -> list[float]:
    return [0.1 * 2.0**k for k in range(RESTARTS)]


def _least_norm(plant: Plant, target: Tensor, x: Tensor) -> Tensor:
    weight, _ = plant.layers[0]
    inverse = torch.linalg.pinv(weight)
    for _ in range(3):  # the second and third pass remove what rounding left of the first
        x = x + inverse @ (target - plant(x))
    return x


def _levenberg(plant: Plant, target: Tensor, x: Tensor) -> tuple[Tensor, float]:
    """Damped Gauss–Newton steps of least norm; the damping grows when a step into another cell fails."""
    damping, error = 1e-3, target - plant(x).detach()
    goal = GOOD * (1.0 + float(target.norm()))
    for _ in range(STEPS):
        if float(error.norm()) <= goal or damping > 1e12:
            break
        slope = jacobian(plant, x)
        gram = slope @ slope.T
        scale = float(gram.diagonal().mean()) or 1.0
        step = slope.T @ torch.linalg.solve(gram + damping * scale * torch.eye(len(error)).double(), error)
        trial = target - plant(x + step).detach()
        if float(trial.norm()) < float(error.norm()):
            x, error, damping = x + step, trial, max(damping / 10, 1e-15)
        else:
            damping *= 4
    return x, float(error.norm())
