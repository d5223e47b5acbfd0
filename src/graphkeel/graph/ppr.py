"""Personalised PageRank: exact distances between rows without a dense inverse, and one that needs
the near nodes only.

With Ã the normalised adjacency and teleport α, P = α (I − (1−α) Ã)^-1 is symmetric, so

    ‖P_i − P_s‖² = (P²)_ii + (P²)_ss − 2 (P²)_is,      P² = f(Ã),  f(λ) = α² / (1 − (1−α) λ)².

f is analytic on [-1, 1], so its Chebyshev series converges geometrically: a few dozen sparse
products give P² to machine precision, and the diagonal needs only half of them (the moments of a
column come in pairs)."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import DataError, StorageError
from graphkeel.core.files import replacing
from graphkeel.core.memory import require_memory
from graphkeel.core.steps import progress
from graphkeel.graph.datasets.npz import read_arrays

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class PprDistance:
    """Squared Euclidean distances between rows of the exact PPR matrix of one graph.

    The rows' norms are the costly part and belong to the graph alone, so they can be kept in a
    `cache` folder. Columns are computed by the `block`, which keeps them in the processor's
    cache."""

    def __init__(
        self,
        normalised: sparse.csr_matrix,
        alpha: float,
        *,
        cache: Path | None = None,
        block: int = 32,
    ) -> None:
        n = normalised.shape[0]
        self._block = block
        require_memory(
            24 * normalised.nnz + 16 * n * block * cpu_count(),
            f"the exact biased sampler on {n} nodes",
            "Use the random split, or a smaller graph.",
        )
        # Neighbours close in memory make the sparse products three times faster.
        order = reverse_cuthill_mckee(normalised, symmetric_mode=True)
        self.matrix = normalised[order][:, order].tocsr()
        self.position = np.argsort(order)
        self.coefficients = chebyshev_coefficients(alpha)
        self._cache = None if cache is None else cache / f"{_fingerprint(self.matrix, alpha)}.npz"
        self._norms = _read_norms(self._cache, normalised.shape[0])

    def row_norms(self, nodes: Ids) -> Array:
        """(P²)_ii = ‖P_i‖² of the given nodes; each is computed once.

        Args:
            nodes: node ids, int64, shape (k,).
        """
        missing = np.unique(nodes[np.isnan(self._norms[nodes])])
        blocks = [missing[i : i + self._block] for i in range(0, len(missing), self._block)]
        threads = Parallel(n_jobs=cpu_count(), prefer="threads", return_as="generator")
        norms = threads(delayed(self._diagonal)(block) for block in blocks)
        pairs = zip(blocks, norms, strict=True)
        for block, values in progress(pairs, "biased sampler: row norms", len(blocks)):
            self._norms[block] = values
        if len(missing) and self._cache is not None:
            self._cache = _write_norms(self._cache, self._norms)
        return self._norms[nodes]

    def to_seed(self, seed: int, nodes: Ids) -> Array:
        """‖P_i − P_seed‖² for each i in nodes.

        Args:
            nodes: node ids, int64, shape (k,).
        """
        inner = self._column(seed)
        norms = self.row_norms(np.append(nodes, seed))
        return np.maximum(norms[:-1] + norms[-1] - 2 * inner[nodes], 0.0)

    def _diagonal(self, nodes: Ids) -> Array:
        """Σ_m c_m (T_m(Ã))_ii, with T_2k and T_2k+1's moments read off T_k and T_k+1 (product
        formula)."""
        here = (self.position[nodes], np.arange(len(nodes)))
        previous = np.zeros((self.matrix.shape[0], len(nodes)))
        previous[here] = 1.0
        current = self.matrix @ previous
        first = current[here]
        c = self.coefficients
        total = c[0] + c[1] * first
        for k in range(1, len(c) // 2):
            same, cross = _chebyshev_step(
                self.matrix.indptr, self.matrix.indices, self.matrix.data, current, previous
            )
            total += c[2 * k] * (2 * same - 1.0) + c[2 * k + 1] * (2 * cross - first)
            previous, current = current, previous
        return np.asarray(total)

    def _column(self, seed: int) -> Array:
        """f(Ã) e_seed by the three-term recurrence."""
        previous = np.zeros(self.matrix.shape[0])
        previous[self.position[seed]] = 1.0
        current = self.matrix @ previous
        total = self.coefficients[0] * previous + self.coefficients[1] * current
        for c in self.coefficients[2:]:
            previous, current = current, 2 * (self.matrix @ current) - previous
            total += c * current
        return np.asarray(total[self.position])


@njit(cache=True, nogil=True, fastmath=True)
def _chebyshev_step(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    weights: Array,
    current: Array,
    previous: Array,
) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """previous <- 2 Ã current − previous in one pass, with the columns' products that the moments
    need."""
    n, width = current.shape
    same = np.zeros(width)
    cross = np.zeros(width)
    row = np.empty(width)
    for i in range(n):
        row[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            weight = 2 * weights[p]
            for c in range(width):
                row[c] += weight * current[j, c]
        for c in range(width):
            value = row[c] - previous[i, c]
            previous[i, c] = value
            same[c] += current[i, c] * current[i, c]
            cross[c] += current[i, c] * value
    return same, cross


def _fingerprint(matrix: sparse.csr_matrix, alpha: float) -> str:
    arrays = (matrix.indptr, matrix.indices, matrix.data)
    return sha256_of([repr(alpha), *(array.tobytes() for array in arrays)])[:32]


def _read_norms(path: Path | None, n: int) -> Array:
    """Stored norms (NaN where not computed yet); a file that is missing, damaged or foreign counts
    as empty."""
    if path is not None:
        try:
            # the zip container checks its own CRC
            norms = read_arrays(path, ("norms",), source=str(path))["norms"]
            if norms.shape == (n,) and norms.dtype == np.float64:
                return norms
        except (DataError, KeyError):
            pass
    return np.full(n, np.nan)


def _write_norms(path: Path, norms: Array) -> Path | None:
    """Another process sees the old file or the new one, never half of one; None where nothing can
    be kept."""
    try:
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, norms=norms)
    except StorageError as error:  # a read-only or full disk costs time, not the result
        logger.warning("row norms are not kept: %s (got %s)", error.what, error.got)
        return None
    return path


def chebyshev_coefficients(alpha: float, tolerance: float = 1e-8) -> Array:
    """Coefficients of f on [-1, 1], cut where they fall below `tolerance` times the largest; an
    even number of them."""
    n = 64
    while True:
        theta = np.pi * (np.arange(n) + 0.5) / n
        values = (alpha / (1 - (1 - alpha) * np.cos(theta))) ** 2
        coefficients = 2 / n * np.cos(np.outer(np.arange(n), theta)) @ values
        coefficients[0] /= 2
        sizes = np.abs(coefficients)
        relevant = np.flatnonzero(sizes > tolerance * sizes.max())[-1] + 1
        if relevant < n // 2:
            return np.asarray(coefficients[: max(2, relevant + relevant % 2)])
        n *= 2


def near_distance(walks: sparse.csr_matrix, alpha: float, seed: int, nodes: Ids) -> Array:
    """Minus the personalised PageRank that nodes get from a seed within three hops: for graphs on
    which exact rows would take minutes.

    Args:
        walks: the normalised adjacency, shape (N, N).
        nodes: node ids, int64, shape (k,).
    """
    walk = walks[[seed]]
    total = walk
    for _ in range(2):
        walk = (1 - alpha) * walk @ walks
        total = total + walk
    return -total.toarray().ravel()[nodes]
