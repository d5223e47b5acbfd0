"""The state space: the domain D, a box that holds the logits of every node and has the equilibrium
well inside, and the states of training: logits, samples of the domain, and counterexamples."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.lyapunov.config import FitSettings
from graphkeel.verify.problem import Array


def shared_box(
    logits: Array, equilibria: Array, enlarge: float = 0.1, margin: float = 0.25, grid: int = 64
) -> tuple[Array, Array]:
    """D = [low, high] for all classes, so that a state of D is a state of each class's loop, from
    the logits of all nodes, shape (nodes, n), and Y of each class, shape (classes, n).

    The logits' own box is enlarged by a share of its width on each side, and further where Y is
    nearer to a face than `margin` of it: at a corner Y would have no neighbourhood. Faces lie on
    multiples of 1/grid, so that they read well and print without loss."""
    logits, equilibria = np.asarray(logits, np.float64), np.asarray(equilibria, np.float64)
    if logits.ndim != 2 or not len(logits):
        raise DataError(
            "the domain needs the logits of at least one node", got=f"shape {logits.shape}"
        )
    if not np.isfinite(logits).all():
        raise DataError(
            "the domain needs finite logits", got=f"{int((~np.isfinite(logits)).sum())} are not"
        )
    first, last = equilibria.min(axis=0), equilibria.max(axis=0)
    low = np.minimum(logits.min(axis=0), first - 0.5)  # a constant logit still spans a box
    high = np.maximum(logits.max(axis=0), last + 0.5)
    more = enlarge * (high - low)
    low, high = low - more, high + more
    pad = margin * (high - low)
    low, high = np.minimum(low, first - pad), np.maximum(high, last + pad)
    return np.floor(low * grid) / grid, np.ceil(high * grid) / grid


class NodeStates:
    """The states of Algorithm 1 as printed: one node's prediction, and every counterexample found;
    each class has states of its own."""

    def __init__(self, logits: Tensor, node: int, classes: int) -> None:
        if node >= len(logits):
            raise ConfigError(f"there are {len(logits)} nodes to start from", got=node)
        first = logits[node].double().unsqueeze(0)
        self.pool = first.expand(classes, -1, -1).clone()
        self.extra = [torch.empty(0, logits.shape[1], dtype=torch.float64) for _ in range(classes)]

    def batch(self, active: Tensor, size: int, generator: torch.Generator) -> Tensor:
        """All states of the only class that is left, shape (1, points, n)."""
        (k,) = active.tolist()
        return torch.cat([self.pool[k], self.extra[k]]).unsqueeze(0)

    def learn(self, index: int, state: Tensor, generator: torch.Generator) -> None:
        self.extra[index] = torch.cat([self.extra[index], state.unsqueeze(0)])


class StateSet:
    """Per class: one fixed pool (classes, samples, n), and a growing list of counterexamples.

    The pool is half real logits and half samples of the box: its inside, its corners, and rings
    around Y down to the hole, since a uniform sample of a high-dimensional box has next to nothing
    near its middle."""

    def __init__(
        self,
        logits: Tensor,
        low: Tensor,
        high: Tensor,
        targets: Tensor,
        size: int,
        hole: float,
        settings: FitSettings,
        generator: torch.Generator,
    ) -> None:
        self.settings = settings
        self.low, self.high = low, high
        classes, n = low.shape
        self.extra = [torch.empty(0, n, dtype=torch.float64) for _ in range(classes)]
        share = max(size // 6, 1)
        picks = torch.randint(len(logits), (size // 2,), generator=generator)
        real = logits[picks].double().unsqueeze(0).expand(classes, -1, -1)

        def uniform(count: int) -> Tensor:
            return torch.rand(classes, count, n, generator=generator, dtype=torch.float64)

        width = (high - low).unsqueeze(1)
        inside = low.unsqueeze(1) + uniform(share) * width
        corners = low.unsqueeze(1) + uniform(share).round() * width
        direction = uniform(share) * 2 - 1
        direction = direction / direction.abs().amax(dim=2, keepdim=True)
        reach = torch.rand(classes, share, 1, generator=generator, dtype=torch.float64)
        radius = (max(hole, 1e-6) ** (1 - reach)) * (width.amax() / 4) ** reach
        rings = targets.unsqueeze(1) + direction * radius
        rings = rings.clamp(low[:, None], high[:, None])
        self.pool = torch.cat([real, inside, corners, rings], dim=1)

    def batch(self, active: Tensor, size: int, generator: torch.Generator) -> Tensor:
        """States (active, points, n): a draw from the pool, and one from the counterexamples if
        there are any."""
        picks = torch.randint(self.pool.shape[1], (size,), generator=generator)
        drawn = self.pool[active][:, picks]
        if not any(len(self.extra[k]) for k in active.tolist()):
            return drawn
        found = [self._draw_extra(k, size // 2, generator) for k in active.tolist()]
        return torch.cat([drawn, torch.stack(found)], dim=1)

    def _draw_extra(self, index: int, size: int, generator: torch.Generator) -> Tensor:
        source = self.extra[index] if len(self.extra[index]) else self.pool[index]
        return source[torch.randint(len(source), (size,), generator=generator)]

    def learn(self, index: int, state: Tensor, generator: torch.Generator) -> None:
        """Add a counterexample y with its neighbourhood, clipped to the domain."""
        low, high = self.low[index], self.high[index]
        shape = (self.settings.neighbours, len(state))
        noise = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
        around = state + noise * self.settings.jitter * (high - low) / 2
        found = torch.cat([state.unsqueeze(0), around.clamp(low, high)])
        self.extra[index] = torch.cat([self.extra[index], found])[-self.settings.kept :]
