"""TSA (Hsu et al., ICML 2025): edges are reweighted so that a node's neighbourhood looks as it did
on the source, the share of the node itself against its neighbours is tuned, and T3A or LAME reads
the result. The model's weights stay.

Between nodes whose predictions are sure, an edge from class j into class i weighs
P_source(j | i) / P_target(j | i), rescaled so that degrees stay. P_source comes from the source's
labels: a summary of n_classes² numbers; without it no edge is reweighted. One scale for all edges
and one that depends on the degree are then fitted to the sure predictions.

Not faithful in one point: the original has a scale a layer, SGC's hops share one layer and hence
one scale. Layers that take no edge weights (GraphSAGE, GAT) leave nothing to do, and the model is
left alone with that reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.embeddings import (
    by_neighbours,
    by_templates,
    classified_embedding,
)
from graphkeel_paper.baselines.frozen.gtrans import Views
from graphkeel_paper.baselines.rival import Candidate, Rival, left_alone, scored
from graphkeel_paper.baselines.training import descend


class Setting(NamedTuple):
    """`align` and `fit`: the share of the largest entropy below which a prediction counts as sure
    enough to reweight edges, and to fit the scale."""

    base: str
    align: float
    rate: float
    fit: float


_THREE = ((0.5, 0.1, 1.0), (0.1, 1e-3, 0.1), (0.01, 1e-3, 0.1))  # the authors': citations, defaults
SETTINGS = tuple(Setting(base, *numbers) for base in ("t3a", "lame") for numbers in _THREE)
_BASES = {"t3a": by_templates, "lame": by_neighbours}


@dataclass(frozen=True)
class TSA(Rival):
    """Args:
    source_pairs: P(class of a neighbour | class of a node) on the source, shape (n_classes,
        n_classes); None reweights no edge.
    """

    name: str = "tsa"
    uses_labels: bool = False
    source_pairs: Tensor | None = None

    def with_source(self, source: GraphTask) -> TSA:
        """The method with the source's summary."""
        known = source.y != UNLABELLED
        classes = torch.zeros(source.n_nodes, source.n_classes)
        classes[known, source.y[known]] = 1.0
        return TSA(self.name, source_pairs=class_pairs(source.edge_index, classes))

    def candidates(self, given: Given) -> Iterator[Candidate]:
        views = Views(given.frozen, given.task)
        if not views.weighable:
            yield left_alone("the model's layers take no edge weights")
            return
        for setting in SETTINGS:
            scores = _aligned(given, views, setting, self.source_pairs)
            yield scored(setting._asdict(), scores)


def class_pairs(edge_index: Tensor, classes: Tensor) -> Tensor:
    """P(class of a neighbour | class of a node), shape (n_classes, n_classes)."""
    neighbour, node = edge_index
    counts = classes[node].T @ classes[neighbour]
    return (counts + 1e-6) / (counts + 1e-6).sum(dim=1, keepdim=True)


def _aligned(given: Given, views: Views, setting: Setting, source_pairs: Tensor | None) -> Tensor:
    task = given.task
    plain = torch.ones(task.n_edges)
    scores = _read(given, views, plain, setting)
    beliefs = scores.softmax(dim=-1)
    weights = plain
    if source_pairs is not None:
        weights = edge_weights(task, beliefs, source_pairs, sure(beliefs, setting.align))
    scale = _Scale(task)
    optimiser = torch.optim.Adam(scale.parameters(), lr=setting.rate)
    fitted = sure(beliefs, setting.fit)
    if fitted.any():
        logits = views.logits(task.x, weights * scale())
        wanted = beliefs.argmax(dim=1)
        descend(optimiser, nn.functional.cross_entropy(logits[fitted], wanted[fitted]))
    with torch.no_grad():
        return _read(given, views, weights * scale(), setting)


def _read(given: Given, views: Views, weights: Tensor, setting: Setting) -> Tensor:
    with views.weighted(weights):
        embedding = classified_embedding(given.frozen, given.task)
    return _BASES[setting.base](embedding)


def sure(beliefs: Tensor, share: float) -> Tensor:
    """Which predictions have an entropy of at most this share of the largest, shape (N,)."""
    entropy = -(beliefs * (beliefs + 1e-9).log()).sum(dim=1)
    return entropy <= share * math.log(beliefs.shape[1])


def edge_weights(task: GraphTask, beliefs: Tensor, source_pairs: Tensor, known: Tensor) -> Tensor:
    """P_source / P_target of every edge between sure nodes, else 1; degrees stay. Shape (E,)."""
    neighbour, node = task.edge_index
    predicted = beliefs.argmax(dim=1)
    ratio = source_pairs / class_pairs(task.edge_index, beliefs)
    weights = ratio[predicted[node], predicted[neighbour]]
    degree = torch.bincount(node, minlength=task.n_nodes).float()
    fixed = ~(known[node] & known[neighbour]) | (degree[node] == 1)
    weights = torch.where(fixed, torch.ones_like(weights), weights)
    total = torch.zeros(task.n_nodes).index_add_(0, node, weights)
    return weights * degree[node] / total[node].clamp_min(1e-12)


class _Scale(nn.Module):
    """The factor of every edge: one for all, and a bounded one that depends on the node's
    degree."""

    def __init__(self, task: GraphTask) -> None:
        super().__init__()
        degree = torch.bincount(task.edge_index[0], minlength=task.n_nodes).float()
        share = (degree + 1).log() / (degree.max() + 1).log()
        self.share = share[task.edge_index[1]]
        self.overall = nn.Parameter(torch.ones(1))
        self.slope = nn.Parameter(torch.zeros(2))

    def forward(self) -> Tensor:
        by_degree = torch.sigmoid(self.slope[0] * self.share + self.slope[1]) - 0.5
        return self.overall + by_degree
