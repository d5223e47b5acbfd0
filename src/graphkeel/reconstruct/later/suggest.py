"""`suggest`: the nodes whose labels would help most.

Greedily the node that adds most to Σ_v u(v)·max over chosen s of (Ŝ²)_sv: uncertain nodes count, as
far as a label near them has not covered them yet; nodes that have a label count as chosen. The sum
is submodular, so what a node adds only shrinks while others are chosen: a bound from two products
with Ŝ orders all nodes, and the gains of few are computed (lazy greedy, Minoux 1978)."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph.propagate.memory_moves import prefetch
from graphkeel.graph.propagate.propagator import Propagator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def uncertainty(probabilities: Tensor) -> Tensor:
    """Entropy of every node's classes as a share of the largest there is, shape (N,).

    Args:
        probabilities: of the classes, shape (N, n_classes).
    """
    wide = probabilities.double()
    entropy = -(wide * wide.clamp_min(1e-12).log()).sum(dim=1)
    return entropy / float(np.log(max(2, probabilities.shape[1])))


def suggested(
    propagator: Propagator, weights: Tensor, labelled: Tensor, allowed: Tensor, k: int
) -> Tensor:
    """Node ids in the order of what they add, int64, shape (k,) or fewer.

    Args:
        propagator: multiplies by Ŝ.
        weights: what covering a node is worth, not negative, shape (N,).
        labelled: ids of the nodes that have a label, int64, shape (L,).
        allowed: which nodes may be suggested, bool, shape (N,); none of them has a label.
        k: how many.
    """
    worth = weights.double().numpy()
    bound = propagator(propagator(weights.float().unsqueeze(1))).squeeze(1).double().numpy()
    candidates = allowed.nonzero().flatten().numpy()
    starts, columns, values = propagator.arrays()
    # float32 products may round a bound down by a little
    bounds = bound[candidates] * (1.0 + 1e-5) + 1e-12
    chosen = _greedy(
        starts, columns, values, worth, labelled.numpy(), candidates, bounds, min(k, len(bounds))
    )
    return torch.from_numpy(chosen)


def allowed_nodes(among: object, n_nodes: int) -> Tensor:
    """Which nodes may be suggested, bool, shape (N,).

    Args:
        among: a mask, ids, or None for all.
        n_nodes: N.
    """
    if among is None:
        return torch.ones(n_nodes, dtype=torch.bool)
    given = torch.as_tensor(among).cpu()
    if given.dtype == torch.bool:
        if given.shape != (n_nodes,):
            raise DataError(f"among must be a mask of {n_nodes} nodes", got=tuple(given.shape))
        return given.clone()
    is_ids = given.dim() == 1 and not given.is_floating_point()
    if not is_ids or (len(given) and not 0 <= int(given.min()) <= int(given.max()) < n_nodes):
        raise DataError(f"among must hold node ids in 0..{n_nodes - 1}", got=f"{among!r}"[:80])
    allowed = torch.zeros(n_nodes, dtype=torch.bool)
    allowed[given.long()] = True
    return allowed


def checked_count(k: object, n_allowed: int) -> int:
    """How many suggestions are wanted, checked.

    Args:
        k: as given.
        n_allowed: how many nodes there are to choose from.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ConfigError("suggest needs a whole number of nodes, at least 1", got=repr(k))
    if not n_allowed:
        raise ConfigError("there is no node without a label to suggest", got=0)
    return int(k)


# What is known of a node lies together, on one cache line: rows of two hops lead anywhere.
_SUM, _COVER, _WORTH, _WIDTH = 0, 1, 2, 4
_ASK = 3  # neighbours from asking for a row to using it


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
    states = np.zeros((n, _WIDTH))
    states[:, _WORTH] = worth
    reached = np.empty(n, dtype=np.int64)
    for node in labelled:
        _cover(starts, columns, values, node, states, reached)
    heap = [(-bounds[i], candidates[i]) for i in range(len(candidates))]
    heapq.heapify(heap)
    chosen = np.empty(k, dtype=np.int64)
    count = 0
    while count < k and len(heap) > 0:
        _, node = heapq.heappop(heap)
        gain = _gain(starts, columns, values, node, states, reached)
        if len(heap) == 0 or gain >= -heap[0][0]:
            chosen[count] = node
            count += 1
            _cover(starts, columns, values, node, states, reached)
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
    reached: Ids,
) -> int:  # pragma: no cover - compiled
    """Row `node` of Ŝ² in the states' sums; its columns in `reached`; how many there are."""
    count = 0
    last = starts[node + 1]
    for p in range(starts[node], last):
        if p + _ASK < last:
            first = starts[columns[p + _ASK]]
            prefetch(columns, first)  # type: ignore[call-arg]
            prefetch(values, first)  # type: ignore[call-arg]
        if p + 1 < last:
            following = columns[p + 1]
            for q in range(starts[following], starts[following + 1]):
                prefetch(states, columns[q] * _WIDTH)  # type: ignore[call-arg]
        middle = columns[p]
        for q in range(starts[middle], starts[middle + 1]):
            end = columns[q]
            if states[end, _SUM] == 0.0:
                reached[count] = end
                count += 1
            states[end, _SUM] += values[p] * values[q]
    return count


@njit(cache=True, nogil=True)
def _gain(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    node: int,
    states: Floats,
    reached: Ids,
) -> float:  # pragma: no cover - compiled
    count = _two_hops(starts, columns, values, node, states, reached)
    gain = 0.0
    for i in range(count):
        end = reached[i]
        total = states[end, _SUM]
        if total > states[end, _COVER]:
            gain += states[end, _WORTH] * (total - states[end, _COVER])
        states[end, _SUM] = 0.0
    return gain


@njit(cache=True, nogil=True)
def _cover(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    node: int,
    states: Floats,
    reached: Ids,
) -> None:  # pragma: no cover - compiled
    count = _two_hops(starts, columns, values, node, states, reached)
    for i in range(count):
        end = reached[i]
        states[end, _COVER] = max(states[end, _COVER], states[end, _SUM])
        states[end, _SUM] = 0.0
