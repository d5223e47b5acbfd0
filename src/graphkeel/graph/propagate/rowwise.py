"""Functions of the rows of arrays, computed where the arrays live: here, a block of rows after the
other, or by the workers of a cluster, a part of the rows each (`graphkeel.cluster`).

An array that lives on a cluster has a `home`, a length, and rows that can be read by `array[rows]`;
whoever writes with these functions alone need not know which of both it is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph.propagate.local import home_of, row_blocks

Array = NDArray[Any]
Combine = Callable[[Any, Any], Any]


class Nodes:
    """The ids of all nodes, as an array that takes no memory.

    Args:
        n_nodes: N.
    """

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes

    def __len__(self) -> int:
        return self.n_nodes

    def __getitem__(self, rows: Any) -> NDArray[np.int64]:
        if isinstance(rows, slice):
            return np.arange(*rows.indices(self.n_nodes))
        return np.asarray(rows, dtype=np.int64)


def rowwise(function: Callable[..., Any], *arrays: Any, out: Any = None) -> Any:
    """function(part, …) of every block of rows, one below the other.

    Args:
        function: of blocks of the arrays, to an array (of tensors, to a tensor) with as many rows.
        arrays: with as many rows, shape (N, …).
        out: written, where it may be; the arrays may be among it.
    """
    home = home_of(*arrays)
    if home is not None:
        return home.rowwise(function, arrays)
    n_rows = _length(arrays[0])
    for rows in list(row_blocks(n_rows)) or [slice(0, 0)]:
        part = function(*(array[rows] for array in arrays))
        if out is None:
            shape = (n_rows, *part.shape[1:])
            is_array = isinstance(part, np.ndarray)
            out = np.empty(shape, part.dtype) if is_array else part.new_empty(shape)
        out[rows] = part
    return out


def _length(array: Any) -> int:
    """Rows; a sparse matrix says them by its shape alone."""
    return int(array.shape[0]) if hasattr(array, "shape") else len(array)


def fold(function: Callable[..., Any], *arrays: Any, combine: Combine = operator.add) -> Any:
    """function(part, …) of every block of rows, added up or combined otherwise, in order.

    Args:
        function: of blocks of the arrays, to something small.
        arrays: with as many rows, shape (N, …).
        combine: two of its values.
    """
    home = home_of(*arrays)
    if home is not None:
        return home.fold(function, arrays, combine)
    found = None
    for rows in row_blocks(_length(arrays[0])):
        part = function(*(array[rows] for array in arrays))
        found = part if found is None else combine(found, part)
    return found


def stored(values: Any) -> Any:
    """The values, written where they live if they are only described so far."""
    return values.stored() if hasattr(values, "stored") else values


def mean_row(x: Any) -> NDArray[np.float32]:
    """The mean of all rows, shape (d,)."""
    sums = fold(_sums, x)
    return np.asarray(sums / len(x), dtype=np.float32)


def _sums(part: Array) -> NDArray[np.float64]:
    return part.sum(axis=0, dtype=np.float64)  # type: ignore[no-any-return]


def largest(
    values: Any, groups: Any, n_groups: int, counts: Callable[[NDArray[np.int64]], Any]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """For every column, the largest values of each group; of equal ones the first. Found by
    counting digits, so that no more than a histogram is held at once.

    Args:
        values: not negative, float32, shape (N, S).
        groups: the group of each value, shape (N, S); negative where it belongs to none.
        counts: of the groups' sizes, shape (S, n_groups): how many are wanted, at most all.

    Returns:
        The least of these values, and the last row in which it is chosen, shape (S, n_groups).
    """
    high: NDArray[np.int64] | None = None
    left: NDArray[np.int64] | None = None
    for shift, width in ((20, 11), (10, 10), (0, 10)):  # the 31 bits of a number >= 0
        tally = fold(_Tally(n_groups, high, shift, width), values, groups)
        if left is None:
            left = np.asarray(counts(tally.sum(axis=2)), dtype=np.int64)
            high = np.zeros_like(left)
        assert high is not None
        above = tally[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]  # as many have this digit or more
        digit = np.maximum((above >= np.maximum(left, 1)[:, :, None]).sum(axis=2) - 1, 0)
        more = np.take_along_axis(above - tally, digit[:, :, None], axis=2)[:, :, 0]
        left = left - more
        high = (high << width) | digit
    assert high is not None
    assert left is not None
    least = high.astype(np.uint32).view(np.float32)
    return least, _last_of_equals(values, groups, least, left)


def _last_of_equals(
    values: Any, groups: Any, least: NDArray[np.float32], wanted: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The row in which a value equal to the least of its group is chosen last."""

    def equals(part: Array, group: Array) -> Array:
        sets = np.arange(part.shape[1])
        return np.where((group >= 0) & (part == least[sets, group]), group, -1)

    def counted(part: Array, group: Array, ids: Array) -> list[tuple[slice, Array]]:
        found = equals(part, group)
        n_groups = least.shape[1]
        tally = np.stack([np.bincount(g[g >= 0], minlength=n_groups) for g in found.T])
        return [(slice(int(ids[0]), int(ids[-1]) + 1), tally)]

    blocks = fold(counted, values, groups, Nodes(len(values)))
    ends = np.stack([tally for _, tally in blocks]).cumsum(axis=0)
    last = np.full(least.shape, -1)
    for s, g in zip(*np.nonzero(wanted > 0), strict=True):
        block = int(np.searchsorted(ends[:, s, g], wanted[s, g]))
        before = ends[block - 1, s, g] if block else 0
        rows = blocks[block][0]
        is_one = (groups[rows][:, s] == g) & (values[rows][:, s] == least[s, g])
        here = np.flatnonzero(is_one)
        last[s, g] = rows.start + here[wanted[s, g] - before - 1]
    return last


class _Tally:
    """Counts the next digit of the values that begin with the digits known so far."""

    def __init__(self, n_groups: int, high: Array | None, shift: int, width: int) -> None:
        self.n_groups = n_groups
        self.high = high
        self.shift = shift
        self.width = width

    def __call__(self, values: Array, groups: Array) -> NDArray[np.int64]:
        found = []
        for s in range(values.shape[1]):
            group = groups[:, s]
            bits = np.ascontiguousarray(values[:, s], dtype=np.float32).view(np.uint32)
            counted = group >= 0
            if self.high is not None:
                known = bits >> np.uint32(self.shift + self.width)
                counted = counted & (known == self.high[s][np.maximum(group, 0)])
            digit = (bits[counted] >> np.uint32(self.shift)) & np.uint32((1 << self.width) - 1)
            key = group[counted].astype(np.int64) << self.width | digit
            found.append(np.bincount(key, minlength=self.n_groups << self.width))
        return np.stack(found).reshape(values.shape[1], self.n_groups, 1 << self.width)
