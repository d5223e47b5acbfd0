"""Tensors with room at their end, so that what is added to them is written and nothing is copied.

Memory that was never written to takes no space: the room costs addresses alone."""

from __future__ import annotations

import torch
from torch import Tensor

SHARE = 8  # one row more for so many


def empty_with_room(n_rows: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows to be written, with room for more behind them.

    Args:
        n_rows: how many rows.
        width: how long they are.
        dtype: of their numbers.
    """
    return torch.empty(n_rows + n_rows // SHARE, width, dtype=dtype)[:n_rows]


def with_room(values: Tensor) -> Tensor:
    """A copy with room for more rows.

    Args:
        values: shape (n, d).
    """
    return empty_with_room(values.shape[0], values.shape[1], values.dtype).copy_(values)


def has_room(values: Tensor) -> bool:
    """Whether there is any behind the rows.

    Args:
        values: shape (n, d).
    """
    return values.untyped_storage().nbytes() > values.element_size() * values.numel()


def lengthened(values: Tensor, n_rows: int) -> Tensor:
    """The same rows and further ones, which are still to be written: in the same memory where it
    has the room, else in memory of its own.

    Args:
        values: shape (n, d); where memory is shared, what is written to the result is written here.
        n_rows: N >= n.

    >>> first = with_room(torch.zeros(16, 1))
    >>> lengthened(first, 18).data_ptr() == first.data_ptr()
    True
    >>> lengthened(first, 19).data_ptr() == first.data_ptr()
    False
    """
    held = values.untyped_storage().nbytes() // values.element_size()
    is_first = values.is_contiguous() and not values.storage_offset()
    if is_first and n_rows * values.shape[1] <= held:
        return values.as_strided((n_rows, values.shape[1]), values.stride())
    longer = empty_with_room(n_rows, values.shape[1], values.dtype)
    longer[: len(values)] = values
    return longer


def columns_with_room(values: Tensor) -> Tensor:
    """A copy with room for more columns.

    Args:
        values: shape (k, n).
    """
    n_rows, n = values.shape
    return torch.empty(n_rows, n + n // SHARE, dtype=values.dtype)[:, :n].copy_(values)


def lengthened_columns(values: Tensor, n_columns: int) -> Tensor:
    """The same columns and further ones, as in `lengthened`.

    Args:
        values: shape (k, n).
        n_columns: N >= n.
    """
    n_rows, n = values.shape
    row, column = values.stride()
    if column == 1 and n_columns <= row:
        return values.as_strided((n_rows, n_columns), (row, 1))
    longer = torch.empty(n_rows, n_columns + n_columns // SHARE, dtype=values.dtype)
    longer[:, :n] = values
    return longer[:, :n_columns]
