"""`RawGraph`: a dataset as its files give it, before a split is drawn or a feature is reduced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.graph.propagate.adjacency import neighbours


@dataclass(frozen=True, eq=False)
class BiasedSets:
    """How biased training sets of a dataset are drawn.

    Attributes:
        teleport: of the PageRank whose rows are compared.
        pool: only the first so many nodes are drawn; None: all.
        published: training sets that somebody has published, by number; drawn beyond them.
    """

    teleport: float = 0.1
    pool: int | None = None
    published: Sequence[NDArray[np.int64]] = ()


@dataclass(frozen=True, eq=False)
class RawGraph:
    """x may be sparse; edge_index is (2, E) int64, both directions; y is -1 where unknown."""

    name: str
    x: NDArray[np.float32] | sparse.csr_matrix
    edge_index: NDArray[np.int64]
    y: NDArray[np.int64]
    n_classes: int
    self_links: NDArray[np.int64] = field(
        default_factory=lambda: np.empty(0, dtype=np.int64)
    )  # left out of edge_index
    public_split: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = (
        None  # train, val, test
    )
    auto_features: str = "raw"  # the kind that `auto` stands for
    biased: BiasedSets = BiasedSets()

    @property
    def n_nodes(self) -> int:
        return int(self.y.shape[0])


def undirected(rows: NDArray[np.int64], cols: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    """Both directions of each pair once, without self-loops, sorted by source then target; the ends
    of the edges are rows and cols, shape (E,)."""
    joined = neighbours(np.stack([rows, cols]), n_nodes).tocoo()
    return np.stack([joined.row, joined.col]).astype(np.int64)
