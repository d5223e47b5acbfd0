"""Small heads with known answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class LayeredPlant:
    layers: tuple[tuple[Tensor, Tensor], ...]

    @property
    def n_in(self) -> int:
        return int(self.layers[0][0].shape[1])

    @property
    def n_out(self) -> int:
        return int(self.layers[-1][0].shape[0])

    def __call__(self, x: Tensor) -> Tensor:
        for i, (weight, bias) in enumerate(self.layers):
            x = (x if i == 0 else x.relu()) @ weight.T + bias
        return x


class OpaquePlant:
    """A smooth head without layers: y = tanh-free, invertible, but not a ReLU network."""

    layers = ()
    n_in, n_out = 2, 2

    def __call__(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.sin(x)


def affine_plant() -> LayeredPlant:
    """y = (2x₀ + x₂ + 1, x₁ − 1): three features, two logits."""
    weight = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    return LayeredPlant(((weight, torch.tensor([1.0, -1.0], dtype=torch.float64)),))


def random_plant(sizes: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> LayeredPlant:
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for before, after in pairwise(sizes):
        weight = torch.randn(after, before, generator=generator) * scale / before**0.5
        layers.append((weight.double(), torch.randn(after, generator=generator).double()))
    return LayeredPlant(tuple(layers))
