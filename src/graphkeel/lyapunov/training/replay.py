"""A counterexample counts only if the shipped model shows it: f and C run as they are, not their
collapse."""

from __future__ import annotations

import torch
from torch import Tensor

from graphkeel.control.base import Plant
from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.config import ResolvedConfig
from graphkeel.lyapunov.domain import Domain
from graphkeel.lyapunov.function import LyapunovWeights

TOLERANCE = 1e-6  # relative: float32 weights, float64 evaluation


@torch.no_grad()
def violates(
    condition: str,
    state: Tensor,
    plant: Plant,
    control: NeuralWeights,
    function: LyapunovWeights,
    domain: Domain,
    config: ResolvedConfig,
) -> bool:
    """Whether state y breaks the condition, up to rounding, on the uncollapsed closed loop."""
    following = plant(control(state.double()))
    value, after = float(function(state)), float(function(following))
    distance = float((state - control.equilibrium).abs().max())
    slack = TOLERANCE * (1.0 + abs(value) + abs(after) + distance)
    if condition == "positivity":
        return value - config.positivity * distance <= slack
    if condition == "decrease":
        return after - config.rho * value >= -slack
    low, high = torch.from_numpy(domain.lower), torch.from_numpy(domain.upper)
    return bool(((following < low + slack) | (following > high - slack)).any())
