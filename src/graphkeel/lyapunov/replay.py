"""A counterexample counts only if the shipped model shows it: f and C run as they are, not their
collapse."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.base import Plant
from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.config import ResolvedConfig
from graphkeel.lyapunov.domain import Domain
from graphkeel.lyapunov.function import LyapunovWeights


@dataclass(frozen=True)
class ShippedLoop:
    """C, f, V and D of one class."""

    plant: Plant
    control: NeuralWeights
    function: LyapunovWeights
    domain: Domain

    @torch.no_grad()
    def violates(
        self, condition: str, state: Tensor, config: ResolvedConfig, tolerance: float
    ) -> bool:
        """Whether state y breaks the condition, up to rounding, on the uncollapsed closed loop."""
        following = self.plant(self.control(state.double()))
        value, after = float(self.function(state)), float(self.function(following))
        distance = float((state - self.control.equilibrium).abs().max())
        slack = tolerance * (1.0 + abs(value) + abs(after) + distance)
        if condition == "positivity":
            return value - config.positivity * distance <= slack
        if condition == "decrease":
            return after - config.rho * value >= -slack
        low, high = torch.from_numpy(self.domain.lower), torch.from_numpy(self.domain.upper)
        return bool(((following < low + slack) | (following > high - slack)).any())
