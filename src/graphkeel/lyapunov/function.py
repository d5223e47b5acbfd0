"""Candidate Lyapunov functions V, for every class at once; each is a two-layer ReLU network.

* `L1Gauge`: V(y) = Σ rᵢ|yᵢ − Yᵢ|, r ≥ c. Zero at Y alone and positive otherwise by construction,
  and the one for which the contraction factor has a closed form.
* `GeneralGauge`: V(y) = Σ vₖ·relu(uₖ·(y − Y)), v > 0, rows u₁…uₙ₊₁ positively spanning R^n, the
  rest free.
* `FreeFunction`: the paper's V, where nothing holds by construction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from graphkeel.control.neural import uniform_start
from graphkeel.core.errors import ConfigError
from graphkeel.lyapunov.config import LyapunovConfig


@dataclass(frozen=True)
class LyapunovWeights:
    """One class's V as verified: V(y) = outer·relu(inner·(y − centre) + bias) + offset."""

    centre: Tensor  # Y of a gauge, 0 in the paper's form; float64 (n,)
    inner: Tensor  # (units, n) float32
    bias: Tensor  # (units,)
    outer: Tensor  # (units,)
    offset: Tensor  # ()

    def __call__(self, y: Tensor) -> Tensor:
        kind = y.dtype
        inner, bias, outer = (t.to(kind) for t in (self.inner, self.bias, self.outer))
        return ((y - self.centre.to(kind)) @ inner.T + bias).relu() @ outer + self.offset.to(kind)


_Parts = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # as those of `LyapunovWeights`


class LyapunovBatch(nn.Module, ABC):
    """V of all classes as one tensor program."""

    @abstractmethod
    def parts(self, active: Tensor) -> _Parts:
        """The weights of `LyapunovWeights` before rounding; the class is the first axis."""

    def forward(self, y: Tensor, active: Tensor) -> Tensor:
        """V at states y of shape (active, points, n)."""
        centre, inner, bias, outer, offset = self.parts(active)
        heights = torch.einsum("kbn,kun->kbu", y - centre.unsqueeze(1), inner)
        heights = (heights + bias.unsqueeze(1)).relu()
        return torch.einsum("kbu,ku->kb", heights, outer) + offset.unsqueeze(1)

    @torch.no_grad()
    def shipped(self, index: int) -> LyapunovWeights:
        """One class's weights, rounded once to float32."""
        centre, *rest = (part[0] for part in self.parts(torch.tensor([index])))
        return LyapunovWeights(centre.clone(), *(part.float().clone() for part in rest))

    def gains(self, active: Tensor) -> Tensor | None:
        """r of an l1 gauge, shape (active, n); None where V has no such form."""
        return None


def _gauge(centre: Tensor, inner: Tensor, outer: Tensor) -> _Parts:
    return centre, inner, torch.zeros_like(outer), outer, torch.zeros_like(outer[:, 0])


def make_lyapunov(
    config: LyapunovConfig, targets: Tensor, unit: Tensor, generator: torch.Generator
) -> LyapunovBatch:
    """V in the form the configuration asks for; `unit` (classes, n) is each axis's half-width."""
    classes, n = unit.shape
    if config.form == "paper":
        return FreeFunction(classes, n, config.hidden, generator)
    if config.gauge == "l1":
        return L1Gauge(targets, unit, config.positivity)
    return GeneralGauge(
        targets, unit, config.lyapunov_hidden or max(config.hidden, n + 1), generator
    )


class L1Gauge(LyapunovBatch):
    def __init__(self, targets: Tensor, unit: Tensor, floor: float) -> None:
        super().__init__()
        self.targets = targets
        self.floor = floor if floor > 0 else 0.1
        relative = unit.amax(dim=1, keepdim=True) / unit  # ≥ 1: a narrow axis counts more
        self.raw = nn.Parameter(torch.log(torch.expm1(relative.clamp(max=20.0))))

    def gains(self, active: Tensor) -> Tensor:
        # Above the floor even after rounding.
        return self.floor * (1.0 + softplus(self.raw[active]))

    def forward(self, y: Tensor, active: Tensor) -> Tensor:  # as V is, without its 2n units
        offsets = (y - self.targets[active].unsqueeze(1)).abs()
        return torch.einsum("kbn,kn->kb", offsets, self.gains(active))

    def parts(self, active: Tensor) -> _Parts:
        gains = self.gains(active)
        eye = torch.eye(gains.shape[1], dtype=torch.float64).expand(len(gains), -1, -1)
        return _gauge(self.targets[active], torch.cat([eye, -eye], dim=1), gains.repeat(1, 2))


class GeneralGauge(LyapunovBatch):
    def __init__(
        self, targets: Tensor, unit: Tensor, units: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.targets = targets
        classes, n = unit.shape
        if units < n + 1:
            raise ConfigError(f"a gauge on R^{n} needs at least {n + 1} units", got=units)
        # Rows act on z in each axis's own unit.
        scale = (unit.amax(dim=1, keepdim=True) / unit).unsqueeze(1)
        self.basis = nn.Parameter(torch.eye(n, dtype=torch.float64).repeat(classes, 1, 1) * scale)
        self.mix = nn.Parameter(torch.zeros(classes, n, dtype=torch.float64))
        free = uniform_start((classes, units - n - 1, n), n, generator)
        with torch.no_grad():
            # rows −eᵢ first: they make V symmetric at the start as far as there are units for them
            for k in range(min(n, units - n - 1)):
                free[:, k] = -self.basis[:, k]
        self.free = free
        self.raw = nn.Parameter(torch.zeros(classes, units, dtype=torch.float64))

    def parts(self, active: Tensor) -> _Parts:
        basis = self.basis[active]
        opposite = -torch.einsum("kn,knm->km", softplus(self.mix[active]), basis).unsqueeze(1)
        rows = torch.cat([basis, opposite, self.free[active]], dim=1)
        return _gauge(self.targets[active], rows, softplus(self.raw[active]) + 0.05)


class FreeFunction(LyapunovBatch):
    def __init__(self, classes: int, n: int, units: int, generator: torch.Generator) -> None:
        super().__init__()
        self.inner = uniform_start((classes, units, n), n, generator)
        self.bias = uniform_start((classes, units), n, generator)
        self.outer = uniform_start((classes, units), units, generator)
        self.offset = uniform_start((classes,), units, generator)

    def parts(self, active: Tensor) -> _Parts:
        inner = self.inner[active]
        origin = torch.zeros_like(inner[:, 0])
        return origin, inner, self.bias[active], self.outer[active], self.offset[active]
