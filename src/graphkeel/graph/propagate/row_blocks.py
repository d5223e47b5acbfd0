"""Rows of a sparse matrix in blocks of about as many entries each, on all cores; and two pieces of
work that do not wait for each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

_PIECES = 8  # row blocks per core, so that no core waits long for the other
_FEW = 1 << 20  # entries, or numbers, that are not worth a thread
First = TypeVar("First")
Second = TypeVar("Second")


@cache
def usable_cores() -> int:
    """Cores that this process may use: those of the machine, fewer where a container or joblib
    (in a worker of a grid: to one) limits them."""
    return int(joblib.cpu_count())


def on_all_cores(
    piece: Callable[[slice], None], starts: NDArray[np.integer[Any]], width: int = 1
) -> None:
    """Call a function, which lets other threads run, for every block of rows.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
    """
    cores = usable_cores()
    if cores == 1 or starts[-1] * width < _FEW:
        piece(slice(0, len(starts) - 1))
        return
    blocks = list(even_blocks(starts, cores * _PIECES))
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(piece, blocks))


def even_blocks(starts: NDArray[np.integer[Any]], count: int) -> Iterator[slice]:
    """Row blocks with about as many entries each.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
    """
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], count + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [len(starts) - 1]]))
    for first, last in itertools.pairwise(bounds.tolist()):
        yield slice(first, last)
