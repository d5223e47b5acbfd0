"""`diffuse`: features spread over the graph, with a Lyapunov function that proves where it ends."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.graph.propagate.propagator import Propagator


@dataclass(frozen=True)
class Diffusion:
    """X_t and what its Lyapunov function did on the way.

    Attributes:
        features: the last X_t.
        lyapunov: W(X_t) = ‖T(X_t) − X_t‖_F for each step, T(X) = αŜX + (1−α)X_0. Since ‖αŜ‖ ≤ α <
            1, W shrinks by α at least in every step, and ‖X_t − X_∞‖ ≤ W(X_t) / (1−α): W is zero at
            the fixed point alone.
        distance_bound: the bound on ‖X_t − X_∞‖_F at which it stopped.
        contraction: the largest W(X_t+1) / W(X_t) seen; at most α, up to rounding.
    """

    features: Tensor
    lyapunov: tuple[float, ...]
    distance_bound: float
    contraction: float


def diffuse(
    start: Tensor, propagator: Propagator, alpha: float, tolerance: float = 1e-3
) -> Diffusion:
    """X_{t+1} = αŜX_t + (1−α)X_0 until X_t is proved to be within tolerance·‖X_0‖ of the fixed
    point.

    The number of steps is not a setting: W's contraction bounds the distance to the limit, and that
    bound stops it.

    Args:
        start: X_0, shape (N, d).
        propagator: multiplies by Ŝ.
        alpha: weight of the neighbourhood, in (0, 1).
        tolerance: relative distance to the fixed point at which it stops.

    >>> import torch
    >>> pair = Propagator(torch.tensor([[0], [1]]), n_nodes=2)
    >>> spread = diffuse(torch.tensor([[1.0], [0.0]]), pair, alpha=0.5)
    >>> spread.features.flatten(), spread.contraction <= 0.5
    (tensor([0.7500, 0.2500]), True)
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigError(
            "alpha must lie strictly between 0 and 1", got=alpha, fix="0.9 is a good start."
        )
    source = (1.0 - alpha) * start
    goal = tolerance * float(start.norm()) * (1.0 - alpha)
    current = start
    values = []
    for _ in range(_enough_steps(alpha, tolerance)):
        # in place: these are the largest arrays here
        following = propagator(current).mul_(alpha).add_(source)
        values.append(float((following - current).norm()))
        if values[-1] <= goal:
            break
        current = following
    ratios = [after / before for before, after in itertools.pairwise(values) if before > 0]
    return Diffusion(current, tuple(values), values[-1] / (1.0 - alpha), max(ratios, default=0.0))


def _enough_steps(alpha: float, tolerance: float) -> int:
    """W(X_0) ≤ 2α‖X_0‖ and contracts by α, so this many steps reach the goal whatever the graph."""
    return 2 + math.ceil(math.log(tolerance * (1.0 - alpha) / 2.0) / math.log(alpha))
