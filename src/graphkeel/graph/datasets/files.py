"""Files that may be there or not, and the user's cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path


def is_there(check: Callable[[], bool]) -> bool:
    """`path.is_file` or `path.is_dir`, where a name that no file can have (too long, say) is one
    that is not there."""
    try:
        return check()
    except (OSError, ValueError):
        return False


def user_cache() -> Path:
    """The folder for downloads and cached intermediate results; `XDG_CACHE_HOME` is honoured."""
    if sys.platform == "win32":  # pragma: no cover
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":  # pragma: no cover
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphkeel"
