"""The origin of a set of numbers: the commit, the versions, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphkeel
from graphkeel.store.job import package_versions


def provenance() -> dict[str, Any]:
    return {
        "commit": commit(),
        "versions": package_versions(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the source tree when this process first asked, marked where it has changes;
    None for an installed package."""
    home = Path(graphkeel.__file__).resolve().parent
    head = _git(home, "rev-parse", "HEAD")
    if head is None:
        return None
    changes = _git(home, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{head} with changes" if changes else head


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
