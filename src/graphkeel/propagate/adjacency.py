"""The graph as a sparse matrix that spreads: edges both ways and once each, a loop at every node, normalised.

Everything here takes time and memory linear in the edges: edges are counted into their rows, never sorted as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from graphkeel.errors import ConfigError, DataError

NORMS = ("sym", "row")
Ids = NDArray[np.int64]


def normalise(edge_index: ArrayLike, n_nodes: int, norm: str = "sym") -> sparse.csr_matrix:
    """Ŝ in float32: D^-1/2 (A + I) D^-1/2 for `sym`, D^-1 (A + I) for `row`, with D the degrees of A + I.

    Args:
        edge_index: (2, E) integers; taken both ways and once each, so A is symmetric whatever it says.
    """
    if norm not in NORMS:
        raise ConfigError(f"norm must be one of {', '.join(NORMS)}", got=repr(norm))
    starts, columns = pattern(_checked(edge_index, n_nodes), n_nodes)
    degrees = np.diff(starts)
    root = np.sqrt(degrees.astype(np.float32)) if norm == "sym" else degrees.astype(np.float32)
    scale = (1.0 / root).astype(np.float32)
    values = np.repeat(scale, degrees)
    if norm == "sym":
        _scale_columns(values, columns, scale)
    return _matrix(starts, columns, values, n_nodes)


def normalise_as_given(edge_index: ArrayLike, n_nodes: int) -> sparse.csr_matrix:
    """What graph convolutions multiply by: edges from source to target as they are given, repeats counted.

    Loops are replaced by one a node, and D counts what arrives: D^-1/2 (Aᵀ + I) D^-1/2.
    """
    source, target = _checked(edge_index, n_nodes)
    degrees = np.ones(n_nodes, dtype=np.int64)
    degrees += np.bincount(target, minlength=n_nodes)
    loops = source == target
    if loops.any():
        degrees -= np.bincount(target[loops], minlength=n_nodes)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    columns = np.empty(starts[-1], dtype=np.int32)
    _place_arriving(source, target, starts[:-1].copy(), columns)
    scale = (1.0 / np.sqrt(degrees.astype(np.float32))).astype(np.float32)
    values = np.repeat(scale, degrees)
    _scale_columns(values, columns, scale)
    return _matrix(starts, columns, values, n_nodes, canonical=False)


def neighbours(edge_index: ArrayLike, n_nodes: int) -> sparse.csr_matrix:
    """A[i, j] = 1 where an edge joins i and j, in either direction; the diagonal is left out."""
    starts, columns = pattern(_checked(edge_index, n_nodes), n_nodes)
    rows = np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(starts))
    bare = columns[rows != columns]
    del rows, columns
    starts -= np.arange(n_nodes + 1)  # every row had one loop
    return _matrix(starts, bare, np.ones(len(bare), dtype=np.int8), n_nodes)


def pattern(edge_index: Ids, n_nodes: int) -> tuple[Ids, NDArray[np.int32]]:
    """Row starts and sorted columns of A + I, each neighbour once."""
    source, target = edge_index
    counts = np.ones(n_nodes, dtype=np.int64)  # the loops
    counts += np.bincount(source, minlength=n_nodes)
    counts += np.bincount(target, minlength=n_nodes)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = np.empty(starts[-1], dtype=np.int32)
    _place(source, target, starts[:-1].copy(), columns)
    kept = _sort_rows(starts, columns)
    return np.concatenate([[0], np.cumsum(kept)]), columns[: kept.sum()].copy()


@njit(cache=True, nogil=True)
def _place(source: Ids, target: Ids, cursor: Ids, columns: NDArray[np.int32]) -> None:  # pragma: no cover - compiled
    """Counting sort: every edge goes to the next free place of its two rows, after the row's own loop."""
    for i in range(len(cursor)):
        columns[cursor[i]] = i
        cursor[i] += 1
    for e in range(len(source)):
        i, j = source[e], target[e]
        columns[cursor[i]] = j
        cursor[i] += 1
        columns[cursor[j]] = i
        cursor[j] += 1


@njit(cache=True, nogil=True)
def _place_arriving(
    source: Ids, target: Ids, cursor: Ids, columns: NDArray[np.int32]
) -> None:  # pragma: no cover - compiled
    """The same for the edges that arrive at a row, its own loop first."""
    for i in range(len(cursor)):
        columns[cursor[i]] = i
        cursor[i] += 1
    for e in range(len(source)):
        if source[e] != target[e]:
            columns[cursor[target[e]]] = source[e]
            cursor[target[e]] += 1


@njit(cache=True, nogil=True)
def _sort_rows(starts: Ids, columns: NDArray[np.int32]) -> Ids:  # pragma: no cover - compiled
    """Sort each row, drop repeats and move the rows together, in place; returns the rows' lengths."""
    n = len(starts) - 1
    kept = np.zeros(n, dtype=np.int64)
    end = 0
    for i in range(n):
        row = np.sort(columns[starts[i] : starts[i + 1]])
        last = -1
        for j in row:
            if j != last:
                columns[end] = j
                end += 1
                kept[i] += 1
                last = j
    return kept


@njit(cache=True, nogil=True)
def _scale_columns(
    values: NDArray[np.float32], columns: NDArray[np.int32], scale: NDArray[np.float32]
) -> None:  # pragma: no cover - compiled
    for p in range(len(values)):
        values[p] *= scale[columns[p]]


def _matrix(
    starts: Ids, columns: NDArray[np.int32], values: NDArray[Any], n_nodes: int, *, canonical: bool = True
) -> sparse.csr_matrix:
    narrow = starts.astype(np.int32) if starts[-1] < np.iinfo(np.int32).max else starts
    matrix = sparse.csr_matrix((n_nodes, n_nodes), dtype=values.dtype)
    # set, not passed: the constructor would widen the columns to the starts' type, twice the memory
    matrix.indptr, matrix.indices, matrix.data = narrow, columns, values
    matrix.has_sorted_indices = matrix.has_canonical_format = canonical
    return matrix


def _checked(edge_index: ArrayLike, n_nodes: int) -> Ids:
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise DataError("edge_index must be integers of shape (2, edges)", got=f"{edges.dtype}, {edges.shape}")
    if not 0 < n_nodes < np.iinfo(np.int32).max:
        raise DataError("a graph has between 1 and 2^31 - 2 nodes here", got=n_nodes)
    if edges.size and not 0 <= int(edges.min()) <= int(edges.max()) < n_nodes:
        raise DataError(f"edge_index must hold node ids in 0..{n_nodes - 1}", got=f"{edges.min()} to {edges.max()}")
    return edges.astype(np.int64, copy=False)
