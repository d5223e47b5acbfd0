"""Small heads with known answers: what a controller has to steer."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from graphkeel.control.base import LayeredPlant, Layers


class OpaquePlant:
    """y = x + sin(x)/10: smooth and invertible, but no ReLU network, so it has no layers."""

    layers: Layers = ()
    n_in, n_out = 2, 2

    def __call__(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.sin(x)


def affine_plant() -> LayeredPlant:
    """y = (2x₀ + x₂ + 1, x₁ − 1): three features, two logits."""
    weight = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    return LayeredPlant(((weight, torch.tensor([1.0, -1.0], dtype=torch.float64)),))


def blind_plant() -> LayeredPlant:
    """y = (x₀, 0): no feature moves the second logit, so a target off the first axis cannot be
    reached."""
    weight = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    return LayeredPlant(((weight, torch.zeros(2, dtype=torch.float64)),))


def random_plant(sizes: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> LayeredPlant:
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for before, after in pairwise(sizes):
        weight = torch.randn(after, before, generator=generator) * scale / before**0.5
        layers.append((weight.double(), torch.randn(after, generator=generator).double()))
    return LayeredPlant(tuple(layers))
