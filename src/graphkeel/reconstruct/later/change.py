"""What has changed between a graph and the same graph later: ids of old nodes are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.core.room import columns_with_room, lengthened, lengthened_columns
from graphkeel.graph.propagate.row_blocks import on_all_cores, side_by_side
from graphkeel.graph.task import check_edges


@dataclass(frozen=True, eq=False)
class Change:
    """What is new in a graph. Nothing of the caller's is kept.

    Attributes:
        n_nodes: how many nodes there are now, N.
        same: which of the nodes that were there have the features they had, bool, shape (n,).
        nodes: the other ones, and those that are new, int64, shape (k,).
        features: their features, float32, shape (k, d).
        added: the edges that came after those that were there, shape (2, m); None where edges were
            taken away, or stand in another order.
        edges: all edges, where `added` is None.
    """

    n_nodes: int
    same: Tensor
    nodes: Tensor
    features: Tensor
    added: Tensor | None
    edges: Tensor | None

    @property
    def other_features(self) -> Tensor:
        """Nodes that are new or have other features, bool, shape (N,)."""
        marked = torch.ones(self.n_nodes, dtype=torch.bool)
        marked[: len(self.same)] = ~self.same
        return marked

    def all_features(self, x: Tensor) -> Tensor:
        """The features as they are now, shape (N, d).

        Args:
            x: as they were, shape (n, d); written over, where its memory has the room.
        """
        grown = lengthened(x, self.n_nodes)
        grown[self.nodes] = self.features
        return grown

    def all_edges(self, edge_index: Tensor) -> Tensor:
        """The edges as they are now, shape (2, E').

        Args:
            edge_index: as they were, shape (2, E); its memory is used, where it has the room.
        """
        if self.added is None:
            assert self.edges is not None
            return self.edges
        n_edges = edge_index.shape[1]
        grown = lengthened_columns(edge_index, n_edges + self.added.shape[1])
        grown[:, n_edges:] = self.added
        return grown

    def in_words(self) -> str:
        """For the log."""
        n_old = len(self.same)
        other = int((~self.same).sum())
        edges = "edges changed" if self.added is None else f"{self.added.shape[1]} edges added"
        return f"{self.n_nodes - n_old} nodes added, {other} with other features, {edges}"


def change_between(x: Tensor, edge_index: Tensor, new_x: Tensor, new_edges: Tensor) -> Change:
    """Compare a graph with what it was.

    Args:
        x: features as they were, float32, shape (n, d).
        edge_index: edges as they were, int64, shape (2, E).
        new_x: features now, shape (N, d), N >= n.
        new_edges: edges now, shape (2, E'); those that are new are checked here.
    """
    check_grown(x, new_x)
    features = new_x.detach().to("cpu", torch.float32)
    edges = new_edges.detach().to("cpu", torch.int64)
    same = _same_rows(x, features)
    n_nodes = len(features)
    nodes = torch.cat([(~same).nonzero().flatten(), torch.arange(len(x), n_nodes)])
    others = features[nodes]
    _check_finite(nodes, others)
    if _begins_with(edges, edge_index):
        added = edges[:, edge_index.shape[1] :].clone()
        check_edges(added, n_nodes)
        return Change(n_nodes, same, nodes, others, added, None)
    check_edges(edges, n_nodes)
    return Change(n_nodes, same, nodes, others, None, columns_with_room(edges))


def _begins_with(edges: Tensor, before: Tensor) -> bool:
    n = before.shape[1]
    if edges.shape[1] < n:
        return False
    same = side_by_side(
        lambda: torch.equal(edges[0, :n], before[0]),
        lambda: torch.equal(edges[1, :n], before[1]),
    )
    return all(same)


def check_grown(x: Tensor, new_x: Tensor) -> None:
    """Refuse a graph that cannot be the same one later.

    Args:
        x: features as they were, shape (n, d).
        new_x: features now.
    """
    if new_x.shape[1] != x.shape[1]:
        raise DataError(
            f"update needs the {x.shape[1]} features of the graph that was fitted",
            got=int(new_x.shape[1]),
            fix="Prepare them in the same way, or call fit.",
        )
    if new_x.shape[0] < x.shape[0]:
        raise DataError(
            f"update keeps the ids of all {x.shape[0]} nodes that were fitted",
            got=f"{new_x.shape[0]} nodes",
            fix="Leave nodes that are gone in place, without edges; or call fit.",
        )


def _same_rows(x: Tensor, features: Tensor) -> Tensor:
    """Bit for bit, as digests compare them."""
    same = torch.empty(len(x), dtype=torch.bool)
    before = x.view(torch.int32).numpy()
    now = features[: len(x)].contiguous().view(torch.int32).numpy()
    starts = np.arange(len(x) + 1) * x.shape[1]
    found = same.numpy()

    def piece(rows: slice) -> None:
        _compare_rows(before[rows], now[rows], found[rows])

    on_all_cores(piece, starts)
    return same


@njit(cache=True, nogil=True)
def _compare_rows(
    before: NDArray[np.int32], now: NDArray[np.int32], same: NDArray[np.bool_]
) -> None:  # pragma: no cover - compiled
    for i in range(len(same)):
        difference = np.int32(0)
        for j in range(before.shape[1]):
            difference |= before[i, j] ^ now[i, j]
        same[i] = difference == 0


def _check_finite(nodes: Tensor, features: Tensor) -> None:
    bad = ~torch.isfinite(features).all(dim=1)
    if bool(bad.any()):
        first = int(nodes[bad][0])
        raise DataError(
            "features must be finite",
            got=f"NaN or infinity at {int(bad.sum())} nodes, the first is {first}",
            fix="Look for missing values in data.x.",
        )
