"""Pairs sorted into rows in linear time, and with few cache misses however many rows there are.

A plain counting sort writes each pair to its row at once: with millions of rows every write misses
the cache. Here pairs go to blocks of rows first, a few hundred streams written in order, and then,
inside a block that fits into the cache, to their rows. Both passes keep the order of what is equal,
so sorting by column and then by row sorts by both."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike, NDArray

Ids = NDArray[np.int64]
Given = NDArray[np.int64] | NDArray[np.int32]
Columns = NDArray[np.int32]

_BITS = 13  # rows of a block: 2^13, which with twenty columns each take 0.7 MB


def with_spare(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array to be written, which may grow by an eighth where it lies: memory that was never
    written to takes no space."""
    return np.empty(size + size // 8, dtype=dtype)[:size]


def by_row(
    rows: Given, columns: Given, n_rows: int, *, loops_first: bool = False
) -> tuple[Ids, Columns]:
    """Row starts, and the columns of each row in the order given."""
    bounds = _block_bounds(rows, columns, n_rows, loops_first)
    inside = np.empty(bounds[-1], dtype=np.uint16)
    moved = np.empty(bounds[-1], dtype=np.int32)
    _to_blocks(rows, columns, bounds[:-1].copy(), loops_first, inside, moved)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    placed = with_spare(bounds[-1] + loops_first * n_rows, np.int32)
    _to_rows(bounds, inside, moved, loops_first, starts, placed)
    return starts, placed


def by_row_and_column(rows: Given, columns: Given, n_nodes: int) -> tuple[Ids, Given]:
    """Row starts, and the columns of each row in rising order; pairs that come sorted are not
    moved.

    Args:
        rows: int64, shape (k,).
        columns: int64, shape (k,).
    """
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    if _count_sorted(rows, columns, starts):
        return starts, columns
    starts, moved = by_row(columns, rows, n_nodes)
    return by_row(moved, np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(starts)), n_nodes)


@njit(cache=True, nogil=True)
def _block_bounds(
    rows: Given, columns: Given, n_rows: int, skip_loops: bool
) -> Ids:  # pragma: no cover - compiled
    bounds = np.zeros(((n_rows - 1) >> _BITS) + 2, dtype=np.int64)
    for e in range(len(rows)):
        if not (skip_loops and rows[e] == columns[e]):
            bounds[(rows[e] >> _BITS) + 1] += 1
    return np.cumsum(bounds)


@njit(cache=True, nogil=True)
def _to_blocks(
    rows: Given,
    columns: Given,
    cursor: Ids,
    skip_loops: bool,
    inside: NDArray[np.uint16],
    moved: Columns,
) -> None:  # pragma: no cover - compiled
    for e in range(len(rows)):
        if not (skip_loops and rows[e] == columns[e]):
            block = rows[e] >> _BITS
            inside[cursor[block]] = rows[e] & ((1 << _BITS) - 1)
            moved[cursor[block]] = columns[e]
            cursor[block] += 1


@njit(cache=True, nogil=True)
def _to_rows(
    bounds: Ids,
    inside: NDArray[np.uint16],
    moved: Columns,
    loops_first: bool,
    starts: Ids,
    placed: Columns,
) -> None:  # pragma: no cover - compiled
    n_rows = len(starts) - 1
    cursor = np.empty(1 << _BITS, dtype=np.int64)
    for block in range(len(bounds) - 1):
        first_row = block << _BITS
        height = min(1 << _BITS, n_rows - first_row)
        cursor[:height] = 1 if loops_first else 0
        for p in range(bounds[block], bounds[block + 1]):
            cursor[inside[p]] += 1
        for r in range(height):  # from counts to the rows' starts
            start = starts[first_row + r]
            starts[first_row + r + 1] = start + cursor[r]
            cursor[r] = start
            if loops_first:
                placed[start] = first_row + r
                cursor[r] += 1
        for p in range(bounds[block], bounds[block + 1]):
            r = inside[p]
            placed[cursor[r]] = moved[p]
            cursor[r] += 1


@njit(cache=True, nogil=True)
def _count_sorted(rows: Given, columns: Given, starts: Ids) -> bool:  # pragma: no cover - compiled
    """Fill the row starts if the pairs are sorted; else say so."""
    row = 0
    for e in range(len(rows)):
        if rows[e] < row or (e > 0 and rows[e] == rows[e - 1] and columns[e] < columns[e - 1]):
            return False
        while row < rows[e]:
            row += 1
            starts[row] = e
    starts[row + 1 :] = len(rows)
    return True
