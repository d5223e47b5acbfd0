"""Copies of the model whose weights may move, and methods that tune one without a label: SOGA and
HomoTTT."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from graphkeel.core.errors import ModelError
from graphkeel.graph import GraphTask
from graphkeel.graph.propagate import neighbours
from graphkeel.models.frozen import FrozenModel, ReturnType, cache_slots
from graphkeel.models.networks import SGC, propagated
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.embeddings import seen_inputs
from graphkeel_paper.baselines.frozen.gtrans import dissimilarity
from graphkeel_paper.baselines.rival import Candidate, Rival, scored
from graphkeel_paper.baselines.training import seeded, trained


def module_of(frozen: FrozenModel) -> nn.Module:
    """The network behind a frozen model; refused where it is a plain function."""
    if not isinstance(frozen.model, nn.Module):
        raise ModelError("only a torch module can be trained", got=type(frozen.model).__name__)
    return frozen.model


def clear_caches(model: nn.Module) -> None:
    """Empty the caches of `cached=True` layers."""
    for module, slot in cache_slots(model):
        setattr(module, slot, None)


def scores_of(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """The model's scores, bit for bit, with gradients into its weights alone."""
    if model.is_large(x, edge_index):
        return model(x, edge_index)  # type: ignore[no-any-return]
    return model.conv.lin(propagated(model, x, edge_index))  # type: ignore[no-any-return]


def fresh_copy(model: nn.Module, seed: int) -> nn.Module:
    """The architecture with weights drawn anew."""
    copied = copy.deepcopy(model).requires_grad_(True)
    clear_caches(copied)
    with seeded(seed):
        for module in copied.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset) and module is not copied:
                reset()
    return copied


class TrainableCopy:
    """A copy of a frozen model whose weights may move. `scores` and `embedding` have gradients."""

    def __init__(self, frozen: FrozenModel, task: GraphTask) -> None:
        self.task = task
        self.return_type = frozen.return_type
        self.model = copy.deepcopy(module_of(frozen)).eval().requires_grad_(True)
        clear_caches(self.model)
        modules = list(self.model.modules())
        self.layers = [module for module in modules if isinstance(module, MessagePassing)]

    def scores(self, x: Tensor | None = None, edge_index: Tensor | None = None) -> Tensor:
        """Logits of every node, shape (N, n_classes), for the task's features and edges where no
        other are given."""
        features = self.task.x if x is None else x
        edges = self.task.edge_index if edge_index is None else edge_index
        given = self._asked(features, edges)
        clear_caches(self.model)
        if self.return_type is ReturnType.PROBS:
            return given.clamp_min(torch.finfo(given.dtype).tiny).log()
        return given

    def _asked(self, x: Tensor, edge_index: Tensor) -> Tensor:
        own = x is self.task.x and edge_index is self.task.edge_index
        if own and isinstance(self.model, SGC):
            return scores_of(self.model, x, edge_index)
        return self.model(x, edge_index)  # type: ignore[no-any-return]

    def embedding(self, x: Tensor | None = None, edge_index: Tensor | None = None) -> Tensor:
        """The input of the last message-passing layer, shape (N, h); the logits where there is one
        such layer only."""
        if len(self.layers) < 2:
            return self.scores(x, edge_index)
        _, seen = seen_inputs(self.layers[-1:], lambda: self.scores(x, edge_index))
        return seen[-1][1]


# ---- SOGA (Mao et al., WSDM 2024): a copy of the model is tuned on the target without labels, so
# that its predictions are sure, diverse, and alike along edges.
#
# Loss: mean entropy − entropy of the mean prediction + a contrastive term, in which a node's
# prediction is compared with that of a random neighbour and of five nodes drawn by degree^¾. The
# original has a second contrastive term over a graph of structural roles; where no such graph is
# given, as in TSA's benchmark of test-time methods, both terms use the graph itself, and so do we.


@dataclass(frozen=True)
class SOGA(Rival):
    """Trainings of so many epochs at a learning rate, with contrastive terms of weight one. The
    published one comes first; TSA's benchmark takes a single epoch, PyGDA's collection 200."""

    name: str = "soga"
    retrains = True
    uses_labels = False
    settings: tuple[tuple[int, float], ...] = ((1, 1e-3), (10, 1e-3), (100, 1e-3), (100, 1e-2))
    terms: int = 2

    def candidates(self, given: Given) -> Iterator[Candidate]:
        generators = [np.random.default_rng([given.seed, term]) for term in range(self.terms)]
        samples = [contrasts(given.task, rng) for rng in generators]
        for epochs, lr in self.settings:
            copied = TrainableCopy(given.frozen, given.task)
            trained(copied.model, partial(_soga_loss, copied, samples), epochs, rate=lr)
            yield scored({"epochs": epochs, "lr": lr}, copied.scores().detach())


def _soga_loss(copied: TrainableCopy, samples: list[tuple[Tensor, Tensor]]) -> Tensor:
    beliefs = copied.scores().softmax(dim=-1)
    loss = information_loss(beliefs)
    for positive, negative in samples:
        loss = loss + contrastive_loss(beliefs, positive, negative)
    return loss


def contrasts(
    task: GraphTask, rng: np.random.Generator, negatives: int = 5
) -> tuple[Tensor, Tensor]:
    """A random neighbour of every node (itself where it has none), and nodes drawn by degree^¾.

    Returns:
        ids of shape (N,) and (N, negatives).
    """
    adjacency = neighbours(task.edge_index.numpy(), task.n_nodes)
    degree = np.diff(adjacency.indptr)
    offsets = (rng.random(task.n_nodes) * degree).astype(np.int64)
    places = np.minimum(adjacency.indptr[:-1] + offsets, max(len(adjacency.indices) - 1, 0))
    drawn = adjacency.indices[places] if len(adjacency.indices) else np.arange(task.n_nodes)
    positive = np.where(degree > 0, drawn, np.arange(task.n_nodes))
    weights = np.maximum(degree, 1) ** 0.75
    negative = rng.choice(task.n_nodes, (task.n_nodes, negatives), p=weights / weights.sum())
    return torch.from_numpy(positive.astype(np.int64)), torch.from_numpy(negative)


def information_loss(beliefs: Tensor) -> Tensor:
    """Mean entropy of the predictions minus the entropy of their mean."""
    entropy = -(beliefs * (beliefs + 1e-5).log()).sum(dim=1).mean()
    mean = beliefs.mean(dim=0)
    return entropy + (mean * (mean + 1e-8).log()).sum()


def contrastive_loss(beliefs: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """−log of exp(p·p⁺) / Σ exp(p·p⁻), averaged over nodes; `positive` (N,) is a node like each,
    `negative` (N, k) are nodes unlike it."""
    alike = (beliefs * beliefs[positive]).sum(dim=1)
    unlike = (beliefs[:, None] * beliefs[negative]).sum(dim=2)
    return (unlike.logsumexp(dim=1) - alike).mean()


# ---- HomoTTT (Zhang et al., KDD 2024): a copy of the model is tuned on the target by a
# contrastive loss, and each node keeps the old prediction or takes the new one.
#
# The loss is GTrans': embeddings should not change when edges are dropped, and should change when
# features are shuffled. Edges between dissimilar nodes are dropped more often: with probability
# p·(1 − homophily), homophily measured by k-means clusters of the embeddings. A node takes the
# new prediction with probability σ(k₀·homophily). Settings as in the benchmark of test-time
# methods (TSA's), and longer runs.


@dataclass(frozen=True)
class HomoTTT(Rival):
    """Trainings of so many epochs at a learning rate."""

    name = "homottt"
    retrains = True
    uses_labels = False
    settings: tuple[tuple[int, float], ...] = ((1, 1e-3), (10, 1e-3), (10, 1e-2))

    def candidates(self, given: Given) -> Iterator[Candidate]:
        task = given.task
        before = given.frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        for epochs, lr in self.settings:
            with seeded(given.seed):
                after = _tuned(given, epochs, lr)
                yield scored({"epochs": epochs, "lr": lr}, _chosen_by_node(task, before, after))


def _tuned(given: Given, epochs: int, lr: float) -> Tensor:
    task = given.task
    copied = TrainableCopy(given.frozen, task)

    def loss() -> Tensor:
        with torch.no_grad():
            embedding = copied.embedding()
        clusters = KMeans(task.n_classes, n_init=1, random_state=given.seed).fit_predict(embedding)
        homophily = node_homophily(task.edge_index, torch.from_numpy(clusters), task.n_nodes)
        dropped = copied.embedding(edge_index=_without_some(task.edge_index, homophily))
        plain = copied.embedding()
        shuffled = copied.embedding(x=task.x[torch.randperm(task.n_nodes)])
        return dissimilarity(dropped, plain) - dissimilarity(plain, shuffled)

    trained(copied.model, loss, epochs, rate=lr)
    return copied.scores().detach().softmax(dim=-1)


def node_homophily(edge_index: Tensor, classes: Tensor, n_nodes: int) -> Tensor:
    """The share of a node's neighbours in its own class, shape (N,); 0 for a node without any."""
    source, target = edge_index
    same = (classes[source] == classes[target]).float()
    total = torch.zeros(n_nodes).index_add_(0, target, same)
    degree = torch.bincount(target, minlength=n_nodes).clamp_min(1)
    return total / degree


def _without_some(edge_index: Tensor, homophily: Tensor, share: float = 0.5) -> Tensor:
    """Both directions of an edge go together."""
    source, target = edge_index
    once = edge_index[:, source < target]
    drop = share * (1.0 - homophily[once].mean(dim=0))
    kept = once[:, torch.rand(once.shape[1]) >= drop]
    return torch.cat([kept, kept.flip(0)], dim=1)


def _chosen_by_node(
    task: GraphTask, before: Tensor, after: Tensor, sharpness: float = 0.01
) -> Tensor:
    """The new prediction where a draw accepts it, else the old one; the sharpness is k₀."""
    classes = (before + after).argmax(dim=1)
    homophily = node_homophily(task.edge_index, classes, task.n_nodes)
    accepted = torch.bernoulli(torch.sigmoid(sharpness * homophily)).bool()
    return torch.where(accepted[:, None], after, before)
