"""Rows of ours as a `Reconstructor`, for what a table does not do: labels that arrive, another
graph."""

from __future__ import annotations

from typing import Any, cast

from graphkeel.core.names import check_name
from graphkeel.reconstruct.inputs import MethodName
from graphkeel.reconstruct.methods import METHODS, Reconstruction, untrained
from graphkeel.reconstruct.reconstructor import Reconstructor

OURS = tuple(name for name, row in METHODS.items() if isinstance(row, Reconstruction))


def check_ours(name: str) -> None:
    """Refuse a name that is not one of our own rows."""
    check_name("the method", name, OURS)


def reconstructor_of(name: str, model: Any, seed: int) -> Reconstructor:
    """The reconstructor behind a row of ours, with a user's defaults."""
    check_ours(name)
    row = METHODS[name]
    assert isinstance(row, Reconstruction)
    rec = Reconstructor(
        untrained(model, seed) if row.random_weights else model,
        method=row.method or cast(MethodName, row.name),
        class_weight=row.class_weight,
        seed=seed,
    )
    rec._without = row.without
    return rec
