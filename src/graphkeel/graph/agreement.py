"""How often neighbours have the same class, counted over all edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph.propagate.rowwise import Nodes, fold

Ints = NDArray[np.int64]


class KnownLabels:
    """Known labels as an array over all nodes, -1 where there is none, that takes no memory.

    Args:
        nodes: int64, shape (L,).
        classes: int64, shape (L,).
    """

    def __init__(self, nodes: Ints, classes: Ints) -> None:
        order = np.argsort(nodes, kind="stable")
        self._nodes = nodes[order]
        self._classes = classes[order]

    def __getitem__(self, ids: Ints) -> Ints:
        if not len(self._nodes):
            return np.full(len(ids), -1)
        place = np.searchsorted(self._nodes, ids, side="right") - 1
        return np.where(self._nodes[place] == ids, self._classes[place], -1)


def same_ends(matrix: Any, labels: Any, n_classes: int) -> tuple[Ints, Ints]:
    """By the class of one end: edges with a label at both ends, and those with the same at both.

    Args:
        matrix: sparse, shape (N, N); loops do not count.
        labels: of all nodes, shape (N,); -1 where there is none.
        n_classes: C.
    """

    def counted(ids: Ints, rows: Any) -> Ints:
        degrees = np.diff(rows.indptr)
        far, place = np.unique(rows.indices, return_inverse=True)
        right = labels[far.astype(np.int64)][place]
        left = np.repeat(labels[ids], degrees)
        between = np.repeat(ids, degrees) != rows.indices
        seen = between & (left >= 0) & (right >= 0)
        chosen = (seen, seen & (left == right))
        return np.stack([np.bincount(left[some], minlength=n_classes) for some in chosen])

    ends, same = fold(counted, Nodes(matrix.shape[0]), matrix)
    return ends, same
