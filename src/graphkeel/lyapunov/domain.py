"""The domain D: a box that holds the logits of every node and has the equilibrium well inside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.core.errors import DataError
from graphkeel.verify.problem import Array


@dataclass(frozen=True)
class DomainSettings:
    """The box around logits and equilibria.

    Attributes:
        enlarge: of the box's width, on each side of the logits.
        margin: of the box's width, at least, between Y and each face: at a corner it would have no
            neighbourhood.
        grid: faces lie on multiples of 1/grid, so that they read well and print without loss.
    """

    enlarge: float = 0.1
    margin: float = 0.25
    grid: int = 64


@dataclass(frozen=True, eq=False)
class Domain:
    """D = [lower, upper] around the equilibrium Y."""

    equilibrium: Array
    lower: Array
    upper: Array

    @property
    def half_width(self) -> Array:
        return (self.upper - self.lower) / 2


def shared_domains(
    logits: Array, equilibria: Array, settings: DomainSettings = DomainSettings()
) -> list[Domain]:
    """One box for every class, so that a state of D is a state of each class's loop.

    Args:
        logits: of all nodes, shape (nodes, n).
        equilibria: Y of each class, shape (classes, n).
        settings: how much larger than the logits the box is.
    """
    logits, equilibria = np.asarray(logits, np.float64), np.asarray(equilibria, np.float64)
    if logits.ndim != 2 or not len(logits):
        raise DataError(
            "the domain needs the logits of at least one node", got=f"shape {logits.shape}"
        )
    if not np.isfinite(logits).all():
        raise DataError(
            "the domain needs finite logits", got=f"{int((~np.isfinite(logits)).sum())} are not"
        )
    first, last = equilibria.min(axis=0), equilibria.max(axis=0)
    low = np.minimum(logits.min(axis=0), first - 0.5)  # a constant logit still spans a box
    high = np.maximum(logits.max(axis=0), last + 0.5)
    more = settings.enlarge * (high - low)
    low, high = low - more, high + more
    margin = settings.margin * (high - low)
    low, high = np.minimum(low, first - margin), np.maximum(high, last + margin)
    low, high = np.floor(low * settings.grid), np.ceil(high * settings.grid)
    low, high = low / settings.grid, high / settings.grid
    return [Domain(equilibrium, low, high) for equilibrium in equilibria]
