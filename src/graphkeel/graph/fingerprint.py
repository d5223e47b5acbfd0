"""Which graph it was: digests of features and edges that say, when another one comes, how it
differs. Shapes alone do not tell a permuted graph from its original."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

ROWS = 1 << 16  # looked at together, so that features on disk are never in memory as a whole


@dataclass(frozen=True)
class Fingerprint:
    """Digests of a graph's features (as float32) and edges.

    Attributes:
        nodes, features, edges: how many there are.
        x, edge_index: SHA-256 of the numbers, in their order.
        x_rows, edge_set: SHA-256 that does not depend on the order of nodes, or of edges.
    """

    nodes: int
    features: int
    edges: int
    x: str
    edge_index: str
    x_rows: str
    edge_set: str

    @classmethod
    def of(cls, x: Tensor, edge_index: Tensor) -> Fingerprint:
        """The fingerprint of a graph.

        Args:
            x: features, shape (N, d).
            edge_index: edges, shape (2, E).
        """
        pairs = edge_index.detach().T.to("cpu", torch.int64)
        return cls(
            nodes=int(x.shape[0]),
            features=int(x.shape[1]),
            edges=int(edge_index.shape[1]),
            x=_digest(x, torch.float32),
            edge_index=_digest(pairs, torch.int64),
            x_rows=_unordered(x, torch.float32),
            edge_set=_unordered(pairs, torch.int64),
        )

    def difference(self, other: Fingerprint) -> str | None:
        """How another graph differs from this one, in words; None for the same graph.

        Args:
            other: the fingerprint of the graph that came.
        """
        for name, what in (("nodes", "nodes"), ("features", "features"), ("edges", "edges")):
            was, is_now = getattr(self, name), getattr(other, name)
            if was != is_now:
                return f"{is_now} {what} instead of {was}"
        if self.x != other.x:
            permuted = self.x_rows == other.x_rows
            return "the same nodes in another order" if permuted else "other features"
        if self.edge_index != other.edge_index:
            permuted = self.edge_set == other.edge_set
            return "the same edges in another order" if permuted else "other edges"
        return None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def _chunks(values: Tensor, dtype: torch.dtype) -> Any:
    for part in values.detach().split(ROWS):
        yield part.to("cpu", dtype).contiguous()


def _digest(values: Tensor, dtype: torch.dtype) -> str:
    found = hashlib.sha256()
    for part in _chunks(values, dtype):
        found.update(part.numpy().data)
    return found.hexdigest()


def _unordered(values: Tensor, dtype: torch.dtype) -> str:
    """Of one number per row, sorted: exact arithmetic modulo 2^64, so the same on every machine."""
    generator = torch.Generator().manual_seed(0)
    bound = 2**62
    weights = torch.randint(-bound, bound, (values.shape[1],), generator=generator) | 1
    rows = [torch.empty(0, dtype=torch.int64)]
    for part in _chunks(values, dtype):
        whole = part.view(torch.int32).to(torch.int64) if dtype == torch.float32 else part
        mixed = whole * weights
        rows.append((mixed ^ (mixed >> 29)).sum(dim=1))
    return hashlib.sha256(torch.cat(rows).sort().values.numpy().data).hexdigest()
