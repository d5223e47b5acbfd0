"""Splits: the biased one (published lists where the dataset has some), the plain random one, and
the public one.

Validation never contains a training node, and nodes without a label are in no split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import DataError
from graphkeel.core.files import user_cache
from graphkeel.core.names import check_name
from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.graph.ppr import PprDistance, near_distance
from graphkeel.graph.propagate import normalise

Ids = NDArray[np.int64]

KINDS = ("biased", "random", "public")


@dataclass(frozen=True, eq=False)
class Split:
    """Nodes to train on, to choose on and to test on."""

    train: Ids
    val: Ids
    test: Ids


def make_split(graph: RawGraph, kind: str, seed: int) -> Split:
    """Draw (or look up) split number `seed` of a graph.

    Args:
        graph: the loaded graph.
        kind: one of `KINDS`.
        seed: number of the split.
    """
    check_name("the split", kind, KINDS)
    if kind == "public":
        return _public(graph)
    if not (graph.y >= 0).any():
        raise DataError(
            f"{graph.name} has no labelled node, so no training set can be drawn",
            fix="Label some in y.",
        )
    if kind == "random":
        return _random(graph, seed)
    return _complete(graph, biased_training_set(graph, seed), seed)


def biased_training_set(
    graph: RawGraph, seed: int, exact_nodes: int = 50_000, exact_edges: int = 4_000_000
) -> Ids:
    """Published list number `seed` where there is one; else drawn with that seed, by exact
    distances where the graph is small enough: beyond, row norms take minutes, as each reads all
    edges dozens of times."""
    if 0 <= seed < len(graph.biased.published):
        return _checked(graph, graph.biased.published[seed])
    large = graph.n_nodes > exact_nodes or graph.edge_index.shape[1] > exact_edges
    return biased_sampler(graph, large).draw(seed)


@dataclass
class BiasedSampler:
    """The biased sampler of Shift-Robust GNNs (Zhu et al. 2021): one seed node a class, and the
    nodes of that class that are nearest to it by personalised PageRank.

    Args:
        distance: of some nodes from a seed, by ids.
        y: labels, -1 where unknown (those nodes are never drawn).
        pool: node ids that may be drawn.
        per_class: how many nodes of each class.
    """

    distance: Callable[[int, Ids], NDArray[np.float64]]
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
        distances = self.distance(seed, candidates)
        distances[candidates == seed] = -np.inf
        return candidates[np.argsort(distances, kind="stable")[: self.per_class]]

    def draw(self, seed: int) -> Ids:
        """One training set: a uniform random seed node per class, then its neighbourhood."""
        rng = np.random.default_rng(seed)
        labelled = self.pool[self.y[self.pool] >= 0]
        classes = np.unique(self.y[labelled])
        starts = [int(rng.choice(labelled[self.y[labelled] == c])) for c in classes]
        return np.concatenate([self.around(start) for start in starts])


@lru_cache(maxsize=4)
def biased_sampler(graph: RawGraph, large: bool = False) -> BiasedSampler:
    """The sampler with the teleport and pool that belong to the dataset."""
    # The published lists were drawn on graphs that kept the raw files' self-links.
    matrix = normalise(
        graph.edge_index, graph.n_nodes, dtype=np.float64, self_links=graph.self_links
    )
    pool = np.arange(graph.biased.pool or graph.n_nodes)
    pool = pool[graph.y[pool] >= 0]
    teleport = graph.biased.teleport
    if large:  # many nodes are equally far from a seed: in no order of their ids
        shuffled = np.random.default_rng(0).permutation(pool)
        return BiasedSampler(partial(near_distance, matrix, teleport), graph.y, shuffled)
    exact = PprDistance(matrix, teleport, cache=user_cache() / "ppr")
    return BiasedSampler(exact.to_seed, graph.y, pool)


def _checked(graph: RawGraph, train: Ids) -> Ids:
    if train.max() >= graph.n_nodes or (graph.y[train] < 0).any():
        raise DataError(
            f"a published training set of {graph.name} does not fit the graph",
            got=f"largest id {train.max()}",
        )
    return train


def _public(graph: RawGraph) -> Split:
    if graph.public_split is None:
        raise DataError(
            f"{graph.name} has no public split", fix="Use the biased or the random one."
        )
    return Split(*graph.public_split)


def _complete(graph: RawGraph, train: Ids, seed: int) -> Split:
    """Validation and test beside a training set: the public ones where they exist, else 30 a class
    and the rest."""
    if graph.public_split is not None:
        _, val, test = graph.public_split
        return Split(train, without(val, train), without(test, train))
    rest = without(np.flatnonzero(graph.y >= 0), train)
    val = _per_class(graph.y, rest, 30, np.random.default_rng([seed, 1]))
    return Split(train, val, without(rest, val))


def _random(graph: RawGraph, seed: int) -> Split:
    candidates = np.flatnonzero(graph.y >= 0)
    if graph.public_split is not None:
        candidates = without(candidates, graph.public_split[2])  # those stay test nodes
    if not len(candidates):
        raise DataError(
            f"{graph.name} has no labelled node to train on beside those of its public test set",
            fix="Leave some labelled nodes out of test_mask.",
        )
    train = _per_class(graph.y, candidates, 20, np.random.default_rng([seed, 0]))
    return _complete(graph, train, seed)


def without(nodes: Ids, taken: Ids) -> Ids:
    """The nodes that are not taken, each once and in rising order; by marking them, which takes no
    sort."""
    if not len(nodes):
        return nodes
    kept = np.zeros(max(int(nodes.max()), int(taken.max(initial=0))) + 1, dtype=bool)
    kept[nodes] = True
    kept[taken] = False
    return np.flatnonzero(kept)


def _per_class(y: Ids, candidates: Ids, count: int, rng: np.random.Generator) -> Ids:
    """`count` random candidates of each class; at most half of a class that has fewer than twice as
    many."""
    drawn = [candidates[:0]]
    classes = y[candidates]
    for c in np.flatnonzero(np.bincount(classes)):
        members = candidates[classes == c]
        drawn.append(rng.choice(members, min(count, max(1, len(members) // 2)), replace=False))
    return np.sort(np.concatenate(drawn))
