"""Labels spread by forward push: local, and a sum over the labels, so a new label only adds its own neighbourhood.

Personalised PageRank of one node (Andersen, Chung & Lang 2006) for Ŝ: mass waits as residual until there is more than
EPSILON of it at a node; then a share stays and the rest moves on. At most 1/(teleport·EPSILON) moves, however large the
graph. What a label contributes depends on that label alone, in any order of arrival.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

EPSILON = 1e-4
Floats = NDArray[np.float32] | NDArray[np.float64]


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
    """out[v] += ppr(node)[v] · amounts[k] for every node with its row of amounts; marks the rows it touched."""
    n = len(starts) - 1
    residual, kept, waiting = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.bool_)
    ring, dirty = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    is_dirty = np.zeros(n, dtype=np.bool_)
    for k in range(len(nodes)):
        head, count, n_dirty = 0, 1, 1
        ring[0] = dirty[0] = nodes[k]
        residual[nodes[k]], waiting[nodes[k]], is_dirty[nodes[k]] = 1.0, True, True
        while count > 0:
            v = ring[head]
            head = (head + 1) % n
            count -= 1
            mass = residual[v]
            residual[v], waiting[v] = 0.0, False
            kept[v] += teleport * mass
            for p in range(starts[v], starts[v + 1]):
                w = columns[p]
                residual[w] += (1.0 - teleport) * weights[p] * mass
                if not is_dirty[w]:
                    is_dirty[w] = True
                    dirty[n_dirty] = w
                    n_dirty += 1
                if residual[w] > epsilon and not waiting[w]:
                    waiting[w] = True
                    ring[(head + count) % n] = w
                    count += 1
        for d in range(n_dirty):  # mass comes to a node many times; its row is written once
            v = dirty[d]
            if kept[v] > 0.0:
                touched[v] = True
                for c in range(amounts.shape[1]):
                    out[v, c] += kept[v] * amounts[k, c]
            residual[v], kept[v], is_dirty[v] = 0.0, 0.0, False
