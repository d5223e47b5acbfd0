"""The local engine: sparse products and walks, some columns at a time.

A hop needs every node's row, but no column needs another: so columns are what is cut into
pieces."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float32]


@dataclass(frozen=True)
class _Streaming:
    """How much is in work at once. But for `tail`, `coarse` and `halved` results do not depend on
    it.

    Attributes:
        line: columns that fill a cache line; blocks of other widths have rows that lie across two.
        part: rows whose values are computed at once.
        cache: bytes of columns that walk many steps at once: half of what a processor's last
            cache holds. Where fewer than a cache line's fit, that many, by `add_term`: a column of
            50 steps takes 0.10 s on 10⁶ nodes and 10⁷ edges, by torch 0.17; on 300,000 nodes 0.02,
            by torch with eight columns 0.03.
        tail: of a walk's series, what may be left out;
        coarse: on graphs of `many` nodes or more, of which evidence keeps three digits anyway.
        halved: numbers in an array of evidence from which on it is kept with 16 bits each, three
            digits: 300,000 nodes with 40 classes, 10⁶ with 5 would else not fit into 3 GB.
            With all arrays kept so, no answer of Cora, Citeseer, Photo and digits changes, and no
            probability by more than 7e-4.
        walked: nodes whose features some hops away are found at once; fewer where these are wide:
        near: numbers divided by their width.
    """

    line: int = 16
    part: int = 1 << 13
    cache: int = 2**24
    tail: float = 1e-7
    coarse: float = 1e-3
    many: int = 100_000
    halved: int = 1 << 24
    walked: int = 256
    near: int = 1 << 18


STREAM = _Streaming()


def as_tensor(matrix: sparse.csr_matrix) -> Tensor:
    """A CSR matrix in torch, sharing its memory.

    Args:
        matrix: sparse, shape (M, N).
    """
    import torch  # here, as the workers of a cluster load this file and need no torch

    indices = matrix.indices.astype(matrix.indptr.dtype, copy=False)
    starts, columns, weights = map(torch.from_numpy, (matrix.indptr, indices, matrix.data))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(
            starts, columns, weights, matrix.shape, check_invariants=False
        )


def multiply(
    matrix: sparse.csr_matrix,
    values: Array,
    out: Array | None = None,
    *,
    scale: float = 1.0,
    keep: float = 0.0,
) -> Array:
    """scale·matrix @ values + keep·out, on torch's threads. Each row is summed in the order of its
    columns.

    Args:
        matrix: sparse, float32, shape (M, N).
        values: float32, shape (N, k).
        out: an array to write to, shape (M, k).
        scale: of the product.
        keep: of what `out` holds.
    """
    home = home_of(values)
    if home is not None:
        return home.product(matrix, values)  # type: ignore[no-any-return]
    import torch

    if matrix.nnz > np.iinfo(np.int32).max:  # torch counts entries in 32 bits
        product = np.float32(scale) * np.asarray(matrix @ values)
        if out is None:
            return product
        out[...] = product + np.float32(keep) * out if keep else product
        return out
    dense = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
    shape = (matrix.shape[0], values.shape[1])
    # at the beginning of a cache line, as torch has it
    result = torch.empty(shape) if out is None else torch.from_numpy(out)
    # `mm` would fill the result with zeros first, which takes up to a third of the time
    torch.addmm(result, as_tensor(matrix), dense, beta=keep, alpha=scale, out=result)
    return result.numpy()


def hops_of(matrix: sparse.csr_matrix, values: Array, hops: int, teleport: float = 0.0) -> Array:
    """Z ← (1−a)·ŜZ + a·values, `hops` times from Z = values; with a = 0 simply Ŝ^hops · values.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
    """
    current = values
    spare: Array | None = None
    for _ in range(hops):
        if teleport:
            spare = values.copy() if spare is None else spare
            np.copyto(spare, values)
        following = multiply(matrix, current, spare, scale=1.0 - teleport, keep=teleport)
        spare = None if current is values else current
        current = following
    return current


def pagerank(
    matrix: sparse.csr_matrix, values: Array, steps: int, teleport: float, out: Array | None = None
) -> Array:
    """Personalised PageRank as `hops_of` has it, of a symmetric matrix with |Ŝ| <= 1.

    Some columns at a time. Many steps are a polynomial of Ŝ, whose Chebyshev series is shorter to
    float32's accuracy.

    Args:
        matrix: sparse, float32, shape (N, N).
        values: float32, shape (N, k).
        out: written, shape (N, k); may be `values`.
    """
    tail = STREAM.tail if len(values) < STREAM.many else STREAM.coarse
    series = chebyshev_series(steps, teleport, tail)
    home = home_of(values)
    if home is not None:
        return home.walk(matrix, values, steps, teleport, series)  # type: ignore[no-any-return]
    found = np.empty_like(values) if out is None else out
    width = cached_width(len(values))
    for first in range(0, values.shape[1], width):
        some = values[:, first : first + width]
        n_columns = some.shape[1]
        is_line = width == STREAM.line and n_columns > 8
        part = _whole_lines(some) if is_line else np.array(some, order="C")
        if len(series) > steps:
            walked = hops_of(matrix, part, steps, teleport)
        else:
            walked = _chebyshev(matrix, part, series)
        found[:, first : first + width] = walked[:, :n_columns]
    return found


def walked_on(
    matrix: sparse.csr_matrix,
    found: NDArray[Any],
    nodes: NDArray[np.int64],
    values: Array,
    sweeps: int,
    teleport: float,
) -> NDArray[Any]:
    """A walk of long ago, with rows of its own at nodes that have come or have changed: steps from
    what their neighbours have.

    Args:
        matrix: Ŝ as it is now, shape (N, N).
        found: the walk of the first nodes, shape (n, k).
        nodes: ascending ids, shape (m,); all from n on are among them.
        values: of these nodes, shape (m, k).
        sweeps: steps.
    """
    n_old, width = found.shape
    found = np.concatenate([found, np.zeros((matrix.shape[0] - n_old, width), found.dtype)])
    if not len(nodes):
        return found
    rows = matrix[nodes]
    reached, places = np.unique(rows.indices, return_inverse=True)
    rows = sparse.csr_matrix((rows.data, places, rows.indptr), (len(nodes), len(reached)))
    for _ in range(sweeps):
        found[nodes] = (1 - teleport) * multiply(rows, found[reached]) + teleport * values
    return found


def cached_width(n_rows: int, least: int = STREAM.line) -> int:
    """As many columns as the processor's cache holds; a cache line's where it holds fewer than
    `least`."""
    fitting = STREAM.cache // (4 * max(1, n_rows))
    return fitting - fitting % 8 if fitting >= least else STREAM.line


@cache
def chebyshev_series(steps: int, teleport: float, tail: float) -> tuple[float, ...]:
    """Chebyshev coefficients of the walk as a function of Ŝ, without a tail that small."""
    angles = (np.arange(512) + 0.5) * (np.pi / 512)
    hop = (1.0 - teleport) * np.cos(angles)
    wanted = np.ones_like(hop)
    for _ in range(steps):
        wanted = hop * wanted + teleport
    orders = np.arange(steps + 1)[:, None]
    found = np.cos(orders * angles) @ wanted / 256
    found[0] /= 2
    tails = np.cumsum(np.abs(found)[::-1])[::-1]
    return tuple(found[tails > tail].tolist())


def _whole_lines(values: Array) -> Array:
    """A copy with as many columns as a cache line has, which begins with one."""
    import torch

    found = torch.zeros(len(values), STREAM.line).numpy()
    found[:, : values.shape[1]] = values
    return found


def _chebyshev(matrix: sparse.csr_matrix, values: Array, series: tuple[float, ...]) -> Array:
    """Σ_k c_k T_k(Ŝ) values; overwrites the values."""
    before, now = values, multiply(matrix, values)
    found = np.float32(series[0]) * before
    spare = np.empty_like(found)
    found += np.multiply(now, np.float32(series[1]), out=spare)
    if now.shape[1] == STREAM.line == cached_width(len(now)):
        from graphkeel.graph.propagate.lines import add_term  # loads a compiler

        for term in series[2:]:
            add_term(matrix.indptr, matrix.indices, matrix.data, now, before, found, term)
            before, now = now, before
        return found
    for term in series[2:]:
        before, now = now, multiply(matrix, now, before, scale=2.0, keep=-1.0)
        found += np.multiply(now, np.float32(term), out=spare)
    return found


def row_blocks(n_rows: int, block: int | None = None, start: int = 0) -> Iterator[slice]:
    """The rows from `start` on, a block at a time; by default so many that work on them stays in
    the cache."""
    block = block or STREAM.part
    for first in range(start, n_rows, block):
        yield slice(first, min(first + block, n_rows))


def home_of(*arrays: Any) -> Any:
    """The cluster that the first array with a home lives on; None for arrays in memory."""
    homes = (getattr(array, "home", None) for array in arrays)
    return next((home for home in homes if home is not None), None)
