"""The Scalable Biased Sampler of Shift-Robust GNNs (Zhu et al. 2021), in its two forms.

*Exact*: one seed node a class, and the 20 nodes of that class whose exact PPR rows are nearest to
the seed's. *Scalable*: forward-push PPR neighbourhoods of random seeds, until each class has its
quota; for graphs of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.core.steps import progress
from graphkeel.graph.ppr import PprDistance, forward_push

Ids = NDArray[np.int64]


@dataclass
class ExactBiasedSampler:
    """Draws training sets of nodes that are close together in the graph.

    Args:
        distance: PPR-row distances of the graph.
        y: labels, -1 where unknown (those nodes are never drawn).
        pool: node ids that may be drawn.
        per_class: how many nodes of each class.
    """

    distance: PprDistance
    y: Ids
    pool: Ids
    per_class: int = 20

    def around(self, seed: int) -> Ids:
        """The `per_class` pool nodes of the seed's class nearest to it, the seed first."""
        candidates = self.pool[self.y[self.pool] == self.y[seed]]
        if len(candidates) < self.per_class:
            raise DataError(
                f"class {self.y[seed]} has too few nodes in the pool for {self.per_class} "
                "training nodes",
                got=len(candidates),
                fix="Take --split random (split='random'), which needs fewer.",
            )
        distances = self.distance.to_seed(seed, candidates)
        distances[candidates == seed] = -1.0
        return candidates[np.argsort(distances, kind="stable")[: self.per_class]]

    def draw(self, seed: int) -> Ids:
        """One training set: a uniform random seed node per class, then its neighbourhood."""
        rng = np.random.default_rng(seed)
        labelled = self.pool[self.y[self.pool] >= 0]
        classes = np.unique(self.y[labelled])
        starts = [int(rng.choice(labelled[self.y[labelled] == c])) for c in classes]
        return np.concatenate([self.around(start) for start in starts])


@dataclass
class ScalableBiasedSampler:
    """The sampler for large graphs; its cost does not depend on the graph's size but on the quota.

    Args:
        adjacency: symmetric, without self-loops.
        pool: nodes that may be drawn (an official training set, or all nodes).
        label_ratio: share of each class's pool nodes to draw.
        top: how many PPR neighbours of a seed are considered.
        min_neighbours: seeds with no more PPR neighbours than this are skipped.
        min_quota: classes with a smaller quota are dropped.
    """

    adjacency: sparse.csr_matrix
    y: Ids
    pool: Ids
    label_ratio: float = 0.01
    alpha: float = 0.1
    epsilon: float = 5e-5
    top: int = 200
    min_neighbours: int = 50
    min_quota: int = 10

    def quotas(self) -> dict[int, int]:
        """Nodes to draw per class that is kept."""
        counts = np.bincount(self.y[self.pool][self.y[self.pool] >= 0])
        wanted = np.floor(self.label_ratio * counts).astype(int)
        return {c: int(q) for c, q in enumerate(wanted) if q >= self.min_quota}

    def draw(self, seed: int) -> Ids:
        """One training set, ordered class by class."""
        quotas = self.quotas()
        if not quotas:
            raise DataError(
                f"no class reaches {self.min_quota} training nodes",
                got=f"label_ratio {self.label_ratio}",
                fix="Raise it, or take --split random (split='random'), which needs fewer.",
            )
        rng = np.random.default_rng(seed)
        order = rng.permutation(self.pool)
        chosen: dict[int, dict[int, None]] = {c: {} for c in quotas}  # dicts as ordered sets
        in_pool = np.zeros(self.adjacency.shape[0], dtype=bool)
        in_pool[self.pool] = True
        for start in progress(order, "biased sampler: starts tried", len(order)):
            label = int(self.y[start])
            if label in quotas and len(chosen[label]) < quotas[label]:
                self._take_neighbours(int(start), in_pool, chosen[label], quotas[label])
            if all(len(chosen[c]) >= quotas[c] for c in quotas):
                break
        self._top_up(order, chosen, quotas)
        return np.concatenate([np.fromiter(chosen[c], dtype=np.int64) for c in sorted(quotas)])

    def neighbours(self, start: int) -> Ids:
        """The nodes with the largest approximate PPR from `start`, best first."""
        nodes, values = forward_push(
            self.adjacency.indptr, self.adjacency.indices, start, self.alpha, self.epsilon
        )
        return np.asarray(nodes[np.argsort(-values, kind="stable")[: self.top]])

    def _take_neighbours(
        self, start: int, in_pool: NDArray[np.bool_], taken: dict[int, None], quota: int
    ) -> None:
        near = self.neighbours(start)
        if len(near) <= self.min_neighbours:
            return
        same = near[(self.y[near] == self.y[start]) & in_pool[near]]
        for node in same:
            if len(taken) >= quota:
                return
            taken[int(node)] = None

    def _top_up(
        self, order: Ids, chosen: dict[int, dict[int, None]], quotas: dict[int, int]
    ) -> None:
        """Small or scattered classes may never fill up from neighbourhoods: complete them at
        random."""
        for c, quota in quotas.items():
            if len(chosen[c]) >= quota:
                continue  # looking for the class's nodes would be the longest part of the drawing
            for node in order[self.y[order] == c]:
                if len(chosen[c]) >= quota:
                    break
                chosen[c][int(node)] = None
