"""PID in its incremental form, decoupled through the plant's (pseudo-)inverse or its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.base import Controller, Plant, Regulation, iterate, jacobian, set_point


@dataclass(frozen=True)
class PID(Controller):
    """x ← x + M·[Kp·(e − e₋₁) + Ki·e + Kd·(e − 2e₋₁ + e₋₂)].

    `decoupling="inverse"` takes M = J⁺, for which Ki = 1 alone is dead-beat on an affine plant;
    `decoupling="gradient"` takes M = Jᵀ/‖J‖², a gradient step that is stable for Ki < 2.
    """

    kp: float = 0.2
    ki: float = 0.5
    kd: float = 0.0
    decoupling: str = "inverse"
    steps: int = 200
    tolerance: float = 1e-9
    name: str = "pid"

    def regulate(self, plant: Plant, target: Tensor, start: Tensor | None = None) -> Regulation:
        goal = set_point(plant, target)

        def move(x: Tensor, states: list[Tensor]) -> Tensor:
            before, last, error = (goal - y for y in [states[0], states[0], *states][-3:])
            change = self.kp * (error - last) + self.ki * error
            change = change + self.kd * (error - 2 * last + before)
            return self._spread(jacobian(plant, x)) @ change

        return iterate(self.name, plant, goal, start, move, self.steps, self.tolerance)

    def _spread(self, slope: Tensor) -> Tensor:
        if self.decoupling == "inverse":
            return torch.linalg.pinv(slope)
        norm = float(torch.linalg.matrix_norm(slope, 2))
        return slope.T / max(norm**2, 1e-300)
