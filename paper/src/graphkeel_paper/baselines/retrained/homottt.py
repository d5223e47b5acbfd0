"""HomoTTT (Zhang et al., KDD 2024): a copy of the model is tuned on the target by a contrastive
loss, and each node keeps the old prediction or takes the new one.

The loss is GTrans': embeddings should not change when edges are dropped, and should change when
features are shuffled. Edges between dissimilar nodes are dropped more often: with probability
p·(1 − homophily), homophily measured by k-means clusters of the embeddings. A node takes the new
prediction with probability σ(k₀·homophily). Settings as in the benchmark of test-time methods
(TSA's), and longer runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from sklearn.cluster import KMeans
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.gtrans import dissimilarity
from graphkeel_paper.baselines.retrained.copies import TrainableCopy
from graphkeel_paper.baselines.rival import Candidate, Rival, scored
from graphkeel_paper.baselines.training import descend, seeded


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
    optimiser = torch.optim.Adam(copied.parameters(), lr=lr)
    for _ in range(epochs):
        with torch.no_grad():
            embedding = copied.embedding()
        clusters = KMeans(task.n_classes, n_init=1, random_state=given.seed).fit_predict(embedding)
        homophily = node_homophily(task.edge_index, torch.from_numpy(clusters), task.n_nodes)
        dropped = copied.embedding(edge_index=_without_some(task.edge_index, homophily))
        plain = copied.embedding()
        shuffled = copied.embedding(x=task.x[torch.randperm(task.n_nodes)])
        descend(optimiser, dissimilarity(dropped, plain) - dissimilarity(plain, shuffled))
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
