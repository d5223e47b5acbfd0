"""The embedding a model classifies linearly, and the rivals that work there: T3A, LAME, Matcha."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.neighbors import kneighbors_graph
from torch import Tensor, nn
from torch_geometric.nn import SGConv

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import Labels, known_labels
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.rival import Candidate, Rival, left_alone, scored
from graphkeel_paper.baselines.training import descend


@dataclass(frozen=True)
class Embedding:
    """Embeddings z, shape (N, h), and the class weights w_c, shape (n_classes, h), that score them
    as w_c·z."""

    nodes: Tensor
    weights: Tensor
    logits: Tensor


def classified_embedding(frozen: FrozenModel, task: GraphTask) -> Embedding:
    """The input of the model's last linear layer, where that layer's output is the model's (SGC, an
    MLP on top).

    Models that propagate after their last linear layer have no such embedding; there the logits
    stand for it, each class weighing its own."""
    modules = frozen.model.modules() if isinstance(frozen.model, nn.Module) else []
    linears = [module for module in modules if isinstance(getattr(module, "weight", None), Tensor)]
    linears = [module for module in linears if "Linear" in type(module).__name__]
    logits, seen = seen_inputs(linears, lambda: frozen.logits(task.x, task.edge_index))
    if seen:
        last, inputs = seen[-1]
        inputs = inputs.detach()
        weight = last.get_parameter("weight").detach()
        if weight.shape[0] == logits.shape[1] and _scores(inputs, weight, logits):
            return Embedding(inputs, weight, logits)
    return Embedding(logits, torch.eye(logits.shape[1]), logits)


def seen_inputs(
    modules: Sequence[nn.Module], ask: Callable[[], Tensor]
) -> tuple[Tensor, list[tuple[nn.Module, Tensor]]]:
    """The answer, and the modules that it went through, in their order, with what entered each."""
    seen: list[tuple[nn.Module, Tensor]] = []
    handles = [
        module.register_forward_pre_hook(lambda m, args: seen.append((m, args[0])))
        for module in modules
    ]
    try:
        return ask(), seen
    finally:
        for handle in handles:
            handle.remove()


def _scores(inputs: Tensor, weight: Tensor, logits: Tensor, tolerance: float = 1e-3) -> bool:
    """Whether the logits are weight·inputs up to one constant (the bias)."""
    offset = logits - inputs @ weight.T
    return bool((offset - offset[0]).abs().max() <= tolerance * logits.abs().max())


# ---- T3A (Iwasawa & Matsuo 2021): class templates rebuilt from the test embeddings the model is
# surest of; no labels, unless asked.


@dataclass(frozen=True)
class T3A(Rival):
    """Templates of as many embeddings per class as `supports` says; None keeps all. With `known`,
    labelled nodes stand in the templates of their own classes, before all others."""

    supports: tuple[int | None, ...] = (None, 1, 5, 20, 50, 100)
    known: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "t3a-known" if self.known else "t3a"

    @property
    def uses_labels(self) -> bool:  # type: ignore[override]
        return self.known

    def candidates(self, given: Given) -> Iterator[Candidate]:
        embedding = classified_embedding(given.frozen, given.task)
        known = known_labels(given.task, given.labelled if self.known else given.labelled[:0])
        for supports in self.supports:
            yield scored({"supports": supports}, template_scores(embedding, supports, known))


def template_scores(
    embedding: Embedding, supports: int | None, known: Labels | None = None
) -> Tensor:
    """Scores against templates: the class's weight and its surest nodes, as unit vectors,
    summed."""
    weights = torch.nn.functional.normalize(embedding.weights, dim=1)
    nodes = torch.nn.functional.normalize(embedding.nodes, dim=1)
    beliefs = embedding.logits.softmax(dim=-1)
    entropy = -(beliefs * beliefs.clamp_min(1e-30).log()).sum(dim=1)
    predicted = beliefs.argmax(dim=1)
    if known is not None and len(known):
        predicted[known.nodes] = known.classes
        entropy[known.nodes] -= math.log(len(weights))  # before all others
    templates = []
    for label, weight in enumerate(weights):
        members = (predicted == label).nonzero().flatten()
        surest = members[entropy[members].argsort()][:supports]
        templates.append(weight + nodes[surest].sum(dim=0))
    return nodes @ torch.nn.functional.normalize(torch.stack(templates), dim=1).T


# ---- LAME (Boudiaf et al. 2022): predictions pulled together between similar nodes; no labels,
# no gradient.
#
# The authors' grid: nearest neighbours, Gaussian and linear affinities of the normalised
# embeddings, with 1, 3 or 5 neighbours; one more setting takes the graph's own edges. Five
# nearest neighbours come first: so LAME is run on graphs (TSA's benchmark). The dense affinities
# are applied to batches of 64 nodes, as the authors do; the pull of thousands of nodes at once
# would drown every prediction.


_Affinity = Callable[[Tensor], Tensor]
Kernel = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LAME(Rival):
    """The authors' grid."""

    name = "lame"
    uses_labels = False
    neighbours: tuple[int, ...] = (5, 3, 1)
    graph_weight: float = 5.0  # rows of Ŝ sum to about one, those of the k-NN affinity to five
    batch: int = 64  # nodes under one dense affinity

    def candidates(self, given: Given) -> Iterator[Candidate]:
        task, seed = given.task, given.seed
        embedding = classified_embedding(given.frozen, task)
        log_beliefs = embedding.logits.log_softmax(dim=-1)
        unit = torch.nn.functional.normalize(embedding.nodes, dim=1)
        propagator = Propagator(task.edge_index, task.n_nodes)
        for count in self.neighbours:
            pulled = pulled_together(log_beliefs, neighbour_affinity(unit, count))
            yield scored({"affinity": "neighbours", "neighbours": count}, pulled)
        for count in self.neighbours:
            pulled = in_batches(log_beliefs, unit, gaussian_kernel(count), seed, self.batch)
            yield scored({"affinity": "gaussian", "neighbours": count}, pulled)
        pulled = in_batches(log_beliefs, unit, lambda batch: batch @ batch.T, seed, self.batch)
        yield scored({"affinity": "linear"}, pulled)
        pulled = pulled_together(log_beliefs, lambda y: self.graph_weight * propagator(y))
        yield scored({"affinity": "graph"}, pulled)


def pulled_together(
    log_beliefs: Tensor, affinity: _Affinity, *, iterations: int = 100, tolerance: float = 1e-8
) -> Tensor:
    """Iterates y ← softmax(log p + Σ_j w_ij y_j) to rest; `affinity` multiplies assignments by
    W."""
    assigned = log_beliefs.exp()
    energy = float("inf")
    for _ in range(iterations):
        pull = affinity(assigned)
        assigned = (log_beliefs + pull).softmax(dim=-1)
        previous = energy
        energy = _energy(log_beliefs, pull, assigned)
        if abs(previous - energy) <= tolerance * abs(previous):
            break
    return assigned


def _energy(log_beliefs: Tensor, pull: Tensor, assigned: Tensor) -> float:
    return float((assigned * (assigned.clamp_min(1e-20).log() - log_beliefs - pull)).sum())


def neighbour_affinity(unit: Tensor, count: int = 5) -> _Affinity:
    """w_ij = 1 where j is among the nearest of i."""
    nearest = kneighbors_graph(unit.numpy(), min(count, len(unit) - 1)).astype(np.float32)
    return lambda y: torch.from_numpy(nearest @ y.numpy())


def gaussian_kernel(count: int) -> Kernel:
    """w_ij = exp(−‖z_i − z_j‖² / 2σ²), σ the mean distance to the last of the nearest."""

    def kernel(unit: Tensor) -> Tensor:
        distances = torch.cdist(unit, unit)
        nearest = distances.topk(min(count, len(unit)), largest=False).values
        sigma = nearest[:, -1].mean().clamp_min(1e-6)
        return torch.exp(-(distances**2) / (2 * sigma**2))

    return kernel


def in_batches(
    log_beliefs: Tensor, unit: Tensor, kernel: Kernel, seed: int, size: int = LAME.batch
) -> Tensor:
    """Assignments under a dense affinity, batch by batch; `kernel` makes it, shape (batch, batch),
    from the batch's embeddings."""
    order = torch.randperm(len(unit), generator=torch.Generator().manual_seed(seed))
    assigned = torch.empty_like(log_beliefs)
    for batch in order.split(size):
        assigned[batch] = pulled_together(log_beliefs[batch], kernel(unit[batch]).matmul)
    return assigned


# ---- Matcha (Bao et al., ICLR 2025): the weights of the hops are tuned on the target so that
# classes become compact; the model's own weights stay.
#
# For propagation Z = Σ_k γ_k Ŝ^k X the weights γ move by gradient steps on the ratio of the
# variance within (soft) classes to the total variance, the classes being those of T3A or LAME at
# that moment. The method is defined for models with weighted hops (GPRGNN); SGC is one, with γ =
# (0, …, 0, 1). Models whose hops have layers between them (GCN, GraphSAGE, GAT) have no such
# weights and are left alone, with that reason. The published rate of 1 is for ten hops; on two it
# turns the model's answers around, so that smaller ones come first.


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
