"""The local engine: sparse products in row blocks on all cores, features streamed in column blocks.

A hop needs every node's row, but no column needs another: so columns are what is cut into pieces.
All hops of a column block run in memory, and only the first values and the last ones touch the
disk."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.graph.propagate.products import empty, prepared, rows_times, some_rows_times
from graphkeel.graph.propagate.row_blocks import on_all_cores

Array = NDArray[np.float32]

WORKING_MEMORY = 2 * 2**30  # bytes for the column blocks in work, unless a block is given
# column blocks alive at once: the values, the current and the following ones; a teleport adds one
_BUFFERS = 3
_LINE = 16  # columns that fill a cache line; blocks of other widths have rows that lie across two
_ROWS = 1 << 16  # rows read or written at once


def multiply(matrix: sparse.csr_matrix, values: Array, out: Array | None = None) -> Array:
    """matrix @ values, row blocks on all cores. Each row is summed in the order of its columns,
    however it is cut.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
        out: an array to write to, shape (N, k).
    """
    result = empty(matrix.shape[0], values.shape[1]) if out is None else out
    dense = prepared(values)

    def piece(rows: slice) -> None:
        rows_times(
            matrix.indptr[rows.start : rows.stop + 1],
            matrix.indices,
            matrix.data,
            dense,
            result[rows],
        )

    on_all_cores(piece, matrix.indptr, values.shape[1])
    return result


def hops_of(matrix: sparse.csr_matrix, values: Array, hops: int, teleport: float = 0.0) -> Array:
    """Z ← (1−a)·ŜZ + a·values, `hops` times from Z = values; with a = 0 simply Ŝ^hops · values.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
    """
    current = values
    spare: Array | None = None
    for _ in range(hops):
        following = multiply(matrix, current, spare)
        if teleport:
            add_teleport(following, values, teleport)
        spare = None if current is values else current
        current = following
    return current


def add_teleport(spread: Array, values: Array, teleport: float) -> Array:
    """spread ← (1−a)·spread + a·values, in place: the step of personalised PageRank.

    Args:
        spread: what the hop gave, shape (N, k); written.
        values: float32, shape (N, k).
    """
    spread *= np.float32(1.0 - teleport)
    spread += np.float32(teleport) * values
    return spread


def rows_after(
    matrix: sparse.csr_matrix, values: Array, hops: int, nodes: NDArray[np.int64]
) -> Array:
    """The rows of Ŝ^hops · values at some nodes; each hop computes only the rows that the next ones
    look at.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
        hops: K.
        nodes: node ids, int64, shape (k,).
    """
    if not hops:
        return np.asarray(values[nodes])
    needed = [nodes]
    for _ in range(hops - 1):
        needed.append(_looked_at(matrix, needed[-1]))
    current = values
    for rows in reversed(needed[1:]):
        current = _at_least(rows, matrix, current)
    found = empty(len(nodes), values.shape[1])
    write_rows(matrix, current, nodes, found, np.arange(len(nodes)))
    return found


def write_rows(
    matrix: sparse.csr_matrix,
    values: Array,
    nodes: NDArray[np.int64],
    out: Array,
    places: NDArray[np.int64] | None = None,
) -> None:
    """out[places] = (matrix @ values)[nodes], on all cores.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
        nodes: node ids, int64, shape (m,).
        out: float32, k columns; written.
        places: the row of `out` for each; None: at the nodes themselves.
    """
    dense = prepared(values)
    where = nodes if places is None else places
    n_entries = np.diff(matrix.indptr)[nodes]

    def piece(rows: slice) -> None:
        some_rows_times(
            matrix.indptr, matrix.indices, matrix.data, nodes[rows], dense, where[rows], out
        )

    on_all_cores(piece, np.concatenate([[0], np.cumsum(n_entries)]), values.shape[1])


def _looked_at(matrix: sparse.csr_matrix, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The columns of some rows, each once; marked, not sorted."""
    marked = np.zeros(matrix.shape[1], dtype=bool)
    marked[matrix[rows].indices] = True
    return np.flatnonzero(marked)


def _at_least(rows: NDArray[np.int64], matrix: sparse.csr_matrix, values: Array) -> Array:
    """matrix @ values in an array of full height that is right at these rows."""
    if 2 * len(rows) > matrix.shape[0]:  # picking them out would cost more than all the others
        return multiply(matrix, values)
    following = np.zeros(
        (matrix.shape[0], values.shape[1]), dtype=np.float32
    )  # pages of rows unused cost nothing
    write_rows(matrix, values, rows, following)
    return following


def stream(
    matrix: sparse.csr_matrix, x: Array, out: Array, hops: int, teleport: float, block: int | None
) -> None:
    """All hops, one block of columns after the other; x and out may lie on disk.

    Args:
        matrix: sparse, float32, shape (N, N).
        x: features, float32, shape (N, d).
        out: written, shape (N, d).
    """
    width = block or _width(x.shape[0], _BUFFERS + bool(teleport))
    for first in range(0, x.shape[1], width):
        columns = slice(first, min(first + width, x.shape[1]))
        _write(out, columns, hops_of(matrix, _read(x, columns), hops, teleport))


def _width(n_rows: int, buffers: int) -> int:
    """As many columns as the working memory holds, in whole cache lines where there is room for
    one."""
    room = max(1, WORKING_MEMORY // (buffers * 4 * max(1, n_rows)))
    return room - room % _LINE if room >= _LINE else room


def _read(x: Array, columns: slice) -> Array:
    """A column block as an array of its own; a mapped file is read through in order and its pages
    handed back."""
    values = empty(x.shape[0], columns.stop - columns.start)
    for rows in _row_blocks(x.shape[0]):
        values[rows] = x[rows, columns]
        _release(x)
    return values


def _write(out: Array, columns: slice, values: Array) -> None:
    for rows in _row_blocks(out.shape[0]):
        out[rows, columns] = values[rows]
        if isinstance(out, np.memmap):
            out.flush()
            _release(out)


def _release(array: Array) -> None:
    """Let the system take back the pages of a mapped file: they are on disk, and would count as
    ours."""
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
        with contextlib.suppress(OSError, ValueError):
            mapped.madvise(mmap.MADV_DONTNEED)


def _row_blocks(n_rows: int) -> Iterator[slice]:
    for first in range(0, n_rows, _ROWS):
        yield slice(first, min(first + _ROWS, n_rows))
