"""Matrices that are never written out: features some hops away, and what is said of nodes for
several sets of labels, computed by blocks of rows when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.graph.propagate.local import STREAM, home_of, multiply, row_blocks
from graphkeel.graph.propagate.rowwise import Nodes, fold, rowwise

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
        numbers = 1 if sparse.issparse(self.features) else self.width
        parts = row_blocks(len(nodes), max(1, min(STREAM.walked, STREAM.near // numbers)))
        found = [_walk_from(nodes[part], self) for part in parts]
        return sparse.vstack(found) if sparse.issparse(found[0]) else np.concatenate(found)

    def reached(self, nodes: NDArray[np.int64]) -> tuple[View, Any]:
        """The rows of some nodes, and the view without columns in which they are all zero, where
        there are as many as nodes."""
        if not isinstance(self.features, Links):
            return self, self.rows(nodes)
        columns = np.unique(np.append(self.features[nodes].indices, nodes[:1]))  # never none
        narrow = View(Links(self.features.matrix, columns))
        return narrow, narrow.rows(nodes)


def _walk_from(nodes: NDArray[np.int64], view: View) -> Any:
    walk = view.matrix[nodes]
    for _ in range(view.hops - 1):
        reached = np.unique(walk.indices)
        walk = walk[:, reached] @ view.matrix[reached]
    reached = np.unique(walk.indices)
    return walk[:, reached] @ view.features[reached]


class Links:
    """Whom a node is linked with, rows of length one; computed when they are asked for.

    Args:
        matrix: Ŝ.
        columns: ascending ids of the nodes that are looked for; None: all.
    """

    def __init__(self, matrix: Any, columns: NDArray[np.int64] | None = None) -> None:
        self.matrix = matrix
        self.columns = columns
        n_nodes = matrix.shape[0]
        self.shape = (n_nodes, n_nodes if columns is None else len(columns))
        self.home = home_of(matrix)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, nodes: Any) -> sparse.csr_matrix:
        rows = self.matrix[nodes]
        ids = Nodes(len(self))[nodes]
        own = np.repeat(ids, np.diff(rows.indptr)) == rows.indices
        values = np.where(own, np.float32(0), rows.data)
        rows = sparse.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        scale = (1.0 / np.maximum(lengths, 1e-12)).astype(np.float32)
        rows.data = rows.data * np.repeat(scale, np.diff(rows.indptr))
        if self.columns is not None:
            return _columns_of(rows, self.columns)
        rows.eliminate_zeros()
        return rows


def _columns_of(rows: sparse.csr_matrix, columns: NDArray[np.int64]) -> sparse.csr_matrix:
    place = np.minimum(np.searchsorted(columns, rows.indices), max(0, len(columns) - 1))
    chosen = (columns[place] == rows.indices) & (rows.data != 0)
    ends = np.concatenate([[0], np.cumsum(chosen)])[rows.indptr]
    shape = (rows.shape[0], len(columns))
    return sparse.csr_matrix((rows.data[chosen], place[chosen], ends), shape=shape)


def kept(values: Any) -> Any:
    """The values as they are kept: from `halved` numbers on with 16 bits each, where these can
    hold the largest and do not round it to the step of the smallest."""
    if values.size < STREAM.halved:
        return values
    fits = 2.0**-6 <= fold(_largest, values, combine=max) <= 2.0**15
    return rowwise(_halved, values) if fits else values


def _largest(part: Array) -> float:
    return max(float(part.max()), -float(part.min()))


def _halved(part: Array) -> NDArray[np.float16]:
    return part.astype(np.float16)


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

    @property
    def home(self) -> Any:
        return home_of(self.values)

    @property
    def root(self) -> Any:
        """The array, or products, that functions of rows are taken of."""
        return self.values.root if isinstance(self.values, Layers) else self.values

    def __len__(self) -> int:
        return int(self.shape[0])

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

    def written(self) -> Any:
        """All of it, as an array of its own."""
        return rowwise(np.asarray, self)

    def keep_last(self) -> None:
        """Let go of all sets but the last."""
        if hasattr(self.values, "keep_last"):
            self.values.keep_last()
        else:
            self.values = rowwise(_last, self.values)


def _last(part: Array) -> Array:
    return part[:, LAST]


class Sets:
    """Some sets of several layers, side by side in a list: rows of all of them at once.

    Args:
        layers: each of shape (N, S, C).
        sets: which of S.
    """

    def __init__(self, layers: list[Layers], sets: slice) -> None:
        self.layers = layers
        self.sets = sets
        self.home = home_of(*layers)

    def __getitem__(self, rows: Any) -> list[Array]:
        return [layer[rows, self.sets] for layer in self.layers]


class Repeated:
    """One array (N, C) for each of some sets, without a copy.

    Args:
        values: shape (N, C).
        n_sets: S.
    """

    def __init__(self, values: Any, n_sets: int) -> None:
        self.values = values
        self.shape = (len(values), n_sets, values.shape[1])
        self.home = home_of(values)

    def __getitem__(self, key: tuple[Any, slice]) -> Array:
        nodes, sets = key
        part = self.values[nodes][:, None, :]
        return np.broadcast_to(part, (len(part), *self.shape[1:]))[:, sets]

    def keep_last(self) -> None:
        """Let go of all sets but the last."""
        self.shape = (self.shape[0], 1, self.shape[2])


class Products:
    """Σ_k features_k · weights_k + offsets for every set, shape (N, S, C).

    Args:
        views: of the features.
        weights: of each view, shape (d_k, S, C).
        offsets: shape (S, C).
    """

    def __init__(self, views: list[View], weights: list[Array], offsets: Array) -> None:
        self._offsets = offsets
        self.shape = (views[0].features.shape[0], *offsets.shape)
        pairs: list[Any] = list(zip(views, weights, strict=True))
        self._own: list[Any] = []
        self._made: list[Any] = []
        if home_of(*(view.features for view in views)) is not None:
            pairs = _in_one_look(pairs)
            self._made = [view.features.reshape(self.shape) for view, _ in pairs if not view.hops]
        else:
            self._own = [_read(view.features, weight) for view, weight in pairs if not view.hops]
        far = _walked([pair for pair in pairs if pair[0].hops], self.shape)
        self._made = ([] if far is None else [far]) + self._made

    @property
    def home(self) -> Any:
        return home_of(*self._made)

    def __getitem__(self, key: Any) -> Array:
        nodes, sets = key
        offsets = self._offsets[sets]
        found: Any = 0.0
        for array in self._made:
            found = found + array[nodes, sets]
        for features, weight in self._own:
            chosen = np.ascontiguousarray(weight[:, sets]).reshape(len(weight), offsets.size)
            product = np.asarray(features[nodes] @ chosen)
            found = found + product.reshape(len(product), *offsets.shape)
        return np.asarray(found + offsets)

    def keep_last(self) -> None:
        """Let go of all sets but the last."""
        self._own = [(features, weight[:, LAST].copy()) for features, weight in self._own]
        self._made = [rowwise(_last, array) for array in self._made]


def _in_one_look(pairs: list[tuple[View, Array]]) -> list[tuple[View, None]]:
    """On a cluster: views of the products with the weights, for which each array is read once."""
    arrays = list({id(view.features): view.features for view, _ in pairs}.values())
    ids = [id(array) for array in arrays]
    wanted = [(ids.index(id(view.features)), w.reshape(len(w), -1)) for view, w in pairs]

    def products(*parts: Any) -> Array:
        return np.concatenate([np.asarray(parts[i] @ weight) for i, weight in wanted], axis=1)

    joined = rowwise(products, *arrays)
    width = joined.shape[1] // len(pairs)
    views = []
    for number, (view, _) in enumerate(pairs):
        columns = slice(number * width, (number + 1) * width)
        views.append(View(rowwise(partial(_columns, columns), joined), view.matrix, view.hops))
    return [(view, None) for view in views]


def _columns(columns: slice, part: Array) -> Array:
    return part[:, columns]


def _read(features: Any, weight: Array) -> tuple[Any, Array]:
    """Both without columns of sparse features that have no weight: few nodes are linked with a
    labelled one."""
    if not sparse.issparse(features):
        return features, weight
    columns = np.flatnonzero(weight.any(axis=(1, 2)))
    return features[:, columns], weight[columns]


def _added(features: Any, weight: Array | None, found: Any) -> Any:
    """found + features · weight, by blocks of rows; written over what was found."""

    def product(part: Any, *before: Array) -> Array:
        return sum(before, part if weight is None else np.asarray(part @ weight))

    arrays = (features,) if found is None else (features, found)
    return rowwise(product, *arrays, out=found)


def _walked(pairs: list[tuple[View, Any]], shape: tuple[int, ...]) -> Any:
    """Products with what lies some hops away: the farthest are walked together with the nearer."""
    found: Any = None
    for hops in range(max((view.hops for view, _ in pairs), default=0), 0, -1):
        for view, weight in pairs:
            if view.hops == hops:
                flat = None if weight is None else weight.reshape(len(weight), -1)
                found = _added(view.features, flat, found)
        if found is not None:
            found = multiply(pairs[0][0].matrix, found)
    return None if found is None else kept(found.reshape(shape))
