"""Random heads, and logits for their domains."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from graphkeel.models.head import Head


def random_head(sizes: tuple[int, ...], seed: int = 0, scale: float = 10.0) -> Head:
    """Float32 weights in float64, as an extracted head has them."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for before, after in pairwise(sizes):
        weight = (
            torch.randn(after, before, generator=generator)
            * (1.0 if layers else scale)
            / before**0.5
        )
        layers.append((weight.double(), torch.randn(after, generator=generator).double()))
    return Head(tuple(layers), sizes[0], sizes[-1])


def logits_of(head: Head, nodes: int = 300, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return head(torch.randn(nodes, head.n_in, generator=generator) * 0.3)
