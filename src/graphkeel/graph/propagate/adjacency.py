"""The graph as a sparse matrix that spreads: the one home of normalised adjacencies.

Two readings of an edge list: both ways and once each, a loop at every node (`normalise`); and as it
is given, from source to target, repeats counted (`normalise_as_given`), as PyG's layers read it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.core.names import check_name

NORMS = ("sym", "row")
LOOPS = ("one", "as given", "none")
Ids = NDArray[np.int64]


def normalise(
    edge_index: ArrayLike,
    n_nodes: int,
    norm: str = "sym",
    *,
    dtype: DTypeLike = np.float32,
    self_links: Ids | None = None,
) -> sparse.csr_matrix:
    """Ŝ = D^-1/2 (A + I) D^-1/2 for `sym`, D^-1 (A + I) for `row`, with D the degrees of A + I.

    Args:
        edge_index: integers of shape (2, E); taken both ways and once each, so A is symmetric
            whatever it says.
        n_nodes: N; the matrix has shape (N, N).
        norm: one of `NORMS`.
        dtype: float32, or float64 where last bits matter.
        self_links: nodes, shape (k,), whose loop counts twice, as if A already had one there.
    """
    matrix = _joined(_checked(edge_index, n_nodes), n_nodes, loops=True)
    extra = np.zeros(n_nodes, dtype=dtype)
    extra[[] if self_links is None else self_links] = 1
    scale = scale_of(np.diff(matrix.indptr).astype(dtype) + extra, norm)
    matrix = _with_values(matrix, scaled(scale, matrix.indptr, matrix.indices, scale, norm))
    if self_links is not None:
        matrix.setdiag(matrix.diagonal() * (1 + extra))
    return matrix


def normalise_as_given(
    edge_index: ArrayLike,
    n_nodes: int,
    norm: str = "sym",
    *,
    loops: str = "one",
    dtype: DTypeLike = np.float32,
) -> sparse.csr_matrix:
    """The matrix that layers multiply by: row v holds the edges into v, and D counts them.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
        norm: one of `NORMS`.
        loops: `one` at every node instead of those given, those `as given`, or `none`.
        dtype: float32, or float64 where last bits matter.
    """
    check_name("loops", loops, LOOPS)
    source, target = _checked(edge_index, n_nodes)
    if loops != "as given":
        between = source != target
        own = np.arange(n_nodes if loops == "one" else 0, dtype=np.int32)
        source = np.concatenate([own, source[between]])
        target = np.concatenate([own, target[between]])
    matrix = sparse.coo_matrix(
        (np.ones(len(source), dtype=np.int8), (target, source)), shape=(n_nodes, n_nodes)
    )
    matrix.has_canonical_format = True  # else repeats would be added up, and the order lost
    matrix = matrix.tocsr()
    scale = scale_of(np.diff(matrix.indptr).astype(dtype), norm)
    return _with_values(matrix, scaled(scale, matrix.indptr, matrix.indices, scale, norm))


def neighbours(edge_index: ArrayLike, n_nodes: int) -> sparse.csr_matrix:
    """A[i, j] = 1 where an edge joins i and j, in either direction; the diagonal is left out.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
    """
    return _joined(_checked(edge_index, n_nodes), n_nodes, loops=False).astype(np.int8)


def check_norm(norm: str) -> None:
    """Refuse a name that is no normalisation."""
    check_name("norm", norm, NORMS)


def scale_of(degrees: NDArray[Any], norm: str) -> NDArray[Any]:
    """The factor of a row's entries (for `sym`, of a column's as well); zero where nothing is.

    Args:
        degrees: floating-point, shape (N,).
    """
    check_norm(norm)
    root = np.sqrt(degrees) if norm == "sym" else degrees
    return np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)


def scaled(
    row_scale: NDArray[Any],
    starts: NDArray[np.integer[Any]],
    columns: NDArray[np.integer[Any]],
    scale: NDArray[Any],
    norm: str,
) -> NDArray[Any]:
    """The values of some rows: each its row's scale, for `sym` times its column's.

    Args:
        row_scale: of these rows, shape (M,).
        starts: row starts of a CSR matrix, shape (M + 1,).
        columns: shape (k,).
        scale: of all nodes, shape (N,).
    """
    values = np.repeat(row_scale, np.diff(starts))
    if norm == "sym":
        values *= scale[columns]
    return values


def _joined(edges: NDArray[np.int32], n_nodes: int, *, loops: bool) -> sparse.csr_matrix:
    """A + I, or A without its diagonal, as true and false, the columns of a row sorted."""
    one_way = sparse.csr_matrix(
        (np.ones(edges.shape[1], dtype=bool), tuple(edges)), shape=(n_nodes, n_nodes)
    )
    matrix = (one_way + one_way.T).tocsr()
    matrix.setdiag(loops)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _with_values(pattern: sparse.csr_matrix, values: NDArray[Any]) -> sparse.csr_matrix:
    return sparse.csr_matrix((values, pattern.indices, pattern.indptr), shape=pattern.shape)


def _checked(edge_index: ArrayLike, n_nodes: int) -> NDArray[np.int32]:
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise DataError(
            "edge_index must be integers of shape (2, edges)", got=f"{edges.dtype}, {edges.shape}"
        )
    if not 0 < n_nodes < np.iinfo(np.int32).max:
        raise DataError("a graph has between 1 and 2^31 - 2 nodes here", got=n_nodes)
    if edges.size and not 0 <= int(edges.min()) <= int(edges.max()) < n_nodes:
        raise DataError(
            f"edge_index must hold node ids in 0..{n_nodes - 1}",
            got=f"{edges.min()} to {edges.max()}",
        )
    return edges.astype(np.int32, copy=False)
