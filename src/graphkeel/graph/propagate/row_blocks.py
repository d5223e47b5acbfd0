"""Rows of a sparse matrix in blocks of about as many entries each, on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class _Threads:
    """When rows are shared among threads.

    Attributes:
        pieces: row blocks per core, so that no core waits long for the other.
        few: entries, or numbers, that are not worth a thread.
    """

    pieces: int = 8
    few: int = 1 << 20


_THREADS = _Threads()


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
    if cores == 1 or starts[-1] * width < _THREADS.few:
        piece(slice(0, len(starts) - 1))
        return
    blocks = list(_even_blocks(starts, cores * _THREADS.pieces))
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(piece, blocks))


def _even_blocks(starts: NDArray[np.integer[Any]], count: int) -> Iterator[slice]:
    """Row blocks with about as many entries each.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
    """
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], count + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [len(starts) - 1]]))
    for first, last in itertools.pairwise(bounds.tolist()):
        yield slice(first, last)
