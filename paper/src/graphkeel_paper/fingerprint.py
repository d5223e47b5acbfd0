"""Where a number comes from: the code, the commit, the versions, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphkeel
import graphkeel_paper
from graphkeel.core.digests import sha256_of
from graphkeel.store.job import package_versions

_PACKAGES = (graphkeel, graphkeel_paper)
_SOURCES = (".py", ".json")
_ONLY_SHOW = {"cli", "report", "label", "tables", "figures"}  # folders that decide no number


@lru_cache(maxsize=1)
def code_version() -> str:
    """SHA-256 of the sources of both packages that a number may depend on."""
    return sha256_of(sources(Path(str(package.__file__)).parent for package in _PACKAGES))


def sources(homes: Iterable[Path]) -> Iterator[str | bytes]:
    """Names and contents of the files that count, in the order of their names."""
    for home in homes:
        for path in sorted(home.rglob("*")):
            inside = path.relative_to(home)
            if path.suffix in _SOURCES and inside.parts[0] not in _ONLY_SHOW:
                yield f"{inside.as_posix()}\n"
                yield path.read_bytes()


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
