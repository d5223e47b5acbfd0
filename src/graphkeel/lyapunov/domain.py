"""The domain D: a box that holds the logits of every node and has the equilibrium well inside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkeel.errors import DataError

Array = NDArray[np.float64]

ENLARGE = 0.1  # of the box's width, on each side of the logits
MARGIN = 0.25  # of the box's width, at least, between Y and each face


@dataclass(frozen=True, eq=False)
class Domain:
    """D = Y + [lower, upper]; the offsets are exact, so D is the same set in y and in z = y − Y."""

    equilibrium: Array
    lower: Array
    upper: Array

    @property
    def half_width(self) -> Array:
        return (self.upper - self.lower) / 2

    def box(self, *, centred: bool) -> tuple[Array, Array, Array]:
        """Lower face, upper face and equilibrium in z (centred) or in y."""
        if centred:
            return self.lower, self.upper, np.zeros_like(self.lower)
        return self.equilibrium + self.lower, self.equilibrium + self.upper, self.equilibrium


def domain_of(logits: Array, equilibrium: Array) -> Domain:
    """Build D for one class from the logits of all nodes, shape (nodes, n)."""
    offsets = np.asarray(logits, dtype=np.float64) - equilibrium
    if offsets.ndim != 2 or not len(offsets):
        raise DataError("the domain needs the logits of at least one node", got=f"shape {offsets.shape}")
    if not np.isfinite(offsets).all():
        raise DataError("the domain needs finite logits", got=f"{int((~np.isfinite(offsets)).sum())} are not")
    low, high = np.minimum(offsets.min(axis=0), 0.0), np.maximum(offsets.max(axis=0), 0.0)
    low, high = np.minimum(low, -0.5), np.maximum(high, 0.5)  # a constant logit still spans a box
    slack = ENLARGE * (high - low)
    low, high = low - slack, high + slack
    margin = MARGIN * (high - low)
    low, high = np.minimum(low, -margin), np.maximum(high, margin)
    return Domain(np.asarray(equilibrium, np.float64), np.floor(low * 64) / 64, np.ceil(high * 64) / 64)
