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
MANY = 8  # a frontier of one node in so many: rows are summed on all cores, none is looked for
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
    touched = np.zeros(n_nodes, dtype=bool)
    frontier = np.asarray(nodes, dtype=np.int32)
    mass: Floats = np.asarray(amounts, dtype=np.float64)
    for _ in range(steps_for(n_nodes, len(graph[1])) - 1):
        touched[frontier] = True
        _add_rows(frontier, mass, teleport, out)
        frontier, mass = _step(graph, frontier, mass, 1.0 - teleport)
    touched[frontier] = True
    _add_rows(frontier, mass, teleport, out)
    _last_step(graph, frontier, mass, teleport * (1.0 - teleport), out, touched)
    return touched


def _step(
    graph: Graph, frontier: NDArray[np.int32], mass: Floats, share: float
) -> tuple[NDArray[np.int32], Floats]:
    """share · Ŝ · mass: the rows that it has reached, and what is there. Memory is asked for these
    rows alone, since memory that was never used is dear."""
    n_nodes = len(graph[0]) - 1
    if _is_many(frontier, n_nodes):
        following = np.zeros((n_nodes, mass.shape[1]))
        _gather(graph, frontier, mass, share, following)
        return np.arange(n_nodes, dtype=np.int32), following
    n_ends = int((graph[0][frontier + 1] - graph[0][frontier]).sum())
    following = np.zeros((min(n_nodes, n_ends), mass.shape[1]))
    place = np.full(n_nodes, -1, dtype=np.int32)
    reached = _to_places(*graph, frontier, mass, share, following, place)
    return reached, following[: len(reached)]


def _last_step(
    graph: Graph,
    frontier: NDArray[np.int32],
    mass: Floats,
    share: float,
    out: Floats,
    touched: NDArray[np.bool_],
) -> None:
    """out += share · Ŝ · mass; marks the rows that it reaches."""
    if _is_many(frontier, len(out)):
        _gather(graph, frontier, mass, share, out)
        touched[:] = True
    else:
        _to_rows(*graph, frontier, mass, share, out, touched)


def _is_many(frontier: NDArray[np.int32], n_nodes: int) -> bool:
    return MANY * len(frontier) >= n_nodes


def _gather(
    graph: Graph, frontier: NDArray[np.int32], mass: Floats, share: float, out: Floats
) -> None:
    """out += share · Ŝ · mass, each row summed from neighbours that have any, on all cores."""
    n_nodes = len(out)
    current = mass
    if len(frontier) < n_nodes:
        current = np.zeros((n_nodes, mass.shape[1]))
        current[frontier] = mass
    marked = np.zeros(n_nodes, dtype=bool)
    marked[frontier] = True

    def piece(rows: slice) -> None:
        _into_rows(*graph, rows.start, rows.stop, marked, current, share, out)

    on_all_cores(piece, graph[0], mass.shape[1])


@njit(cache=True, nogil=True)
def _to_places(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[np.float32],
    frontier: NDArray[np.int32],
    mass: Floats,
    share: float,
    out: Floats,
    place: NDArray[np.int32],
) -> NDArray[np.int32]:  # pragma: no cover - compiled
    """Each node hands on to its neighbours (Ŝ is symmetric), which get a row of `out` each, in the
    order in which they are reached; `place` says which, or -1."""
    reached = np.empty(len(out), dtype=np.int32)
    count = 0
    n_frontier = len(frontier)
    width = out.shape[1]
    for i in range(n_frontier):
        _ask_for_node(starts, columns, weights, frontier, i)
        if i + _ASK_ENDS < n_frontier:
            v = frontier[i + _ASK_ENDS]
            for p in range(starts[v], starts[v + 1]):
                prefetch(place, columns[p])  # type: ignore[call-arg]
        v = frontier[i]
        for p in range(starts[v], starts[v + 1]):
            w = columns[p]
            if place[w] < 0:
                place[w] = count
                reached[count] = w
                count += 1
            weight = share * weights[p]
            for c in range(width):
                out[place[w], c] += weight * mass[i, c]
    return reached[:count].copy()


@njit(cache=True, nogil=True)
def _to_rows(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[np.float32],
    frontier: NDArray[np.int32],
    mass: Floats,
    share: float,
    out: Floats,
    touched: NDArray[np.bool_],
) -> None:  # pragma: no cover - compiled
    """The same, where every node has a row of `out`."""
    n_frontier = len(frontier)
    width = out.shape[1]
    for i in range(n_frontier):
        _ask_for_node(starts, columns, weights, frontier, i)
        if i + _ASK_ENDS < n_frontier:
            v = frontier[i + _ASK_ENDS]
            for p in range(starts[v], starts[v + 1]):
                prefetch(touched, columns[p])  # type: ignore[call-arg]
                _ask_for_row(out, columns[p] * width, width)
        v = frontier[i]
        for p in range(starts[v], starts[v + 1]):
            w = columns[p]
            touched[w] = True
            weight = share * weights[p]
            for c in range(width):
                out[w, c] += weight * mass[i, c]


@njit(cache=True, nogil=True)
def _ask_for_node(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[np.float32],
    frontier: NDArray[np.int32],
    i: int,
) -> None:  # pragma: no cover - compiled
    """What lies anywhere in memory is asked for a few nodes before its turn: where a row starts,
    then the row."""
    if i + _ASK_START < len(frontier):
        prefetch(starts, frontier[i + _ASK_START])  # type: ignore[call-arg]
    if i + _ASK_ROW < len(frontier):
        v = frontier[i + _ASK_ROW]
        _ask_for_row(columns, starts[v], _LONG)
        _ask_for_row(weights, starts[v], _LONG)


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
    """Rows first..last-1, each summed from those neighbours that are marked."""
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
    for i in range(len(rows)):
        for c in range(values.shape[1]):
            out[rows[i], c] += share * values[i, c]
