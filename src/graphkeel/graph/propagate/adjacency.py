"""The graph as a sparse matrix that spreads: edges both ways and once each, a loop at every node,
normalised.

Everything here takes time and memory linear in the edges: they are counted into their rows, never
compared in a sort."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph.propagate.counting_sort import (
    by_row,
    by_row_and_column,
    grown_in_place,
    with_room_behind,
)
from graphkeel.graph.propagate.memory_moves import move

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
    if norm not in NORMS:
        raise ConfigError(f"norm must be one of {', '.join(NORMS)}", got=repr(norm))
    starts, columns = pattern(_checked(edge_index, n_nodes), n_nodes)
    degrees = np.diff(starts).astype(dtype)
    if self_links is not None:
        degrees[self_links] += 1
    scale = entry_scale(degrees, norm)
    values = entry_values(starts, columns, scale, norm == "sym")
    matrix = _matrix(starts, columns, values, n_nodes)
    if self_links is not None:
        matrix.setdiag(matrix.diagonal() * _loops(n_nodes, self_links))
    return matrix


def _loops(n_nodes: int, self_links: Ids) -> NDArray[np.float64]:
    loops = np.ones(n_nodes)
    loops[self_links] += 1.0
    return loops


def entry_scale(degrees: NDArray[Any], norm: str) -> NDArray[Any]:
    """What an entry of a row is multiplied by (for `sym`, an entry of a column as well).

    Args:
        degrees: shape (N,).
        norm: one of `NORMS`.
    """
    root = np.sqrt(degrees) if norm == "sym" else degrees
    return (1.0 / root).astype(degrees.dtype)


def normalise_as_given(edge_index: ArrayLike, n_nodes: int) -> sparse.csr_matrix:
    """What graph convolutions multiply by: edges from source to target as they are given, repeats
    counted.

    Loops are replaced by one a node, and D counts what arrives: D^-1/2 (Aᵀ + I) D^-1/2.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
    """
    source, target = _checked(edge_index, n_nodes)
    starts, columns = by_row(target, source, n_nodes, loops_first=True)
    scale = entry_scale(np.diff(starts).astype(np.float32), "sym")
    values = entry_values(starts, columns, scale, True)
    return _matrix(starts, columns, values, n_nodes, canonical=False)


# ---- a graph that has grown


def near_ends(matrix: sparse.csr_matrix, added: ArrayLike, n_nodes: int) -> NDArray[np.bool_]:
    """The rows that further edges may change: those of their ends and of the ends' neighbours,
    bool, shape (N,).

    Args:
        matrix: what `normalise` made of the edges there were, shape (n, n).
        added: further edges, int64, shape (2, k).
        n_nodes: N; the nodes n..N-1 are new.
    """
    near = np.zeros(n_nodes, dtype=bool)
    near[matrix.shape[0] :] = True
    near[np.asarray(added).ravel()] = True
    ends = np.flatnonzero(near)
    near[matrix[ends[ends < matrix.shape[0]]].indices] = True
    return near


@dataclass(frozen=True, eq=False)
class Growth:
    """A matrix that has grown, all memory at hand; its rows are there once `write` was called.

    Attributes:
        matrix: as it will be, shape (N, N).
        changed: which rows will be others than they were, bool, shape (N,).
        write: moves the rows to their places; lets other threads run and asks for next to no
            memory.
    """

    matrix: sparse.csr_matrix
    changed: NDArray[np.bool_]
    write: Callable[[], None]


def grown(
    matrix: sparse.csr_matrix, added: ArrayLike, n_nodes: int, near: NDArray[np.bool_]
) -> Growth:
    """What `normalise` would make of the edges of a matrix that it made and further ones. The
    memory of the matrix is used where it has the room: the matrix is of no use afterwards.

    Args:
        matrix: D^-1/2 (A + I) D^-1/2, float32, shape (n, n).
        added: further edges, int64, shape (2, k).
        n_nodes: N; the nodes n..N-1 are new.
        near: what `near_ends` says of these edges; other rows are copied.
    """
    source, target = _checked(added, n_nodes)
    rows = np.concatenate([source, target])
    columns = np.concatenate([target, source])
    is_loop = rows == columns
    keys = np.unique(rows[~is_loop] * n_nodes + columns[~is_loop])
    more = by_row(keys // n_nodes, keys % n_nodes, n_nodes)
    return _grown(matrix, more, n_nodes, near, canonical=True)


def grown_as_given(
    matrix: sparse.csr_matrix, added: ArrayLike, n_nodes: int, near: NDArray[np.bool_]
) -> Growth:
    """The same for a matrix that `normalise_as_given` made; the edges came after all others.

    Args:
        matrix: D^-1/2 (Aᵀ + I) D^-1/2, float32, shape (n, n).
        added: further edges, int64, shape (2, k).
        n_nodes: N; the nodes n..N-1 are new.
        near: what `near_ends` says of these edges.
    """
    source, target = _checked(added, n_nodes)
    is_loop = source == target
    more = by_row(target[~is_loop], source[~is_loop], n_nodes)
    return _grown(matrix, more, n_nodes, near, canonical=False)


def _grown(
    matrix: sparse.csr_matrix,
    more: tuple[Ids, NDArray[np.int32]],
    n_nodes: int,
    near: NDArray[np.bool_],
    *,
    canonical: bool,
) -> Growth:
    """Rows of the matrix, joined with further entries: sorted and each once (`canonical`), or
    appended. Values are computed where a degree has changed, else moved."""
    n_old = matrix.shape[0]
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    _count_rows(matrix.indptr, matrix.indices, *more, n_old, canonical, starts)
    degrees = np.diff(starts)
    before = np.diff(matrix.indptr)
    changed = np.ones(n_nodes, dtype=bool)
    changed[:n_old] = degrees[:n_old] != before
    columns = grown_in_place(matrix.indices, int(starts[-1]))
    values = grown_in_place(matrix.data, int(starts[-1]))
    write = functools.partial(
        _move_rows,
        matrix.indptr, matrix.indices, matrix.data, *more, n_old, canonical, near,
        changed.copy(), entry_scale(degrees.astype(np.float32), "sym"), int(before.max()),
        starts, columns, values, changed,
    )  # fmt: skip
    later = _matrix(starts, columns, values, n_nodes, canonical=canonical)
    return Growth(later, changed, write)


@njit(cache=True, nogil=True)
def _count_rows(
    starts_a: NDArray[Any],
    columns_a: NDArray[Any],
    starts_b: Ids,
    columns_b: NDArray[Any],
    n_old: int,
    once: bool,
    starts: Ids,
) -> None:  # pragma: no cover - compiled
    """Row starts of the joined matrix; a new row has a loop."""
    for i in range(len(starts) - 1):
        length = starts_a[i + 1] - starts_a[i] if i < n_old else 1
        for b in range(starts_b[i], starts_b[i + 1]):
            is_new = True
            if once and i < n_old:
                for a in range(starts_a[i], starts_a[i + 1]):
                    if columns_a[a] == columns_b[b]:
                        is_new = False
                        break
            length += is_new
        starts[i + 1] = starts[i] + length


@njit(cache=True, nogil=True)
def _move_rows(
    starts_a: NDArray[Any],
    columns_a: NDArray[Any],
    values_a: NDArray[np.float32],
    starts_b: Ids,
    columns_b: NDArray[Any],
    n_old: int,
    once: bool,
    near: NDArray[np.bool_],
    moved: NDArray[np.bool_],
    scale: NDArray[np.float32],
    longest: int,
    starts: Ids,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    changed: NDArray[np.bool_],
) -> None:  # pragma: no cover - compiled
    """Writes the joined rows and marks those that have changed.

    The result may lie where the old rows lie: no row begins before its old place, so they are moved
    from the last to the first, all rows between two that have become longer at once. `near` says
    where anything may have changed, `moved` whose degree is another; values of entries without such
    an end are kept."""
    row = np.empty(longest, dtype=np.int32)
    stop = len(starts) - 1
    for i in range(len(starts) - 2, -1, -1):
        if i < n_old and not moved[i]:
            continue
        _move_run(
            starts_a, columns_a, values_a, i + 1, stop, near, moved, scale, starts, columns, values,
            changed,
        )  # fmt: skip
        stop = i
        length = 0
        if i < n_old:
            first = starts_a[i]
            length = starts_a[i + 1] - first
            row[:length] = columns_a[first : first + length]
        _join_row(i, n_old, row, length, starts_b, columns_b, once, scale, starts, columns, values)
    _move_run(
        starts_a, columns_a, values_a, 0, stop, near, moved, scale, starts, columns, values, changed
    )


@njit(cache=True, nogil=True)
def _move_run(
    starts_a: NDArray[Any],
    columns_a: NDArray[Any],
    values_a: NDArray[np.float32],
    first: int,
    stop: int,
    near: NDArray[np.bool_],
    moved: NDArray[np.bool_],
    scale: NDArray[np.float32],
    starts: Ids,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    changed: NDArray[np.bool_],
) -> None:  # pragma: no cover - compiled
    """Moves rows first..stop-1, none of which has become longer; writes the values that have an end
    of another degree, and marks their rows."""
    if first >= stop:
        return
    start = np.int64(starts_a[first])
    count = np.int64(starts_a[stop]) - start
    move(columns, starts[first], columns_a, start, count)  # type: ignore[call-arg]
    move(values, starts[first], values_a, start, count)  # type: ignore[call-arg]
    for i in range(first, stop):
        if near[i]:
            for p in range(starts[i], starts[i + 1]):
                j = columns[p]
                if moved[j]:
                    changed[i] = True
                    values[p] = scale[i] * scale[j]


@njit(cache=True, nogil=True)
def _join_row(
    i: int,
    n_old: int,
    row: NDArray[np.int32],
    length: int,
    starts_b: Ids,
    columns_b: NDArray[Any],
    once: bool,
    scale: NDArray[np.float32],
    starts: Ids,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None:  # pragma: no cover - compiled
    """Writes a row that is new or has become longer: its old columns, the first `length` of `row`,
    and those that were added; a new row has a loop."""
    start = starts[i]
    a = 0
    b = starts_b[i]
    last_b = starts_b[i + 1]
    loop = i >= n_old
    while a < length or b < last_b or loop:
        # the next column: the loop of a new row first of all where rows are not sorted
        if loop and (not once or b == last_b or i < columns_b[b]):
            j = i
            loop = False
        elif b == last_b or (a < length and (not once or row[a] <= columns_b[b])):
            j = row[a]
            a += 1
            if once and b < last_b and columns_b[b] == j:
                b += 1
        else:
            j = columns_b[b]
            b += 1
        columns[start] = j
        values[start] = scale[i] * scale[j]
        start += 1


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
        n_nodes: N.
        loops: whether every node gets a loop.
    """
    source, target = edge_index
    leaving = by_row_and_column(source, target, n_nodes)
    # sources in rising order for each target, as they are met in that order
    arriving = (
        by_row(target, source, n_nodes) if leaving[1] is target else _transposed(*leaving, n_nodes)
    )
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    # room for the case that no edge is given both ways; pages that stay untouched take no memory
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


def entry_values(
    starts: Ids, columns: NDArray[np.int32], scale: NDArray[Any], both: bool
) -> NDArray[Any]:
    """For each entry its row's scale, times its column's.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
        columns: int64, shape (k,).
        scale: of rows and columns, shape (N,).
        both: whether the column's scale counts, too.
    """
    values = with_room_behind(int(starts[-1]), scale.dtype)
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
