"""A2GNN (Liu et al., AAAI 2024): no propagation on the source, many hops on the target.

Features go through one layer, h = ReLU(Â^k X W + b), with k = 0 on the source and k = 10 on the
target; a classifier of one hop, Â h W' + b', reads them. Loss: cross-entropy on the labels, and the
maximum mean discrepancy (MMD) between both graphs' h. Settings as the authors' collection (PyGDA)
runs it on the citation pairs; network and kernels as in the authors' code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphkeel_paper.baselines.retrained.two_graphs import Domain, Network, TwoGraphs, layer


@dataclass(frozen=True)
class A2GNN(TwoGraphs):
    """Args:
    hidden: units of the first layer.
    hops: of the target.
    weight: of the discrepancy in the loss.
    sample: nodes of each graph that are compared, drawn anew in every epoch; the authors average
        five such draws, whose expectation is the same.
    """

    name: str = "a2gnn"
    weight_decay: float = 5e-3
    hidden: int = 128
    hops: int = 10
    weight: float = 10.0
    sample: int = 1000

    def network(self, source: Domain, target: Domain) -> Network:
        return _Propagated(self, target.task.n_features, target.task.n_classes)


class _Propagated(Network):
    def __init__(self, settings: A2GNN, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.settings = settings
        self.first, self.first_bias = layer(n_features, settings.hidden)
        self.second, self.second_bias = layer(settings.hidden, n_classes)

    def loss(self, source: Domain, target: Domain, progress: float) -> Tensor:
        near = self._embedding(source, 0)
        far = self._embedding(target, self.settings.hops)
        known = source.loss(self._read(source, near)) + target.loss(self._read(target, far))
        size = self.settings.sample
        return known + self.settings.weight * mmd(_drawn(near, size), _drawn(far, size))

    def scores(self, target: Domain) -> Tensor:
        return self._read(target, self._embedding(target, self.settings.hops))

    def _embedding(self, domain: Domain, hops: int) -> Tensor:
        values = domain.features.product(self.first)
        for _ in range(hops):
            values = domain.hop(values)
        return (values + self.first_bias).relu()

    def _read(self, domain: Domain, embedding: Tensor) -> Tensor:
        return domain.hop(embedding @ self.second) + self.second_bias


def _drawn(values: Tensor, size: int) -> Tensor:
    return values[torch.randint(len(values), (size,))]


def mmd(one: Tensor, other: Tensor) -> Tensor:
    """Squared maximum mean discrepancy of two samples, (n, k) and (m, k), by the sum of five
    Gaussian kernels exp(−d² / w), whose widths w are ¼, ½, 1, 2 and 4 times the mean d²."""
    result: Tensor = _Discrepancy.apply(one, other)
    return result


class _Discrepancy(torch.autograd.Function):
    """By hand, as every kernel is the square of the next wider one: torch would keep, and go back
    through, ten matrices of all pairs. The widths count as constants."""

    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor) -> Tensor:
        both = torch.cat([one, other])
        count = len(both)
        shares = torch.full((count,), 1 / len(one), dtype=both.dtype)
        shares[len(one) :] = -1 / len(other)
        lengths = (both * both).sum(dim=1)
        squares = torch.addmm(lengths[:, None] + lengths, both, both.T, alpha=-2).clamp_min_(0)
        width = float(squares.sum()) / (count * count - count) or 1.0
        kernel = squares.div_(-4 * width).exp_()
        slope = torch.zeros_like(kernel)
        value = both.new_zeros(())
        for times in (4.0, 2.0, 1.0, 0.5, 0.25):
            value += shares @ (kernel @ shares)
            slope.add_(kernel, alpha=-1 / (times * width))
            kernel.mul_(kernel)
        weighted = shares[:, None] * both
        pull = shares[:, None] * ((slope @ shares)[:, None] * both - slope @ weighted)
        ctx.save_for_backward(4 * pull)
        ctx.size = len(one)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        pull = ctx.saved_tensors[0] * gradients[0]
        return pull[: ctx.size], pull[ctx.size :]
