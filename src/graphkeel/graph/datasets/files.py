"""Files that may be there or not."""

from __future__ import annotations

from collections.abc import Callable


def is_there(check: Callable[[], bool]) -> bool:
    """`path.is_file` or `path.is_dir`, where a name that no file can have (too long, say) is one
    that is not there."""
    try:
        return check()
    except (OSError, ValueError):
        return False
