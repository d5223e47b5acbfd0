"""Small models of message passing; random heads, and logits for their domains; layers in exact
arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv, SGConv

from graphkeel.models.head import Head

NODES, D, N = 40, 6, 3


class Two(nn.Module):
    """Two layers of a kind with a ReLU in between."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.first, self.second = kind(D, 5, **options), kind(5, N, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "sgc": lambda: SGConv(D, N, K=2),
    "gcn": lambda: Two(GCNConv),
    "sage": lambda: Two(SAGEConv),
}


def fractions(values: Any) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, np.float64))


def exact_answer(layers: Any, x: np.ndarray, sources: Any, targets: Any) -> np.ndarray:
    """The layers' answer to features in fractions, with means over the edges."""
    matrix = np.full((len(x), len(x)), Fraction(0), dtype=object)
    for u, v in zip(sources, targets, strict=True):
        matrix[v, u] += Fraction(1, int((targets == v).sum()))
    for i, layer in enumerate(layers):
        x = np.maximum(x, Fraction(0)) if i else x
        total = Fraction(0)
        for power, weight, bias in layer:
            moved = x @ fractions(weight).T + fractions(bias)
            for _ in range(power):
                moved = matrix @ moved
            total = total + moved
        x = total
    return x


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
