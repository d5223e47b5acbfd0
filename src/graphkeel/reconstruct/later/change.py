"""What has changed between a graph and the same graph later: ids of old nodes are kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.core.errors import DataError

ROWS = 1 << 12  # compared together


@dataclass(frozen=True, eq=False)
class Change:
    """A graph as it is now, and what of it is new.

    Attributes:
        x: features, float32, shape (N, d); a copy of its own.
        edge_index: int64, shape (2, E); a copy of its own.
        same: which of the nodes that were there have the features they had, bool, shape (n,).
        added: the edges that came after those that were there, shape (2, k); None where edges were
            taken away, or stand in another order.
    """

    x: Tensor
    edge_index: Tensor
    same: Tensor
    added: Tensor | None

    @property
    def n_nodes(self) -> int:
        return int(self.x.shape[0])

    @property
    def other_features(self) -> Tensor:
        """Nodes that are new or have other features, bool, shape (N,)."""
        marked = torch.ones(self.n_nodes, dtype=torch.bool)
        marked[: len(self.same)] = ~self.same
        return marked

    @property
    def same_edges(self) -> int:
        """How many of the first edges are those that they were."""
        return 0 if self.added is None else int(self.edge_index.shape[1] - self.added.shape[1])

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
        new_edges: edges now, shape (2, E').
    """
    check_grown(x, new_x)
    features = new_x.detach().to("cpu", torch.float32, copy=True).contiguous()
    edges = new_edges.detach().to("cpu", torch.int64, copy=True).contiguous()
    same = _same_rows(x, features)
    _check_finite(features, same)
    n_edges = edge_index.shape[1]
    is_longer = edges.shape[1] >= n_edges and torch.equal(edges[:, :n_edges], edge_index)
    return Change(features, edges, same, edges[:, n_edges:] if is_longer else None)


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
    pairs = zip(x.split(ROWS), features[: len(x)].split(ROWS), strict=True)
    parts = [
        torch.ones(len(old), dtype=torch.bool) if torch.equal(old, new) else (old == new).all(dim=1)
        for old, new in pairs
    ]
    return torch.cat([torch.ones(0, dtype=torch.bool), *parts])


def _check_finite(features: Tensor, same: Tensor) -> None:
    fresh = torch.ones(len(features), dtype=torch.bool)
    fresh[: len(same)] = ~same
    nodes = fresh.nonzero().flatten()
    bad = ~torch.isfinite(features[nodes]).all(dim=1)
    if bool(bad.any()):
        first = int(nodes[bad][0])
        raise DataError(
            "features must be finite",
            got=f"NaN or infinity at {int(bad.sum())} nodes, the first is {first}",
            fix="Look for missing values in data.x.",
        )
