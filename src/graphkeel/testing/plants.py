"""Small heads with known answers: what a controller has to steer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from graphkeel.control.base import Layers, evaluate


@dataclass(frozen=True)
class _LayeredPlant:
    """A ReLU network as (weight, bias) pairs in float64."""

    layers: Layers

    @property
    def n_in(self) -> int:
        return int(self.layers[0][0].shape[1])

    @property
    def n_out(self) -> int:
        return int(self.layers[-1][0].shape[0])

    def __call__(self, x: Tensor) -> Tensor:
        return evaluate(self.layers, x)


class OpaquePlant:
    """y = x + sin(x)/10: smooth and invertible, but no ReLU network, so it has no layers."""

    layers: Layers = ()
    n_in, n_out = 2, 2

    def __call__(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.sin(x)


def affine_plant() -> _LayeredPlant:
    """y = (2x₀ + x₂ + 1, x₁ − 1): three features, two logits."""
    weight = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    return _LayeredPlant(((weight, torch.tensor([1.0, -1.0], dtype=torch.float64)),))


def blind_plant() -> _LayeredPlant:
    """y = (x₀, 0): no feature moves the second logit, so a target off the first axis cannot be
    reached."""
    weight = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    return _LayeredPlant(((weight, torch.zeros(2, dtype=torch.float64)),))


def random_plant(sizes: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> _LayeredPlant:
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for before, after in pairwise(sizes):
        weight = torch.randn(after, before, generator=generator) * scale / before**0.5
        layers.append((weight.double(), torch.randn(after, generator=generator).double()))
    return _LayeredPlant(tuple(layers))
