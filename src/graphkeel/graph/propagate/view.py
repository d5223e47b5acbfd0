"""Matrices that are never written out: features some hops away, and what is said of nodes for
several sets of labels, computed by blocks of rows when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.graph.propagate.local import STREAM, multiply, row_blocks

Array = NDArray[np.float32]
ALL = slice(None)
LAST = slice(-1, None)


class View:
    """Ŝ^hops · features: rows of it.

    Args:
        features: dense or sparse, shape (N, d); all that is asked of them is rows.
        matrix: Ŝ.
        hops: how often it is applied.
    """

    def __init__(self, features: Any, matrix: Any = None, hops: int = 0) -> None:
        self.features = features
        self.matrix = matrix
        self.hops = hops

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    def rows(self, nodes: NDArray[np.int64]) -> Any:
        if not self.hops:
            return self.features[nodes]
        walk = self.matrix[nodes]
        for _ in range(self.hops - 1):
            walk = walk @ self.matrix
        reached = np.unique(walk.indices)
        return walk[:, reached] @ self.features[reached]


def kept(values: Array) -> NDArray[Any]:
    """The values as they are kept: from `halved` numbers on with 16 bits each, where these can
    hold the largest and do not round it to the step of the smallest."""
    if values.size < STREAM.halved:
        return values
    largest = max(float(values.max()), -float(values.min()))
    fits = 2.0**-6 <= largest <= 2.0**15
    return values.astype(np.float16) if fits else values


class Layers:
    """Values (N, S, C), one layer for each of S sets, indexed as an array is by nodes and sets.

    Args:
        values: an array, or what can be indexed likewise, shape (N, S, C).
        finish: a function of values, nodes and sets, row by row; computed when asked for.
    """

    def __init__(self, values: Any, finish: Callable[[Array, Any, slice], Array] | None = None):
        self.values = values
        self.finish = finish
        self.shape = values.shape

    def __getitem__(self, key: Any) -> Array:
        nodes, sets = key if isinstance(key, tuple) else (key, ALL)
        if isinstance(sets, int):
            return self._part(nodes, slice(sets, sets + 1 or None))[:, 0]
        if isinstance(sets, slice):
            return self._part(nodes, sets)
        return self._part(nodes, ALL)[np.arange(len(nodes)), sets]

    def _part(self, nodes: Any, sets: slice) -> Array:
        part = self.values[nodes, sets].astype(np.float32, copy=False)
        return part if self.finish is None else self.finish(part, nodes, sets)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.written().astype(dtype or np.float32, copy=False)

    def written(self) -> Array:
        """All of it, as an array of its own."""
        found = np.empty(self.shape, np.float32)
        for rows in row_blocks(self.shape[0]):
            found[rows] = self[rows]
        return found

    def keep_last(self) -> None:
        """Let go of all sets but the last."""
        if isinstance(self.values, np.ndarray):
            self.values = self.values[:, LAST].copy()
        else:
            self.values.keep_last()


class Products:
    """Σ_k features_k · weights_k + offsets for every set, shape (N, S, C).

    Args:
        views: of the features.
        weights: of each view, shape (d_k, S, C).
        offsets: shape (S, C).
    """

    def __init__(self, views: list[View], weights: list[Array], offsets: Array) -> None:
        pairs = list(zip(views, weights, strict=True))
        self._own = [_read(view.features, weight) for view, weight in pairs if not view.hops]
        self._offsets = offsets
        self.shape = (views[0].features.shape[0], *offsets.shape)
        self._far = _walked([pair for pair in pairs if pair[0].hops], self.shape)

    def __getitem__(self, key: Any) -> Array:
        nodes, sets = key
        offsets = self._offsets[sets]
        found = 0.0 if self._far is None else self._far[nodes, sets]
        for features, weight in self._own:
            chosen = np.ascontiguousarray(weight[:, sets]).reshape(len(weight), offsets.size)
            product = np.asarray(features[nodes] @ chosen)
            found = found + product.reshape(len(product), *offsets.shape)
        return np.asarray(found + offsets)

    def keep_last(self) -> None:
        """Let go of all sets but the last."""
        self._own = [(features, weight[:, LAST].copy()) for features, weight in self._own]
        if self._far is not None:
            self._far = self._far[:, LAST].copy()


def _read(features: Any, weight: Array) -> tuple[Any, Array]:
    """Both without columns of sparse features that have no weight: few nodes are linked with a
    labelled one."""
    if not sparse.issparse(features):
        return features, weight
    columns = np.flatnonzero(weight.any(axis=(1, 2)))
    return features[:, columns], weight[columns]


def _added(features: Any, weight: Array, found: Array | None) -> Array:
    """found + features · weight, by blocks of rows; written over what was found."""
    if found is None:
        found = np.zeros((features.shape[0], weight.shape[1]), np.float32)
    for rows in row_blocks(len(found)):
        found[rows] += np.asarray(features[rows] @ weight)
    return found


def _walked(pairs: list[tuple[View, Array]], shape: tuple[int, ...]) -> Array | None:
    """Products with what lies some hops away: the farthest are walked together with the nearer."""
    found: Array | None = None
    for hops in range(max((view.hops for view, _ in pairs), default=0), 0, -1):
        for view, weight in pairs:
            if view.hops == hops:
                found = _added(view.features, weight.reshape(len(weight), -1), found)
        if found is not None:
            found = multiply(pairs[0][0].matrix, found)
    return None if found is None else kept(found.reshape(shape))
