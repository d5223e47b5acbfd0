"""The paper's datasets by name, beside all that the library loads."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from graphkeel.core.errors import DataError
from graphkeel.core.files import is_there
from graphkeel.graph import GraphTask, RawGraph, Split, make_split, make_task
from graphkeel.graph import load_graph as load_plain_graph
from graphkeel.graph.datasets import DATASETS
from graphkeel.graph.datasets.raw import BiasedSets
from graphkeel.graph.features import PREPARATION
from graphkeel.graph.splits import without
from graphkeel_paper.datasets.files import data_root, published_seeds
from graphkeel_paper.datasets.published import FILES, load_published

OUTSIDE = "outside"  # the split whose test nodes are in no public mask

# Teleport and candidate pool with which the published lists were drawn.
_DRAWN = {
    "cora": BiasedSets(teleport=0.01, pool=1500),
    "citeseer": BiasedSets(pool=1000),
    "pubmed": BiasedSets(pool=10_000),
}


def load(
    name: str = "digits",
    *,
    seed: int = 0,
    split: str = "biased",
    features: str = "auto",
    pca: int = PREPARATION.pca,
) -> GraphTask:
    """A dataset by name, with split number `seed`, as `graphkeel.graph.load`.

    Args:
        name: `cora`, `citeseer`, `pubmed`, `photo`, `computers`, NAME for the file graphs/NAME.npz
            in the folder that GRAPHKEEL_DATA names, or what the library loads.
        seed: number of the split.
        split: biased, random, public or outside.
        features: raw, rownorm, pca, pca-raw, or auto: `pca` for the paper's five datasets.
        pca: number of principal components.
    """
    graph = load_graph(name)
    drawn = split_of(graph, split, seed)
    return make_task(graph, split=drawn, features=features, pca=pca)


@lru_cache(maxsize=8)
def load_graph(name: str) -> RawGraph:
    """The graph behind a name; each is read and checked once a process.

    Args:
        name: one of the paper's five, of the folder graphs, or of the library.
    """
    key = name.lower()
    if key in FILES:
        graph = replace(load_published(key), auto_features="pca")
        if key not in _DRAWN:
            return graph
        return replace(graph, biased=replace(_DRAWN[key], published=published_seeds(key) or ()))
    own = None if key in DATASETS else _own_graph(name)
    return load_plain_graph(name if own is None else str(own))


def _own_graph(name: str) -> Path | None:
    """graphs/NAME.npz in the folder that GRAPHKEEL_DATA names, where there is such a file."""
    root = data_root()
    if root is None or not name.replace("_", "").replace("-", "").isalnum():
        return None
    path = root / "graphs" / f"{name}.npz"
    return path if is_there(path.is_file) else None


def split_of(graph: RawGraph, kind: str, seed: int) -> Split:
    """The split of that kind and number.

    Args:
        graph: the loaded graph.
        kind: biased, random, public or outside.
        seed: its number.
    """
    if kind != OUTSIDE:
        return make_split(graph, kind, seed)
    return _outside(graph, make_split(graph, "biased", seed))


def _outside(graph: RawGraph, split: Split) -> Split:
    """The split with other test nodes: all that are outside the public masks."""
    if graph.public_split is None:
        raise DataError(f"{graph.name} has no public masks", fix="Use the biased split.")
    taken = np.concatenate([split.train, *graph.public_split])
    return Split(split.train, split.val, without(np.flatnonzero(graph.y >= 0), taken))
