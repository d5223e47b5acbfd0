"""Maximum coverage over two hops: greedily the node that adds most to Σ_v u(v)·max over chosen s of
(Ŝ²)_sv.

The sum is submodular, so what a node adds only shrinks while others are chosen: a bound from two
products with Ŝ orders all nodes, and the gains of few are computed (lazy greedy, Minoux 1978)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.graph.propagate.memory_moves import prefetch
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.graph.propagate.row_blocks import on_all_cores

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Graph = tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]

_COVER, _WORTH = 0, 1  # columns of what is known of a node
_EMPTY = -1
_LINE = 16  # columns, or values, of a cache line
_MIX = 0x9E3779B97F4A7  # an odd number that scatters node ids


@dataclass(frozen=True)
class CoverageSettings:
    """When gains are computed on all cores; the choice is the same in any case.

    Attributes:
        many: candidates, beyond which that happens before the choice begins.
        chunk: gains between two looks at whether there are enough.
        paths: numbers that a gain costs, about: whether threads pay.
    """

    many: int = 100_000
    chunk: int = 1 << 14
    paths: int = 400


def greedy_coverage(
    propagator: Propagator,
    weights: Tensor,
    covered: Tensor,
    allowed: Tensor,
    k: int,
    settings: CoverageSettings = CoverageSettings(),
) -> Tensor:
    """Node ids in the order of what they add, int64, shape (k,) or fewer.

    Args:
        weights: what covering a node is worth, not negative, shape (N,).
        covered: ids of nodes that count as chosen, int64, shape (L,).
        allowed: which nodes may be chosen, bool, shape (N,); none of them counts already.
    """
    states = np.zeros((len(weights), 2))
    states[:, _WORTH] = weights.double().numpy()
    bound = propagator(propagator(weights.float().unsqueeze(1))).squeeze(1).double().numpy()
    candidates = allowed.nonzero().flatten().numpy()
    graph = propagator.arrays()
    # float32 products may round a bound down by a little
    bounds = bound[candidates] * (1.0 + 1e-5) + 1e-12
    room = int(_most_paths(graph[0], graph[1]))
    _cover_all(*graph, covered.numpy(), states, room)
    wanted = min(k, len(bounds))
    if len(bounds) > settings.many:
        _tighten(graph, states, candidates, bounds, wanted, room, settings)
    return torch.from_numpy(_greedy(*graph, states, candidates, bounds, wanted, room))


def _tighten(
    graph: Graph,
    states: Floats,
    candidates: Ids,
    bounds: Floats,
    wanted: int,
    room: int,
    settings: CoverageSettings,
) -> None:
    """Replace the largest bounds by gains, on all cores, until as many gains as are wanted exceed
    all other bounds: where much is covered, bounds say little, and nearly all have to go."""
    order = np.argsort(-bounds, kind="stable")
    best = np.empty(0)
    for first in range(0, len(order), settings.chunk):
        part = order[first : first + settings.chunk]
        if len(best) == wanted and best.min() >= bounds[part[0]]:
            return
        gains = np.empty(len(part))
        nodes = candidates[part]

        def piece(rows: slice, nodes: Ids = nodes, gains: Floats = gains) -> None:
            _gains(*graph, states, nodes[rows], gains[rows], room)

        on_all_cores(piece, np.arange(len(nodes) + 1), width=settings.paths)
        bounds[part] = gains
        best = np.sort(np.concatenate([best, gains]))[-wanted:]


@njit(cache=True, nogil=True)
def _most_paths(
    starts: NDArray[Any], columns: NDArray[np.int32]
) -> int:  # pragma: no cover - compiled
    """How many entries a row of Ŝ² has at most, repeats counted, but no more than nodes."""
    n = len(starts) - 1
    most = 0
    for node in range(n):
        most = max(most, _count_paths(starts, columns, node))
    return min(most, n)


@njit(cache=True, nogil=True)
def _count_paths(
    starts: NDArray[Any], columns: NDArray[np.int32], node: int
) -> int:  # pragma: no cover - compiled
    paths = 0
    for p in range(starts[node], starts[node + 1]):
        paths += starts[columns[p] + 1] - starts[columns[p]]
    return paths


@njit(cache=True, nogil=True)
def _table(room: int) -> tuple[Ids, Floats, Ids]:  # pragma: no cover - compiled
    """Room for a row of Ŝ²: nodes and sums by slot, and the slots in use, in their order."""
    size = _size_for(room)
    return np.full(size, _EMPTY), np.empty(size), np.empty(size, dtype=np.int64)


@njit(cache=True, nogil=True)
def _size_for(count: int) -> int:  # pragma: no cover - compiled
    """A power of two that this many fill by half at most."""
    size = 16
    while size < 2 * count:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def _greedy(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    states: Floats,
    candidates: Ids,
    bounds: Floats,
    k: int,
    room: int,
) -> Ids:  # pragma: no cover - compiled
    table = _table(room)
    heap = [(-bounds[i], candidates[i]) for i in range(len(candidates))]
    heapq.heapify(heap)
    chosen = np.empty(k, dtype=np.int64)
    count = 0
    while count < k and len(heap) > 0:
        _, node = heapq.heappop(heap)
        gain = _gain(starts, columns, values, node, states, table)
        if len(heap) == 0 or gain >= -heap[0][0]:
            chosen[count] = node
            count += 1
            _cover(starts, columns, values, node, states, table)
        else:
            heapq.heappush(heap, (-gain, node))
    return chosen[:count]


@njit(cache=True, nogil=True)
def _two_hops(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    node: int,
    states: Floats,
    table: tuple[Ids, Floats, Ids],
) -> int:  # pragma: no cover - compiled
    """Row `node` of Ŝ² in the table; how many entries it has. The table is as small as the row
    allows, and stays in the cache; states, which lie anywhere, are asked for on the way."""
    nodes, sums, slots = table
    n = len(starts) - 1
    mask = _size_for(min(n, _count_paths(starts, columns, node))) - 1
    for p in range(starts[node], starts[node + 1]):
        first = starts[columns[p]]
        last = starts[columns[p] + 1]
        for q in range(first, last + _LINE - 1, _LINE):
            prefetch(columns, q)  # type: ignore[call-arg]
            prefetch(values, q)  # type: ignore[call-arg]
    count = 0
    for p in range(starts[node], starts[node + 1]):
        middle = columns[p]
        for q in range(starts[middle], starts[middle + 1]):
            end = np.int64(columns[q])
            slot = (end * _MIX) >> 12 & mask
            while nodes[slot] != end and nodes[slot] != _EMPTY:
                slot = (slot + 1) & mask
            if nodes[slot] == _EMPTY:
                prefetch(states, end * 2)  # type: ignore[call-arg]
                nodes[slot] = end
                sums[slot] = 0.0
                slots[count] = slot
                count += 1
            sums[slot] += values[p] * values[q]
    return count


@njit(cache=True, nogil=True)
def _gain(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    node: int,
    states: Floats,
    table: tuple[Ids, Floats, Ids],
) -> float:  # pragma: no cover - compiled
    nodes, sums, slots = table
    count = _two_hops(starts, columns, values, node, states, table)
    gain = 0.0
    for i in range(count):
        slot = slots[i]
        end = nodes[slot]
        nodes[slot] = _EMPTY
        gain += states[end, _WORTH] * max(sums[slot] - states[end, _COVER], 0.0)
    return gain


@njit(cache=True, nogil=True)
def _gains(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    states: Floats,
    chosen: Ids,
    out: Floats,
    room: int,
) -> None:  # pragma: no cover - compiled
    table = _table(room)
    for i in range(len(chosen)):
        out[i] = _gain(starts, columns, values, chosen[i], states, table)


@njit(cache=True, nogil=True)
def _cover(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    node: int,
    states: Floats,
    table: tuple[Ids, Floats, Ids],
) -> None:  # pragma: no cover - compiled
    nodes, sums, slots = table
    count = _two_hops(starts, columns, values, node, states, table)
    for i in range(count):
        slot = slots[i]
        end = nodes[slot]
        nodes[slot] = _EMPTY
        states[end, _COVER] = max(states[end, _COVER], sums[slot])


@njit(cache=True, nogil=True)
def _cover_all(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    labelled: Ids,
    states: Floats,
    room: int,
) -> None:  # pragma: no cover - compiled
    table = _table(room)
    for node in labelled:
        _cover(starts, columns, values, node, states, table)
