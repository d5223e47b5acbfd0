"""Features some hops away, as a matrix that is never written out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.graph.propagate.local import hops_of

Array = NDArray[np.float32]


class View:
    """Ŝ^hops · features, never written out: rows of it, and products with it.

    Args:
        features: dense or sparse, shape (N, d).
        matrix: Ŝ.
        hops: how often it is applied.
    """

    def __init__(self, features: Any, matrix: Any = None, hops: int = 0) -> None:
        self.features = features
        self.matrix = matrix
        self.hops = hops

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    def rows(self, nodes: NDArray[np.int64]) -> Any:
        if not self.hops:
            return self.features[nodes]
        walk = self.matrix[nodes]
        for _ in range(self.hops - 1):
            walk = walk @ self.matrix
        return walk @ self.features

    def times(self, weights: Array) -> Array:
        product = np.asarray(self.features @ weights)
        return hops_of(self.matrix, product, self.hops) if self.hops else product
