"""Rows of a sparse matrix times a dense one, for operands that do not fit into the cache.

Each entry needs a row from anywhere in the dense matrix. The processor overlaps few such waits by
itself, so rows are asked for a good while before their turn. They begin on cache lines and, where
they are narrow, never lie across two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.graph.propagate.memory_moves import prefetch

Array = NDArray[np.float32]

NARROW = 8  # columns; fewer are filled up
_LINE = 64  # bytes
_SEVERAL_LINES = 64  # columns, beyond which a row that begins inside a line costs little more
_AHEAD = 48  # entries from asking for a row to using it
_ROWS_AHEAD = 2  # rows from asking for what an entry needs to using it


def prepared(values: Array) -> Array:
    """The dense operand as `rows_times` wants it: rows together, narrow ones padded and aligned.

    Args:
        values: shape (N, k).
    """
    n_rows, width = values.shape
    if width > NARROW:
        together = np.ascontiguousarray(values, dtype=np.float32)
        return (
            together
            if width > _SEVERAL_LINES or together.ctypes.data % _LINE == 0
            else _moved(together)
        )
    if width == NARROW and _is_ready(values):
        return values
    padded = empty(n_rows, NARROW)
    padded[:, :width] = values
    padded[:, width:] = 0.0
    return padded


def _is_ready(values: Array) -> bool:
    is_together = values.dtype == np.float32 and values.flags.c_contiguous
    return is_together and values.ctypes.data % _LINE == 0


def _moved(values: Array) -> Array:
    aligned = empty(*values.shape)
    aligned[:] = values
    return aligned


def empty(n_rows: int, width: int) -> Array:
    """An array that begins on a cache line."""
    room = np.empty(n_rows * width + _LINE // 4, dtype=np.float32)
    first = -room.ctypes.data % _LINE // 4
    return room[first : first + n_rows * width].reshape(n_rows, width)


def rows_times(
    starts: NDArray[Any], columns: NDArray[Any], weights: Array, dense: Array, out: Array
) -> None:
    """out = rows @ dense, each row summed in the order of its columns; `dense` comes from
    `prepared`.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
        columns: int64, shape (k,).
        dense: float32, shape (N, k), from `prepared`.
        out: float32, shape (rows, k); written.
    """
    (_narrow if dense.shape[1] == NARROW else _wide)(starts, columns, weights, dense, out)


@njit(cache=True, nogil=True)
def some_rows_times(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: Array,
    nodes: NDArray[np.int64],
    dense: Array,
    places: NDArray[np.int64],
    out: Array,
) -> None:  # pragma: no cover - compiled
    """out[places] = rows[nodes] @ dense, bit for bit what `rows_times` gives; no row is copied.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
        columns: int64, shape (k,).
        nodes: the rows wanted, int64, shape (m,).
        dense: float32, shape (N, k), from `prepared`.
        places: the row of `out` for each, int64, shape (m,).
    """
    width = dense.shape[1]
    n_nodes = len(nodes)
    for i in range(n_nodes):
        if i + 2 * _ROWS_AHEAD < n_nodes:
            later = starts[nodes[i + 2 * _ROWS_AHEAD]]
            prefetch(columns, later)  # type: ignore[call-arg]
            prefetch(weights, later)  # type: ignore[call-arg]
        if i + _ROWS_AHEAD < n_nodes:
            next_node = nodes[i + _ROWS_AHEAD]
            for p in range(starts[next_node], starts[next_node + 1]):
                prefetch(dense, columns[p] * width)  # type: ignore[call-arg]
        place = places[i]
        for c in range(out.shape[1]):
            out[place, c] = 0.0
        for p in range(starts[nodes[i]], starts[nodes[i] + 1]):
            j = columns[p]
            weight = weights[p]
            for c in range(out.shape[1]):
                out[place, c] += weight * dense[j, c]


@njit(cache=True, nogil=True)
def _wide(
    starts: NDArray[Any], columns: NDArray[Any], weights: Array, dense: Array, out: Array
) -> None:  # pragma: no cover - compiled
    width = dense.shape[1]
    n_entries = len(columns)
    for i in range(len(starts) - 1):
        for c in range(width):
            out[i, c] = 0.0
        for p in range(starts[i], starts[i + 1]):
            if p + _AHEAD < n_entries:
                prefetch(dense, columns[p + _AHEAD] * width)  # type: ignore[call-arg]
            j = columns[p]
            weight = weights[p]
            for c in range(width):
                out[i, c] += weight * dense[j, c]


@njit(cache=True, nogil=True)
def _narrow(
    starts: NDArray[Any], columns: NDArray[Any], weights: Array, dense: Array, out: Array
) -> None:  # pragma: no cover - compiled
    n_entries = len(columns)
    zero = np.float32(0.0)
    sums = np.empty(NARROW, dtype=np.float32)
    for i in range(len(starts) - 1):
        a = b = c = d = e = f = g = h = zero  # in registers, as an array would not be
        for p in range(starts[i], starts[i + 1]):
            if p + _AHEAD < n_entries:
                prefetch(dense, columns[p + _AHEAD] * NARROW)  # type: ignore[call-arg]
            row = dense[columns[p]]
            weight = weights[p]
            a += weight * row[0]
            b += weight * row[1]
            c += weight * row[2]
            d += weight * row[3]
            e += weight * row[4]
            f += weight * row[5]
            g += weight * row[6]
            h += weight * row[7]
        sums[0] = a
        sums[1] = b
        sums[2] = c
        sums[3] = d
        sums[4] = e
        sums[5] = f
        sums[6] = g
        sums[7] = h
        for k in range(out.shape[1]):
            out[i, k] = sums[k]
