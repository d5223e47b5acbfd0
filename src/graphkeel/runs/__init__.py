"""A method on a graph, seed by seed, and what is kept of it: the work behind `keel run`, `demo`,
`adapt` and `feedback`. Light to import: the names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkeel.core.lazy import lazy_names

_HOMES = {"METHODS": "graphkeel.runs.methods", "get_method": "graphkeel.runs.methods"}

__all__ = ["METHODS", "get_method"]

if TYPE_CHECKING:
    from graphkeel.runs.methods import METHODS, get_method

else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
