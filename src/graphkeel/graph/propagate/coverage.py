"""Maximum coverage over two hops: greedily the node that adds most to Σ_v u(v)·max over chosen s of
(Ŝ²)_sv.

The sum is submodular, so what a node adds only shrinks while others are chosen: a bound from two
products with Ŝ orders all nodes, and the gains of few are computed (lazy greedy, Minoux 1978)."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.graph.propagate.propagator import Propagator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def greedy_coverage(
    propagator: Propagator, weights: Tensor, covered: Tensor, allowed: Tensor, k: int
) -> Tensor:
    """Node ids in the order of what they add, int64, shape (k,) or fewer.

    Args:
        weights: what covering a node is worth, not negative, shape (N,).
        covered: ids of nodes that count as chosen, int64, shape (L,).
        allowed: which nodes may be chosen, bool, shape (N,); none of them counts already.
    """
    bound = propagator(propagator(weights.float().unsqueeze(1))).squeeze(1).double().numpy()
    candidates = allowed.nonzero().flatten().numpy()
    # float32 products may round a bound down by a little
    bounds = bound[candidates] * (1.0 + 1e-5) + 1e-12
    matrix = propagator.matrix
    chosen = _greedy(
        matrix.indptr,
        matrix.indices,
        matrix.data,
        weights.double().numpy(),
        covered.numpy(),
        candidates,
        bounds,
        min(k, len(candidates)),
    )
    return torch.from_numpy(chosen)


@njit(cache=True, nogil=True)
def _greedy(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    worth: Floats,
    labelled: Ids,
    candidates: Ids,
    bounds: Floats,
    k: int,
) -> Ids:  # pragma: no cover - compiled
    n = len(starts) - 1
    cover = np.zeros(n)
    row = np.zeros(n)  # of Ŝ², zero but between two lines below
    ends = np.empty(n, dtype=np.int64)  # where it is not
    for node in labelled:
        for i in range(_two_hops(starts, columns, values, node, row, ends)):
            cover[ends[i]] = max(cover[ends[i]], row[ends[i]])
            row[ends[i]] = 0.0
    heap = [(-bounds[i], candidates[i]) for i in range(len(candidates))]
    heapq.heapify(heap)
    chosen = np.empty(k, dtype=np.int64)
    found = 0
    while found < k and len(heap) > 0:
        _, node = heapq.heappop(heap)
        count = _two_hops(starts, columns, values, node, row, ends)
        gain = 0.0
        for i in range(count):
            gain += worth[ends[i]] * max(row[ends[i]] - cover[ends[i]], 0.0)
        is_best = len(heap) == 0 or gain >= -heap[0][0]
        for i in range(count):
            if is_best:
                cover[ends[i]] = max(cover[ends[i]], row[ends[i]])
            row[ends[i]] = 0.0
        if is_best:
            chosen[found] = node
            found += 1
        else:
            heapq.heappush(heap, (-gain, node))
    return chosen[:found]


@njit(cache=True, nogil=True)
def _two_hops(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    node: int,
    row: Floats,
    ends: Ids,
) -> int:  # pragma: no cover - compiled
    """Row `node` of Ŝ², whose entries are positive, added to `row`; how many there are."""
    count = 0
    for p in range(starts[node], starts[node + 1]):
        middle = columns[p]
        for q in range(starts[middle], starts[middle + 1]):
            end = columns[q]
            if row[end] == 0.0:
                ends[count] = end
                count += 1
            row[end] += values[p] * values[q]
    return count
