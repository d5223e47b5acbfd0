"""The linear-quadratic regulator of e⁺ = e − J·Δx, in closed form through the singular values of J.

With J = U·diag(s)·Vᵀ the Riccati equation splits into scalars: p = (q + √(q² + 4qr/s²))/2, gain
g = p·s/(r + p·s²), closed-loop factor r/(r + p·s²) in (0, 1). So V(e) = eᵀ·U·diag(p)·Uᵀ·e is a
Lyapunov function of the loop by construction, globally for an affine plant and without a solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.base import Controller, Plant, Regulation, iterate, jacobian, set_point


@dataclass(frozen=True)
class LQR(Controller):
    """Cost Σ q‖e‖² + r·‖J‖²·‖Δx‖²; the scaling by ‖J‖² makes r mean the same for every head."""

    q: float = 1.0
    r: float = 0.1
    steps: int = 200
    tolerance: float = 1e-9
    name: str = "lqr"

    def regulate(self, plant: Plant, target: Tensor, start: Tensor | None = None) -> Regulation:
        goal = set_point(plant, target)

        def move(x: Tensor, states: list[Tensor]) -> Tensor:
            """An MLP head is linearised anew at every step."""
            return self.gain(jacobian(plant, x)) @ (goal - states[-1])

        return iterate(self.name, plant, goal, start, move, self.steps, self.tolerance)

    def gain(self, slope: Tensor) -> Tensor:
        """Δx = gain · e.

        Args:
            slope: J = dC/dx, shape (n, d).
        """
        left, values, right = torch.linalg.svd(slope, full_matrices=False)
        weights = (
            self._riccati(values)
            * values
            / (self._effort(values) + self._riccati(values) * values**2)
        )
        return right.T @ torch.diag(weights) @ left.T

    def lyapunov_matrix(self, slope: Tensor) -> Tensor:
        """P of V(e) = eᵀPe, which falls by at least q‖e‖² a step along the loop.

        Args:
            slope: J = dC/dx, shape (n, d).
        """
        left, values, _ = torch.linalg.svd(slope, full_matrices=False)
        return left @ torch.diag(self._riccati(values)) @ left.T

    def _effort(self, values: Tensor) -> Tensor:
        return self.r * values.max() ** 2

    def _riccati(self, values: Tensor) -> Tensor:
        squares = (values**2).clamp_min(
            1e-12 * float(values.max()) ** 2
        )  # a dead direction costs, not crashes
        return (self.q + (self.q**2 + 4 * self.q * self._effort(values) / squares).sqrt()) / 2
