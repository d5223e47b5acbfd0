"""Model-free adaptive control (CFDL-MFAC; Hou and Jin, 2011): no model, a running estimate of the
Jacobian.

Data model Δy = Φ·Δx, with Φ̂ corrected after every step and the control taken along Φ̂ᵀ. The
published theory wants as many inputs as outputs; here Φ is n × d, so the reset looks at ‖Φ̂‖ alone.
What decides is the first Φ̂: a blind one converges badly or not at all, one finite-difference probe
(d evaluations) mends it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.base import Controller, Plant, Regulation, iterate, origin, set_point
from graphkeel.core.errors import ConfigError


@dataclass(frozen=True)
class MFAC(Controller):
    """Φ̂ ← Φ̂ + η(Δy − Φ̂Δx)Δxᵀ/(μ + ‖Δx‖²) and x ← x + ρ·Φ̂ᵀ(Y − y)/(λ + ‖Φ̂‖²)."""

    initial: str = "probed"  # or "blind": Φ̂ = ½·I, as one would start without knowing the plant
    eta: float = 1.0
    mu: float = 1.0
    rho: float = 1.0
    damping: float = 1.0  # λ
    steps: int = 200
    tolerance: float = 1e-9
    name: str = "mfac"

    def __post_init__(self) -> None:
        if self.initial not in ("probed", "blind"):
            raise ConfigError(
                "MFAC's initial Jacobian must be 'probed' or 'blind'", got=repr(self.initial)
            )

    def regulate(self, plant: Plant, target: Tensor, start: Tensor | None = None) -> Regulation:
        goal = set_point(plant, target)
        first = estimate = self._first_estimate(plant, origin(plant, start))
        last = torch.zeros(plant.n_in, dtype=torch.float64)

        def move(_: Tensor, states: list[Tensor]) -> Tensor:
            nonlocal estimate, last
            if len(states) > 1:
                estimate = self._corrected(estimate, last, states[-1] - states[-2], first)
            error = goal - states[-1]
            last = self.rho * estimate.T @ error / (self.damping + _norm(estimate) ** 2)
            return last

        return iterate(self.name, plant, goal, start, move, self.steps, self.tolerance)

    def _corrected(self, estimate: Tensor, move: Tensor, change: Tensor, first: Tensor) -> Tensor:
        surprise = change - estimate @ move
        estimate = estimate + self.eta * torch.outer(surprise, move) / (self.mu + move @ move)
        size = _norm(estimate)
        lost = not 1e-5 < size < 1e6 or float(move.norm()) < 1e-12
        return first if lost else estimate

    def _first_estimate(self, plant: Plant, x: Tensor, chunk: int = 512) -> Tensor:
        if self.initial == "blind":
            return 0.5 * torch.eye(plant.n_out, plant.n_in, dtype=torch.float64)
        width = 1e-3
        nudges = width * torch.eye(plant.n_in, dtype=torch.float64)
        with torch.no_grad():
            answers = torch.cat([plant(x + part) for part in nudges.split(chunk)])
            return ((answers - plant(x)) / width).T


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))
