"""graphkeel keeps a trained graph neural network upright under distribution shift without
retraining it.

The public names load on first use (PEP 562), so `import graphkeel` costs nothing and `keel check`
never imports torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "GraphTask": "graphkeel.graph",
    "FrozenModel": "graphkeel.models.frozen",
    "KeelError": "graphkeel.core.errors",
    "Reconstructor": "graphkeel.reconstruct.reconstructor",
    "load": "graphkeel.reconstruct.reconstructor",
}

__all__ = ["FrozenModel", "GraphTask", "KeelError", "Reconstructor", "__version__", "load"]

if TYPE_CHECKING:
    from graphkeel.core.errors import KeelError
    from graphkeel.graph import GraphTask
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.reconstruct.reconstructor import Reconstructor, load


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'graphkeel' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
