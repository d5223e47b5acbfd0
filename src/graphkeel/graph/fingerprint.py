"""Which graph it was: digests of features, edges and what edges carry, that say, when another one
comes, how it differs. Shapes alone do not tell a permuted graph from its original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.core.digests import sha256_of
from graphkeel.core.errors import DataError

_ROWS = 1 << 10  # nodes digested together
_EDGES = 1 << 15  # edges digested together
_CARRIED = ("edge_weight", "edge_attr")  # what edges may carry beside their ends
_MODULUS = 2**64
_ODD = -0x61C8864680B583EB  # 2^64 divided by the golden ratio, as a signed number


@dataclass(frozen=True)
class Fingerprint:
    """Digests of a graph's features (as float32), edges and what they carry.

    Attributes:
        nodes, features, edges: how many there are.
        x, edge_index: SHA-256 of the numbers, in their order.
        x_rows, edge_set: numbers that do not depend on the order of nodes, or of edges.
        carried: SHA-256 of edge_weight and edge_attr, where there are any.
    """

    nodes: int
    features: int
    edges: int
    x: str
    edge_index: str
    x_rows: str
    edge_set: str
    carried: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        x: Tensor,
        edge_index: Tensor,
        carried: Mapping[str, Tensor] | None = None,
    ) -> Fingerprint:
        """The fingerprint of a graph: features (N, d), edges (2, E), and what these carry."""
        features, rows = _digests(x, torch.float32, _ROWS)
        edges, edge_set = _digests(edge_index.T, torch.int64, _EDGES)
        return cls(
            nodes=int(x.shape[0]),
            features=int(x.shape[1]),
            edges=int(edge_index.shape[1]),
            x=features,
            edge_index=edges,
            x_rows=rows,
            edge_set=edge_set,
            carried={
                name: _digests(_as_rows(value), torch.float32, _EDGES)[0]
                for name, value in sorted((carried or {}).items())
            },
        )

    def difference(self, other: Fingerprint) -> str | None:
        """How another graph differs from this one, in words; None for the same graph."""
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
        for name in sorted(self.carried.keys() | other.carried.keys()):
            if name not in other.carried:
                return f"no {name}"
            if self.carried.get(name) != other.carried[name]:
                return f"other {name}"
        return None

    def check(self, data: Any) -> None:
        """Refuse another graph, with the difference."""
        difference = self.difference(Fingerprint.of(data.x, data.edge_index, carried_by(data)))
        if difference is not None:
            raise DataError(
                "this is not the graph that the features were made for",
                got=difference,
                fix="Hand over that graph, or call update with this one if it is the same, later.",
            )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def carried_by(data: Any) -> dict[str, Tensor]:
    """Tensors that the edges of a graph carry beside their ends, by name."""
    found = {name: getattr(data, name, None) for name in _CARRIED}
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def _as_rows(values: Tensor) -> Tensor:
    return values.reshape(values.shape[0], -1) if values.dim() else values.reshape(1, 1)


def _digests(values: Tensor, dtype: torch.dtype, rows: int) -> tuple[str, str]:
    """SHA-256 of the digests of blocks of rows, and the sum of a number per row, modulo 2^64, which
    does not depend on their order."""
    blocks, total = [], 0
    for part in values.detach().split(rows) if len(values) else ():
        block = part.to("cpu", dtype).contiguous()
        blocks.append(bytes.fromhex(sha256_of([block.numpy().data])))
        total += int(row_numbers(block.numpy()).sum())
    return sha256_of(blocks), f"{total % _MODULUS:016x}"


def row_numbers(values: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each row of float32 or int64 values (n, k), shape (n,): other rows have other
    ones. Exact arithmetic modulo 2^64, so the same on every machine."""
    weights = np.random.default_rng(0).integers(-(2**62), 2**62, values.shape[1]) | 1
    bits = values.view(np.int32) if values.dtype == np.float32 else values
    mixed = bits * weights
    mixed ^= mixed >> 29
    found = mixed.sum(axis=1) * _ODD
    return found ^ (found >> 32)  # type: ignore[no-any-return]
