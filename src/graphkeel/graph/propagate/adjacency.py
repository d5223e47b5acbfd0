"""The graph as a sparse matrix that spreads: edges both ways and once each, a loop at every node,
normalised.

Everything here takes time and memory linear in the edges: they are counted into their rows, never
compared in a sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.core.names import check_name
from graphkeel.graph.propagate.counting_sort import (
    by_row,
    by_row_and_column,
    with_spare,
)

NORMS = ("sym", "row")
Ids = NDArray[np.int64]


def normalise(
    edge_index: ArrayLike,
    n_nodes: int,
    norm: str = "sym",
    *,
    dtype: DTypeLike = np.float32,
    self_links: Ids | None = None,
) -> sparse.csr_matrix:
    """Ŝ = D^-1/2 (A + I) D^-1/2 for `sym`, D^-1 (A + I) for `row`, with D the degrees of A + I.

    Args:
        edge_index: integers of shape (2, E); taken both ways and once each, so A is symmetric
            whatever it says.
        n_nodes: N; the matrix has shape (N, N).
        norm: one of `NORMS`.
        dtype: float32, or float64 where last bits matter.
        self_links: nodes, shape (k,), whose loop counts twice, as if A already had one there.
    """
    check_name("norm", norm, NORMS)
    starts, columns = pattern(_checked(edge_index, n_nodes), n_nodes)
    degrees = np.diff(starts).astype(dtype)
    if self_links is not None:
        degrees[self_links] += 1
    scale = entry_scale(degrees, norm)
    values = _entry_values(starts, columns, scale, norm == "sym")
    matrix = _matrix(starts, columns, values, n_nodes)
    if self_links is not None:
        matrix.setdiag(matrix.diagonal() * _loops(n_nodes, self_links))
    return matrix


def _loops(n_nodes: int, self_links: Ids) -> NDArray[np.float64]:
    loops = np.ones(n_nodes)
    loops[self_links] += 1.0
    return loops


def entry_scale(degrees: NDArray[Any], norm: str) -> NDArray[Any]:
    """The factor of a row's entries (for `sym`, an entry of a column as well).

    Args:
        degrees: shape (N,).
    """
    root = np.sqrt(degrees) if norm == "sym" else degrees
    return (1.0 / root).astype(degrees.dtype)


def normalise_as_given(edge_index: ArrayLike, n_nodes: int) -> sparse.csr_matrix:
    """The matrix that graph convolutions multiply by: edges from source to target as they are
    given, repeats counted.

    Loops are replaced by one a node, and D counts what arrives: D^-1/2 (Aᵀ + I) D^-1/2.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
    """
    source, target = _checked(edge_index, n_nodes)
    starts, columns = by_row(target, source, n_nodes, loops_first=True)
    scale = entry_scale(np.diff(starts).astype(np.float32), "sym")
    values = _entry_values(starts, columns, scale, True)
    return _matrix(starts, columns, values, n_nodes, canonical=False)


def neighbours(edge_index: ArrayLike, n_nodes: int) -> sparse.csr_matrix:
    """A[i, j] = 1 where an edge joins i and j, in either direction; the diagonal is left out.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
    """
    starts, columns = pattern(_checked(edge_index, n_nodes), n_nodes, loops=False)
    return _matrix(starts, columns, np.ones(len(columns), dtype=np.int8), n_nodes)


def pattern(edge_index: Ids, n_nodes: int, *, loops: bool = True) -> tuple[Ids, NDArray[np.int32]]:
    """Row starts and sorted columns of A + I (of A, without `loops`), each neighbour once.

    Args:
        edge_index: int64, shape (2, E).
    """
    source, target = edge_index
    leaving = by_row_and_column(source, target, n_nodes)
    # sources in rising order for each target, as they are met in that order
    arriving = (
        by_row(target, source, n_nodes) if leaving[1] is target else _transposed(*leaving, n_nodes)
    )
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    # enough for the case that no edge is given both ways; pages that stay untouched take no memory
    columns = np.empty(2 * len(source) + loops * n_nodes, dtype=np.int32)
    _merge_rows(*leaving, *arriving, loops, starts, columns)
    return starts, columns[: starts[-1]]


def _transposed(starts: Ids, columns: NDArray[Any], n_nodes: int) -> tuple[Ids, NDArray[np.int32]]:
    return by_row(columns, np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(starts)), n_nodes)


@njit(cache=True, nogil=True)
def _merge_rows(
    starts_a: Ids,
    columns_a: NDArray[Any],
    starts_b: Ids,
    columns_b: NDArray[Any],
    loops: bool,
    starts: Ids,
    columns: NDArray[np.int32],
) -> None:  # pragma: no cover - compiled
    """The union of two rows of rising columns, row by row, with or without the row's own number."""
    end = 0
    for i in range(len(starts) - 1):
        a = starts_a[i]
        last_a = starts_a[i + 1]
        b = starts_b[i]
        last_b = starts_b[i + 1]
        own = loops
        last = np.int64(-1)
        while a < last_a or b < last_b:
            if b == last_b or (a < last_a and columns_a[a] <= columns_b[b]):
                j = np.int64(columns_a[a])
                a += 1
            else:
                j = np.int64(columns_b[b])
                b += 1
            if j in (last, i):
                continue
            if own and j > i:
                columns[end] = i
                end += 1
                own = False
            columns[end] = j
            last = j
            end += 1
        if own:
            columns[end] = i
            end += 1
        starts[i + 1] = end


def _entry_values(
    starts: Ids, columns: NDArray[np.int32], scale: NDArray[Any], both: bool
) -> NDArray[Any]:
    """For each entry its row's scale, times its column's.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
        columns: int64, shape (k,).
        scale: of rows and columns, shape (N,).
    """
    values = with_spare(int(starts[-1]), scale.dtype)
    _write_values(starts, columns, scale, both, values)
    return values


@njit(cache=True, nogil=True)
def _write_values(
    starts: Ids, columns: NDArray[np.int32], scale: NDArray[Any], both: bool, values: NDArray[Any]
) -> None:  # pragma: no cover - compiled
    for i in range(len(starts) - 1):
        for p in range(starts[i], starts[i + 1]):
            values[p] = scale[i] * scale[columns[p]] if both else scale[i]


def _matrix(
    starts: Ids,
    columns: NDArray[np.int32],
    values: NDArray[Any],
    n_nodes: int,
    *,
    canonical: bool = True,
) -> sparse.csr_matrix:
    narrow = starts.astype(np.int32) if starts[-1] < np.iinfo(np.int32).max else starts
    matrix = sparse.csr_matrix((n_nodes, n_nodes), dtype=values.dtype)
    # set, not passed: the constructor would widen the columns to the starts' type, twice the memory
    matrix.indptr = narrow
    matrix.indices = columns
    matrix.data = values
    matrix.has_sorted_indices = matrix.has_canonical_format = canonical
    return matrix


def _checked(edge_index: ArrayLike, n_nodes: int) -> Ids:
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise DataError(
            "edge_index must be integers of shape (2, edges)", got=f"{edges.dtype}, {edges.shape}"
        )
    if not 0 < n_nodes < np.iinfo(np.int32).max:
        raise DataError("a graph has between 1 and 2^31 - 2 nodes here", got=n_nodes)
    if edges.size and not 0 <= int(edges.min()) <= int(edges.max()) < n_nodes:
        raise DataError(
            f"edge_index must hold node ids in 0..{n_nodes - 1}",
            got=f"{edges.min()} to {edges.max()}",
        )
    return edges.astype(np.int64, copy=False)
