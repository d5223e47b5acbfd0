"""Rows of ours as a `Reconstructor`, for what a table does not do: labels that arrive, another
graph."""

from __future__ import annotations

from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.reconstruct.methods import METHODS, Reconstruction, untrained
from graphkeel.reconstruct.reconstructor import Reconstructor

OURS = tuple(name for name, row in METHODS.items() if isinstance(row, Reconstruction))


def reconstructor_of(name: str, model: Any, seed: int) -> Reconstructor:
    """What a row of ours stands for, with a user's defaults."""
    row = METHODS.get(name)
    if not isinstance(row, Reconstruction):
        raise ConfigError(f"the method must be one of {', '.join(OURS)}", got=repr(name))
    rec = Reconstructor(
        untrained(model, seed) if row.random_weights else model,
        method=row.method or row.name,
        class_weight=row.class_weight,
        seed=seed,
    )
    rec._without = row.without
    return rec
