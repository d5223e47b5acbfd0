"""Labels spread over the graph: the first terms of personalised PageRank, all labels at once.

Σ_k a·(1−a)^k·Ŝ^k·X, cut off after as many steps as a label needs to reach about `REACH` nodes. What
would move on from there is dropped; left where it stands, it would outweigh all that is nearer.
This is linear in the labels, so a new label only adds its own neighbourhood; and it depends on the
graph and the labels alone, so a graph that has changed gets what a fresh fit would give it, to
float accuracy. (A push that stops at a threshold does not give that: any change on its way moves
what it leaves behind.)

Each step visits the nodes that mass has reached, and all nodes once those are many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.graph.propagate.memory_moves import prefetch
from graphkeel.graph.propagate.row_blocks import on_all_cores

REACH = 1e4  # nodes that a label is to reach
FEWEST, MOST = 2, 20  # steps
MANY = 4  # a frontier of one node in so many: rows are summed on all cores, none is looked for
_ASK_START, _ASK_ROW, _ASK_ENDS = 16, 8, 2  # nodes from asking for memory to using it
_ASK_ENTRY = 32  # the same in entries
_LONG = 17  # columns, or weights, that certainly lie on two cache lines
Floats = NDArray[np.float32] | NDArray[np.float64]
Graph = tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]


def steps_for(n_nodes: int, n_entries: int) -> int:
    """As many steps as a label needs, on average, to reach `REACH` nodes.

    Args:
        n_nodes: N.
        n_entries: of Ŝ, loops included.

    >>> steps_for(1_000_000, 21_000_000), steps_for(1_000_000, 5_000_000)
    (3, 6)
    """
    degree = max(1.5, n_entries / n_nodes)
    return int(np.clip(round(math.log(REACH) / math.log(degree)), FEWEST, MOST))


def spread(
    graph: Graph,
    nodes: NDArray[np.int64],
    amounts: Floats,
    teleport: float,
    out: Floats,
) -> NDArray[np.bool_]:
    """Add to `out` what these nodes' amounts spread to; returns which rows that are.

    Args:
        graph: starts, columns and weights of Ŝ as a CSR matrix.
        nodes: where mass starts, each once, int64, shape (k,).
        amounts: what starts there, shape (k, c).
        teleport: the share a that stays at its source in every step.
        out: shape (N, c); added to.
    """
    n_nodes = len(graph[0]) - 1
    n_steps = steps_for(n_nodes, len(graph[1]))
    current = np.zeros((n_nodes, amounts.shape[1]))
    following = np.zeros(current.shape)
    current[nodes] = amounts
    touched = np.zeros(n_nodes, dtype=bool)
    frontier = np.asarray(nodes, dtype=np.int32)
    for _ in range(n_steps - 1):
        touched[frontier] = True
        _add_rows(frontier, current, teleport, out)
        reached = _step(graph, frontier, current, 1.0 - teleport, following)
        current[frontier] = 0.0
        current, following = following, current
        frontier = reached
    touched[frontier] = True
    _add_rows(frontier, current, teleport, out)
    last = _step(graph, frontier, current, teleport * (1.0 - teleport), out)
    touched[last] = True
    return touched


def _step(
    graph: Graph,
    frontier: NDArray[np.int32],
    current: Floats,
    share: float,
    out: Floats,
) -> NDArray[np.int32]:
    """out += share · Ŝ · current; returns the rows that mass has reached."""
    n_nodes = len(current)
    marked = np.zeros(n_nodes, dtype=bool)
    if MANY * len(frontier) < n_nodes:
        return _from_frontier(*graph, frontier, current, share, out, marked)
    marked[frontier] = True

    def piece(rows: slice) -> None:
        _into_rows(*graph, rows.start, rows.stop, marked, current, share, out)

    on_all_cores(piece, graph[0], current.shape[1])
    return np.arange(n_nodes, dtype=np.int32)


@njit(cache=True, nogil=True)
def _from_frontier(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[np.float32],
    frontier: NDArray[np.int32],
    current: Floats,
    share: float,
    out: Floats,
    marked: NDArray[np.bool_],
) -> NDArray[np.int32]:  # pragma: no cover - compiled
    """Each node hands on to its neighbours (Ŝ is symmetric). What lies anywhere in memory is asked
    for a few nodes before its turn: where a row starts, the row, its neighbours' rows."""
    reached = np.empty(len(marked), dtype=np.int32)
    count = 0
    n_frontier = len(frontier)
    width = out.shape[1]
    for i in range(n_frontier):
        if i + _ASK_START < n_frontier:
            prefetch(starts, frontier[i + _ASK_START])  # type: ignore[call-arg]
        if i + _ASK_ROW < n_frontier:
            v = frontier[i + _ASK_ROW]
            _ask_for_row(columns, starts[v], _LONG)
            _ask_for_row(weights, starts[v], _LONG)
            _ask_for_row(current, v * width, width)
        if i + _ASK_ENDS < n_frontier:
            v = frontier[i + _ASK_ENDS]
            for p in range(starts[v], starts[v + 1]):
                prefetch(marked, columns[p])  # type: ignore[call-arg]
                _ask_for_row(out, columns[p] * width, width)
        v = frontier[i]
        for p in range(starts[v], starts[v + 1]):
            w = columns[p]
            if not marked[w]:
                marked[w] = True
                reached[count] = w
                count += 1
            weight = share * weights[p]
            for c in range(width):
                out[w, c] += weight * current[v, c]
    return reached[:count].copy()


@njit(cache=True, nogil=True)
def _ask_for_row(
    values: NDArray[Any], first: int, width: int
) -> None:  # pragma: no cover - compiled
    """A row may lie across two cache lines."""
    prefetch(values, first)  # type: ignore[call-arg]
    prefetch(values, first + width - 1)  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def _into_rows(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[np.float32],
    first: int,
    last: int,
    marked: NDArray[np.bool_],
    current: Floats,
    share: float,
    out: Floats,
) -> None:  # pragma: no cover - compiled
    """The same for rows first..last-1, each summed from those neighbours that are marked."""
    width = current.shape[1]
    n_entries = len(columns)
    sums = np.empty(width)
    for i in range(first, last):
        sums[:] = 0.0
        for p in range(starts[i], starts[i + 1]):
            if p + _ASK_ENTRY < n_entries:
                ahead = columns[p + _ASK_ENTRY]
                prefetch(marked, ahead)  # type: ignore[call-arg]
                _ask_for_row(current, ahead * width, width)
            v = columns[p]
            if marked[v]:
                weight = share * weights[p]
                for c in range(width):
                    sums[c] += weight * current[v, c]
        for c in range(width):
            out[i, c] += sums[c]


@njit(cache=True, nogil=True)
def _add_rows(
    rows: NDArray[np.int32], values: Floats, share: float, out: Floats
) -> None:  # pragma: no cover - compiled
    for v in rows:
        for c in range(values.shape[1]):
            out[v, c] += share * values[v, c]
