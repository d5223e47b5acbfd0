"""Which nodes of a graph have come or have changed since it was seen, by a number for each node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph.fingerprint import row_numbers
from graphkeel.graph.propagate.rowwise import rowwise

Ids = NDArray[np.int64]


def node_digests(x: Any, matrix: Any, among: int | None = None) -> Ids:
    """A number that other features of a node, or other links, change, int64, shape (n,).

    Args:
        x: features, float32, shape (N, d).
        matrix: Ŝ, with a loop at every node, shape (N, N).
        among: the first n nodes, and links between them; None: all.
    """
    n_nodes = matrix.shape[0] if among is None else among
    ids = row_numbers(np.arange(1, n_nodes + 1)[:, None])  # that of zero is zero
    rows = matrix[:n_nodes]
    linked = np.where(rows.indices < n_nodes, ids[np.minimum(rows.indices, n_nodes - 1)], 0)
    found: Ids = rowwise(lambda part: row_numbers(np.ascontiguousarray(part)), x[:n_nodes])
    return found + np.add.reduceat(linked, rows.indptr[:-1])


def changed_nodes(x: Any, matrix: Any, before: Ids, newly: float) -> Ids:
    """Ascending ids of the nodes that have come, that have other features or other links to those
    there were, or of whose links at least the share `newly` leads to nodes that have come.

    Args:
        x: features, float32, shape (N, d).
        matrix: Ŝ, with a loop at every node, shape (N, N).
        before: `node_digests` of then, shape (n,).
    """
    n_old, n_nodes = len(before), matrix.shape[0]
    others = node_digests(x, matrix, n_old) != before
    starts = matrix.indptr[:n_old]
    come = np.add.reduceat((matrix.indices >= n_old).astype(np.int64), starts)
    if n_old < n_nodes:  # the last sum goes on to the end of the matrix
        come[-1] = (matrix[n_old - 1].indices >= n_old).sum()
    links = np.diff(matrix.indptr[: n_old + 1]) - 1
    others |= (come > 0) & (come >= newly * links)
    return np.append(np.flatnonzero(others), np.arange(n_old, n_nodes))
