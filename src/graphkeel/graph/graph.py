"""The graph as a sparse matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def adjacency(edge_index: NDArray[np.int64], n_nodes: int) -> sparse.csr_matrix:
    """A[i, j] = 1 for each edge between i and j (symmetric input assumed), without self-loops."""
    ones = np.ones(edge_index.shape[1])
    matrix = sparse.csr_matrix((ones, (edge_index[0], edge_index[1])), shape=(n_nodes, n_nodes))
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1.0
    return matrix


def normalised_adjacency(
    edge_index: NDArray[np.int64], n_nodes: int, *, self_links: NDArray[np.int64] | None = None
) -> sparse.csr_matrix:
    """Ã = D^-1/2 (A + I) D^-1/2 with D the degrees of A + I; symmetric, spectrum in [-1, 1].

    Nodes in `self_links` get a second loop, as if A already had one there.
    """
    loops = np.ones(n_nodes)
    if self_links is not None:
        loops[self_links] += 1.0
    with_loops = adjacency(edge_index, n_nodes) + sparse.diags(loops, format="csr")
    scale = sparse.diags(1.0 / np.sqrt(np.asarray(with_loops.sum(axis=1)).ravel()))
    return (scale @ with_loops @ scale).tocsr()
