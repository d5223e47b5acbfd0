"""A seeded stochastic block model with class-dependent features, of any size, for tests and
scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import ConfigError
from graphkeel.core.memory import require_memory
from graphkeel.graph.datasets.raw import RawGraph, undirected


def make_sbm(
    n_nodes: int = 2000,
    n_edges: int = 10_000,
    *,
    n_classes: int = 5,
    n_features: int = 32,
    homophily: float = 0.8,
    signal: float = 0.5,
    seed: int = 0,
) -> RawGraph:
    """Draw a graph in time and memory linear in its size.

    Args:
        n_nodes, n_edges: nodes, and undirected pairs asked for (self-pairs and repeats are dropped,
            so a few fewer).
        n_classes, n_features: classes, and features of a node.
        homophily: share of edges drawn inside a class; the rest join two nodes drawn at random.
        signal: distance of a class mean from the origin in units of the features' noise.
        seed: of everything that is drawn.
    """
    if n_nodes < n_classes or n_classes < 2:
        raise ConfigError(
            "an sbm needs at least two classes and a node for each", got=(n_nodes, n_classes)
        )
    if not 0 <= homophily <= 1:
        raise ConfigError("homophily must lie in [0, 1]", got=homophily)
    require_memory(
        80 * n_edges + 8 * n_nodes * (n_features + 4),
        f"an sbm of {n_nodes} nodes",
        "Ask for a smaller one.",
    )
    rng = np.random.default_rng(seed)
    # Nodes are grouped by class internally and renumbered at the end, so that a class is a range of
    # ids.
    bounds = np.linspace(0, n_nodes, n_classes + 1).astype(np.int64)
    edges = _draw_edges(n_nodes, n_edges, bounds, homophily, rng)
    y = np.repeat(np.arange(n_classes), np.diff(bounds))
    renumber = rng.permutation(n_nodes)
    for end in edges:  # in place: the pairs are the largest array here
        end[:] = renumber[end]
    labels = np.empty(n_nodes, dtype=np.int64)
    labels[renumber] = y
    return RawGraph(
        name="sbm",
        x=_draw_features(labels, n_classes, n_features, signal, rng),
        edge_index=undirected(edges[0], edges[1], n_nodes),
        y=labels,
        n_classes=n_classes,
    )


def _draw_edges(
    n_nodes: int,
    n_edges: int,
    bounds: NDArray[np.int64],
    homophily: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    source = rng.integers(0, n_nodes, n_edges)
    target = rng.integers(0, n_nodes, n_edges)
    inside = rng.random(n_edges) < homophily
    block = np.searchsorted(bounds, source[inside], side="right") - 1
    target[inside] = rng.integers(bounds[block], bounds[block + 1])
    return np.stack([source, target])


def _draw_features(
    labels: NDArray[np.int64],
    n_classes: int,
    n_features: int,
    signal: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    means = rng.standard_normal((n_classes, n_features), dtype=np.float32)
    means *= signal / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    x = rng.standard_normal((labels.shape[0], n_features), dtype=np.float32)
    x += means[labels]
    return x


_SETTINGS = {
    "nodes": "n_nodes",
    "edges": "n_edges",
    "classes": "n_classes",
    "features": "n_features",
}


def sbm_by_name(name: str) -> RawGraph:
    """`sbm`, or `sbm:nodes=1e6,edges=1e7,features=100,homophily=0.5,signal=0.3,classes=5,seed=0`,
    any of them."""
    _, _, options = name.partition(":")
    settings: dict[str, Any] = {}
    for part in filter(None, options.split(",")):
        key, _, text = part.partition("=")
        settings[_SETTINGS.get(key.strip(), key.strip())] = _number(key.strip(), text)
    return make_sbm(**settings)


def _number(key: str, text: str) -> float | int:
    real = key in ("homophily", "signal")
    if not real and key not in (*_SETTINGS, "seed"):
        raise ConfigError(
            f"an sbm takes {', '.join(_SETTINGS)}, homophily, signal and seed", got=repr(key)
        )
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1e12 or not (real or value.is_integer()):
        raise ConfigError(
            f"{key} of an sbm must be a number, as in sbm:nodes=1e6,edges=1e7", got=repr(text)
        )
    return value if real else int(value)
