"""Splits: the biased one (published lists where the dataset has some), the plain random one, and
the public one.

Validation never contains a training node, and nodes without a label are in no split.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import DataError
from graphkeel.core.files import user_cache
from graphkeel.core.names import check_name
from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.graph.ppr import PprDistance
from graphkeel.graph.propagate import neighbours, normalise
from graphkeel.graph.sampler import ExactBiasedSampler, ScalableBiasedSampler

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
    """Published list number `seed` where there is one; else drawn with that seed, exactly where the
    graph is small enough: beyond, row norms take minutes, as each reads all edges dozens of
    times."""
    if 0 <= seed < len(graph.biased.published):
        return _checked(graph, graph.biased.published[seed])
    if graph.n_nodes > exact_nodes or graph.edge_index.shape[1] > exact_edges:
        return scalable_sampler(graph).draw(seed)
    return exact_sampler(graph).draw(seed)


@lru_cache(maxsize=4)
def exact_sampler(graph: RawGraph) -> ExactBiasedSampler:
    """The exact sampler with the teleport and pool that belong to the dataset."""
    # The published lists were drawn on graphs that kept the raw files' self-links.
    matrix = normalise(
        graph.edge_index, graph.n_nodes, dtype=np.float64, self_links=graph.self_links
    )
    distance = PprDistance(matrix, graph.biased.teleport, cache=user_cache() / "ppr")
    pool = np.arange(graph.biased.pool or graph.n_nodes)
    return ExactBiasedSampler(distance, graph.y, pool[graph.y[pool] >= 0])


def scalable_sampler(graph: RawGraph, *, label_ratio: float = 0.01) -> ScalableBiasedSampler:
    """The forward-push sampler over all labelled nodes; `label_ratio` of a class is drawn."""
    pool = np.flatnonzero(graph.y >= 0)
    return ScalableBiasedSampler(
        neighbours(graph.edge_index, graph.n_nodes), graph.y, pool, label_ratio
    )


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
