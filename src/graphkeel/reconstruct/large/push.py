"""Labels spread by forward push: local, and a sum over the labels, so a new label only adds its own
neighbourhood.

Personalised PageRank of one node (Andersen, Chung & Lang 2006) for Ŝ: mass waits as residual until
there is more than EPSILON of it at a node; then a share stays and the rest moves on. At most
1/(teleport·EPSILON) moves, however large the graph. What a label contributes depends on that label
alone, in any order of arrival."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

EPSILON = 1e-4
FEW = 64  # labels that are not worth a thread of their own
MOST_SHARED = 1 << 27  # numbers in the result up to which each thread may have one to itself
Floats = NDArray[np.float32] | NDArray[np.float64]


def push_all(
    graph: tuple[NDArray[Any], NDArray[Any], Floats],
    nodes: NDArray[np.int64],
    amounts: Floats,
    teleport: float,
    out: Floats,
) -> NDArray[np.bool_]:
    """`push` for many nodes, on all cores; returns which rows of `out` it added to.

    Args:
        graph: starts, columns and weights of a CSR matrix.
        nodes: where mass starts, int64, shape (k,).
        amounts: what each unit of mass carries, shape (k, c).
        teleport: the share a that stays at its source.
        out: shape (N, c); added to.
    """
    cores = os.cpu_count() or 1
    alone = cores == 1 or len(nodes) < 2 * FEW or out.size > MOST_SHARED
    parts = [np.arange(len(nodes))] if alone else np.array_split(np.arange(len(nodes)), cores)

    def spread(number: int) -> tuple[Floats, NDArray[np.bool_]]:
        mine = parts[number]
        result = out if number == 0 else np.zeros_like(out)
        touched = np.zeros(len(out), dtype=bool)
        push(*graph, nodes[mine], amounts[mine], teleport, EPSILON, result, touched)
        return result, touched

    with ThreadPoolExecutor(len(parts)) as pool:
        found = list(pool.map(spread, range(len(parts))))
    touched = found[0][1]
    for result, more in found[1:]:
        rows = np.flatnonzero(more)
        out[rows] += result[rows]
        touched |= more
    return touched


@njit(cache=True, nogil=True)
def push(
    starts: NDArray[Any],
    columns: NDArray[Any],
    weights: Floats,
    nodes: NDArray[np.int64],
    amounts: Floats,
    teleport: float,
    epsilon: float,
    out: Floats,
    touched: NDArray[np.bool_],
) -> None:  # pragma: no cover - compiled
    """out[v] += ppr(node)[v] · amounts[k] for every node with its row of amounts; marks the rows it
    touched.

    Nodes are numbered in the order in which a label reaches them, so that all but one of the arrays
    in use stay as small as its neighbourhood, and in the cache; the rest of their memory is never
    touched.

    Args:
        starts: row starts of a CSR matrix, shape (N + 1,).
        columns: columns of its entries.
        weights: values of its entries.
        nodes: where mass starts, int64, shape (k,).
        amounts: what each unit of mass carries, shape (k, c).
        teleport: the share a that stays at its source.
        epsilon: residual below which mass stays.
        out: shape (N, c); added to.
        touched: bool, shape (N,); marked.
    """
    n = len(starts) - 1
    number = np.zeros(n, dtype=np.int32)  # of a node; 0: not reached
    reached = np.empty(n + 1, dtype=np.int32)
    ring = np.empty(n, dtype=np.int32)
    residual = np.zeros(n + 1)
    kept = np.zeros(n + 1)
    waiting = np.zeros(n + 1, dtype=np.bool_)
    for k in range(len(nodes)):
        head = 0
        count = 1
        last = 1
        ring[0] = 1
        reached[1] = nodes[k]
        number[nodes[k]] = 1
        residual[1] = 1.0
        while count > 0:
            a = ring[head]
            head = head + 1 if head + 1 < n else 0
            count -= 1
            moving = (1.0 - teleport) * residual[a]
            kept[a] += teleport * residual[a]
            residual[a] = 0.0
            waiting[a] = False
            v = reached[a]
            for p in range(starts[v], starts[v + 1]):
                w = columns[p]
                b = number[w]
                if b == 0:
                    last += 1
                    reached[last] = w
                    number[w] = b = last
                residual[b] += moving * weights[p]
                if residual[b] > epsilon and not waiting[b]:
                    waiting[b] = True
                    end = head + count
                    ring[end if end < n else end - n] = b
                    count += 1
        for a in range(1, last + 1):  # mass comes to a node many times; its row is written once
            v = reached[a]
            number[v] = 0
            if kept[a] > 0.0:
                touched[v] = True
                for c in range(amounts.shape[1]):
                    out[v, c] += kept[a] * amounts[k, c]
        residual[1 : last + 1] = 0.0
        kept[1 : last + 1] = 0.0
