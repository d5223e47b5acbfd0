"""Matcha (Bao et al., ICLR 2025): the weights of the hops are tuned on the target so that classes
become compact; the model's own weights stay.

For propagation Z = Σ_k γ_k Ŝ^k X the weights γ move by gradient steps on the ratio of the variance
within (soft) classes to the total variance, the classes being those of T3A or LAME at that moment.
The method is defined for models with weighted hops (GPRGNN); SGC is one, with γ = (0, …, 0, 1).
Models whose hops have layers between them (GCN, GraphSAGE, GAT) have no such weights and are left
alone, with that reason. The published rate of 1 is for ten hops; on two it turns the model's
answers around, so that smaller ones come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import SGConv

from graphkeel.graph import GraphTask
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.embeddings import Embedding
from graphkeel_paper.baselines.frozen.lame import neighbour_affinity, pulled_together
from graphkeel_paper.baselines.frozen.t3a import template_scores
from graphkeel_paper.baselines.rival import Candidate, Rival, left_alone, scored
from graphkeel_paper.baselines.training import descend

Assign = Callable[[Embedding], Tensor]


@dataclass(frozen=True)
class Matcha(Rival):
    """Rounds of gradient steps on γ, at several rates."""

    name = "matcha"
    uses_labels = False
    rounds: int = 10
    rates: tuple[float, ...] = (0.1, 0.01, 1.0)

    def candidates(self, given: Given) -> Iterator[Candidate]:
        layer = weighted_hops(given.frozen)
        if layer is None:
            yield left_alone("the model has no weights of hops")
            return
        hops = hop_features(given.task, layer.K)
        for name, assign in (("t3a", by_templates), ("lame", by_neighbours)):
            for rate in self.rates:
                tuned = _tuned(layer, hops, assign, rate, self.rounds)
                yield scored({"base": name, "lr": rate}, tuned)


def weighted_hops(frozen: FrozenModel) -> SGConv | None:
    """The one layer of an SGC; None for any other model."""
    modules = list(frozen.model.modules()) if isinstance(frozen.model, nn.Module) else []
    convolutions = [module for module in modules if isinstance(module, SGConv)]
    if len(convolutions) != 1:
        return None
    layer = convolutions[0]
    own = {id(weight) for weight in layer.parameters()}
    others = [w for module in modules for w in module.parameters() if id(w) not in own]
    return None if others else layer


def hop_features(task: GraphTask, k: int) -> Tensor:
    """X, ŜX, …, Ŝ^K X, shape (K + 1, N, d)."""
    propagator = Propagator(task.edge_index, task.n_nodes)
    hops = [task.x]
    for _ in range(k):
        hops.append(propagator(hops[-1]))
    return torch.stack(hops)


def _tuned(layer: SGConv, hops: Tensor, assign: Assign, rate: float, rounds: int) -> Tensor:
    weight = layer.lin.weight.detach()
    bias = 0.0 if layer.lin.bias is None else layer.lin.bias.detach()
    gamma = torch.zeros(len(hops))
    gamma[-1] = 1.0
    gamma.requires_grad_(True)
    optimiser = torch.optim.Adam([gamma], lr=rate)
    beliefs = torch.empty(0)
    for _ in range(rounds):
        nodes = torch.tensordot(gamma, hops, dims=1)
        still = nodes.detach()
        beliefs = assign(Embedding(still, weight, still @ weight.T + bias))
        descend(optimiser, spread_ratio(nodes, beliefs.softmax(dim=-1)))
    return beliefs


def by_templates(embedding: Embedding, supports: int = 20) -> Tensor:
    """T3A's scores."""
    return template_scores(embedding, supports)


def by_neighbours(embedding: Embedding) -> Tensor:
    """LAME's assignments, as logits."""
    unit = torch.nn.functional.normalize(embedding.nodes, dim=1)
    log_beliefs = embedding.logits.log_softmax(dim=-1)
    return pulled_together(log_beliefs, neighbour_affinity(unit)).clamp_min(1e-20).log()


def spread_ratio(nodes: Tensor, beliefs: Tensor) -> Tensor:
    """Variance within soft classes over the total variance."""
    means = (beliefs.T @ nodes) / beliefs.sum(dim=0)[:, None].clamp_min(1e-12)
    within = (torch.cdist(nodes, means).square() * beliefs).sum()
    return within / (nodes - nodes.mean(dim=0)).square().sum()
