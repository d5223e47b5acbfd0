"""Known labels, and which of them each of several sets may use (cross-fitting)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Known labels, and which of them each of S sets may use.

    Attributes:
        nodes: int64, shape (L,).
        classes: int64, shape (L,).
        used: bool, shape (S, L).
        n_classes: C.
    """

    nodes: NDArray[np.int64]
    classes: NDArray[np.int64]
    used: NDArray[np.bool_]
    n_classes: int

    def members(self) -> Array:
        """One-hot labels, zero where a set may not use them, shape (S, L, C)."""
        one_hot = np.eye(self.n_classes, dtype=np.float32)[self.classes]
        return self.used[:, :, None] * one_hot

    def written_on(self, values: Array) -> Array:
        """The values (N, S, C), whose labelled rows now say what is known to each set."""
        known = np.swapaxes(self.members(), 0, 1)
        rows = values[self.nodes]
        values[self.nodes] = np.where(self.used.T[:, :, None], known, rows)
        return values

    def soft(self, posterior: Array) -> Array:
        """Memberships (N, S, C): the answer made sharper, and what is known."""
        found = posterior**2
        found /= found.sum(axis=2, keepdims=True)
        return self.written_on(found)

    def on_graph(self, n_nodes: int) -> Array:
        """The known labels as a function on the graph, zero elsewhere, shape (N, S, C)."""
        return self.written_on(np.zeros((n_nodes, len(self.used), self.n_classes), np.float32))
