"""Narrow rows as the hops want them: as long as half a cache line, with room behind for nodes that
come later. Laid out once, they are neither copied for a product nor for a graph that grows."""

from __future__ import annotations

from torch import Tensor

from graphkeel.core.room import empty_with_room, lengthened
from graphkeel.graph.propagate.products import NARROW


def laid_out(values: Tensor) -> Tensor:
    """A copy whose rows are `whole_rows`; wide rows need no filling up, and just get room.

    Args:
        values: float32, shape (n, c).
    """
    n_rows, width = values.shape
    rows = empty_with_room(n_rows, max(width, NARROW))
    rows[:, :width] = values
    rows[:, width:] = 0.0
    return rows[:, :width]


def whole_rows(values: Tensor) -> Tensor:
    """The rows with what fills them up, in the same memory; other values as they are.

    Args:
        values: float32, shape (n, c).
    """
    n_rows, width = values.shape
    is_laid_out = width <= NARROW and values.stride() == (NARROW, 1)
    held = values.untyped_storage().nbytes() // values.element_size()
    if not is_laid_out or values.storage_offset() + n_rows * NARROW > held:
        return values
    return values.as_strided((n_rows, NARROW), (NARROW, 1))


def longer_rows(values: Tensor, n_rows: int) -> Tensor:
    """The same rows and further ones, which are still to be written; in the same memory where it
    has the room.

    Args:
        values: from `laid_out`, shape (n, c).
        n_rows: N >= n.

    >>> import torch
    >>> first = laid_out(torch.ones(16, 3))
    >>> second = longer_rows(first, 18)
    >>> second.shape, second.data_ptr() == first.data_ptr()
    (torch.Size([18, 3]), True)
    """
    n_before, width = values.shape
    rows = lengthened(whole_rows(values), n_rows)
    rows[n_before:] = 0.0
    return rows[:, :width]
