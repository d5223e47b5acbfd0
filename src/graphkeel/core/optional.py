"""Optional packages are imported where they are used, and named with their extra when they are
missing."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from graphkeel.core.errors import MissingDependencyError


def is_installed(module: str) -> bool:
    """Whether `module` can be found, without importing it."""
    return importlib.util.find_spec(module) is not None


def import_optional(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or say which extra of graphkeel brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"the optional package {module!r} is needed for this",
            got=str(error),
            fix=f"Install it with: pip install 'graphkeel[{extra}]'",
        ) from error
