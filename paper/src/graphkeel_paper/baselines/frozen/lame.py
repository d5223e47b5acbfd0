"""LAME (Boudiaf et al. 2022): predictions pulled together between similar nodes; no labels, no
gradient.

The authors' grid: nearest neighbours, Gaussian and linear affinities of the normalised embeddings,
with 1, 3 or 5 neighbours; one more setting takes the graph's own edges. Five nearest neighbours
come first: so LAME is run on graphs (TSA's benchmark). The dense affinities are applied to batches
of 64 nodes, as the authors do; the pull of thousands of nodes at once would drown every
prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.neighbors import kneighbors_graph
from torch import Tensor

from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.embeddings import classified_embedding
from graphkeel_paper.baselines.rival import Candidate, Rival, scored

_Affinity = Callable[[Tensor], Tensor]
Kernel = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LAME(Rival):
    """The authors' grid.

    Attributes:
        neighbours: how many nearest ones.
        graph_weight: rows of Ŝ sum to about one, those of the k-NN affinity to about five.
        batch: nodes under one dense affinity.
    """

    name = "lame"
    uses_labels = False
    neighbours: tuple[int, ...] = (5, 3, 1)
    graph_weight: float = 5.0
    batch: int = 64

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
