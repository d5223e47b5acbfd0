"""LAME (Boudiaf et al. 2022): predictions pulled together between similar nodes; no labels, no
gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from sklearn.neighbors import kneighbors_graph
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.baselines.frozen.embeddings import classified_embedding
from graphkeel.paper.baselines.rival import Candidate, Rival, scored

NEIGHBOURS = 5
GRAPH_WEIGHT = 5.0  # rows of Ŝ sum to about one, those of the k-NN affinity to about five
ITERATIONS, TOLERANCE = 100, 1e-8

Affinity = Callable[[Tensor], Tensor]


class LAME(Rival):
    """With the published affinity (nearest neighbours in the embedding), or the graph's own
    edges."""

    name = "lame"
    uses_labels = False

    def _candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]:
        embedding = classified_embedding(frozen, task)
        log_beliefs = embedding.logits.log_softmax(dim=-1)
        propagator = Propagator(task.edge_index, task.n_nodes)
        near = pulled_together(log_beliefs, neighbour_affinity(embedding.nodes))
        yield scored({"affinity": "neighbours"}, near)
        along_edges = pulled_together(log_beliefs, lambda y: GRAPH_WEIGHT * propagator(y))
        yield scored({"affinity": "graph"}, along_edges)


def pulled_together(log_beliefs: Tensor, affinity: Affinity) -> Tensor:
    """Iterates y ← softmax(log p + Σ_j w_ij y_j) to rest.

    Args:
        log_beliefs: log probabilities, shape (N, n_classes).
        affinity: multiplies assignments, shape (N, n_classes), by W.
    """
    assigned, energy = log_beliefs.exp(), float("inf")
    for _ in range(ITERATIONS):
        pull = affinity(assigned)
        assigned = (log_beliefs + pull).softmax(dim=-1)
        previous, energy = energy, _energy(log_beliefs, pull, assigned)
        if abs(previous - energy) <= TOLERANCE * abs(previous):
            break
    return assigned


def _energy(log_beliefs: Tensor, pull: Tensor, assigned: Tensor) -> float:
    return float((assigned * (assigned.clamp_min(1e-20).log() - log_beliefs - pull)).sum())


def neighbour_affinity(embeddings: Tensor) -> Affinity:
    """w_ij: j is among the five nearest of i or the other way round, each counting a half.

    Args:
        embeddings: shape (N, h).
    """
    unit = torch.nn.functional.normalize(embeddings, dim=1).numpy()
    nearest = kneighbors_graph(unit, min(NEIGHBOURS, len(unit) - 1))
    symmetric = ((nearest + nearest.T) / 2).astype(np.float32).tocsr()
    return lambda y: torch.from_numpy(symmetric @ y.numpy())
