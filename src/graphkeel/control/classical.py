"""The classical controllers: PID, the linear-quadratic regulator, model-free adaptive control."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.base import (
    Controller,
    Plant,
    Regulation,
    jacobian,
    regulation_at,
    set_point,
)
from graphkeel.core.names import check_name

_Law = Callable[[Tensor, list[Tensor]], Tensor]  # Δx by the feature and the states so far


@dataclass(frozen=True, kw_only=True)
class _Stepwise(Controller):
    """x ← x + Δx until ‖C(x) − Y‖₂ is within the tolerance or no number any more."""

    steps: int = 200
    tolerance: float = 1e-9

    def regulate(self, plant: Plant, target: Tensor) -> Regulation:
        goal, x = set_point(plant, target), torch.zeros(plant.n_in, dtype=torch.float64)
        move = self._law(plant, goal)
        states = [plant(x)]
        for _ in range(self.steps):
            error = float((goal - states[-1]).norm())
            if error <= self.tolerance or not math.isfinite(error):
                break
            x = x + move(x, states)
            states.append(plant(x))
        return regulation_at(self.name, plant, goal, x, len(states) - 1)

    def _law(self, plant: Plant, goal: Tensor) -> _Law:
        raise NotImplementedError


@dataclass(frozen=True)
class PID(_Stepwise):
    """PID in its incremental form: x ← x + J⁺·[Kp·(e − e₋₁) + Ki·e + Kd·(e − 2e₋₁ + e₋₂)].

    Ki = 1 alone is dead-beat on an affine plant.
    """

    kp: float = 0.2
    ki: float = 0.5
    kd: float = 0.0
    name: str = "pid"

    def _law(self, plant: Plant, goal: Tensor) -> _Law:
        def move(x: Tensor, states: list[Tensor]) -> Tensor:
            before, last, error = (goal - y for y in [states[0], states[0], *states][-3:])
            change = self.kp * (error - last) + self.ki * error
            change = change + self.kd * (error - 2 * last + before)
            return torch.linalg.pinv(jacobian(plant, x)) @ change

        return move


@dataclass(frozen=True)
class LQR(_Stepwise):
    """The linear-quadratic regulator of e⁺ = e − J·Δx, by the singular values of J.

    Cost Σ q‖e‖² + r·‖J‖²·‖Δx‖²; the scaling by ‖J‖² makes r mean the same for every head. With
    J = U·diag(s)·Vᵀ the Riccati equation splits into scalars: p = (q + √(q² + 4qr/s²))/2, gain
    g = p·s/(r + p·s²), closed-loop factor r/(r + p·s²) in (0, 1). So V(e) = eᵀ·U·diag(p)·Uᵀ·e is a
    Lyapunov function of the loop by construction, globally for an affine plant and without a
    solver."""

    q: float = 1.0
    r: float = 0.1
    name: str = "lqr"

    def _law(self, plant: Plant, goal: Tensor) -> _Law:
        """An MLP head is linearised anew at every step."""
        return lambda x, states: self.gain(jacobian(plant, x)) @ (goal - states[-1])

    def gain(self, slope: Tensor) -> Tensor:
        """Δx = gain · e.

        Args:
            slope: J = dC/dx, shape (n, d).
        """
        left, values, right = torch.linalg.svd(slope, full_matrices=False)
        cost = self._riccati(values)
        weights = cost * values / (self._effort(values) + cost * values**2)
        return right.T @ torch.diag(weights) @ left.T

    def _effort(self, values: Tensor) -> Tensor:
        return self.r * values.max() ** 2

    def _riccati(self, values: Tensor) -> Tensor:
        # a dead direction costs, not crashes
        squares = (values**2).clamp_min(1e-12 * float(values.max()) ** 2)
        return (self.q + (self.q**2 + 4 * self.q * self._effort(values) / squares).sqrt()) / 2


@dataclass(frozen=True)
class MFAC(_Stepwise):
    """Model-free adaptive control (CFDL-MFAC; Hou and Jin, 2011): a running estimate of the
    Jacobian.

    Φ̂ ← Φ̂ + η(Δy − Φ̂Δx)Δxᵀ/(μ + ‖Δx‖²) and x ← x + ρ·Φ̂ᵀ(Y − y)/(λ + ‖Φ̂‖²). The published theory
    wants as many inputs as outputs; here Φ is n × d, so the reset looks at ‖Φ̂‖ alone. What decides
    is the first Φ̂: a blind one converges badly or not at all, one finite-difference probe (d
    evaluations) mends it."""

    initial: str = "probed"  # or "blind": Φ̂ = ½·I, as one would start without knowing the plant
    eta: float = 1.0
    mu: float = 1.0
    rho: float = 1.0
    damping: float = 1.0  # λ
    name: str = "mfac"

    def __post_init__(self) -> None:
        check_name("MFAC's initial Jacobian", self.initial, ("probed", "blind"))

    def _law(self, plant: Plant, goal: Tensor) -> _Law:
        first = estimate = self._first_estimate(plant)
        last = torch.zeros(plant.n_in, dtype=torch.float64)

        def move(_: Tensor, states: list[Tensor]) -> Tensor:
            nonlocal estimate, last
            if len(states) > 1:
                estimate = self._corrected(estimate, last, states[-1] - states[-2], first)
            error = goal - states[-1]
            last = self.rho * estimate.T @ error / (self.damping + _norm(estimate) ** 2)
            return last

        return move

    def _corrected(self, estimate: Tensor, move: Tensor, change: Tensor, first: Tensor) -> Tensor:
        surprise = change - estimate @ move
        estimate = estimate + self.eta * torch.outer(surprise, move) / (self.mu + move @ move)
        size = _norm(estimate)
        lost = not 1e-5 < size < 1e6 or float(move.norm()) < 1e-12
        return first if lost else estimate

    def _first_estimate(self, plant: Plant, chunk: int = 512) -> Tensor:
        if self.initial == "blind":
            return 0.5 * torch.eye(plant.n_out, plant.n_in, dtype=torch.float64)
        width = 1e-3
        nudges = width * torch.eye(plant.n_in, dtype=torch.float64)
        with torch.no_grad():
            answers = torch.cat([plant(part) for part in nudges.split(chunk)])
            return ((answers - plant(torch.zeros_like(nudges[0]))) / width).T


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))
