"""Which code made a number: a hash of the modules a method is made of, without their comments and
docstrings, and of the settings stored beside them."""

from __future__ import annotations

import ast
import importlib.util
import os
import platform
import subprocess
from dataclasses import is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphkeel
from graphkeel.core.digests import file_sha256, sha256_of
from graphkeel.store.job import package_versions
from graphkeel_paper.specs import RunSpec

# Imported along the way, but they decide no accuracy: storage, tables, names, verifiers and
# certificates.
_IGNORED = (
    "graphkeel.cli",
    "graphkeel.report",
    "graphkeel.store",
    "graphkeel.verify",
    "graphkeel.certificate",
    "graphkeel.checker",
    "graphkeel.core.digests",
    "graphkeel.core.errors",
    "graphkeel.core.files",
    "graphkeel.core.tensors",
    "graphkeel.core.memory",
    "graphkeel_paper.baselines.registry",
    "graphkeel_paper.fingerprint",
    "graphkeel_paper.tables",
)


def method_version(spec: RunSpec) -> str:
    if spec.method == "none":
        return code_fingerprint(spec.CODE)
    try:
        method = spec.find_method()
    except Exception as error:  # the job will say so
        return f"not available: {error}"
    return version_of(method, spec.CODE)


def version_of(method: object, modules: tuple[str, ...]) -> str:
    parts = [method, *getattr(method, "rivals", ())]
    code = code_fingerprint((*modules, *(type(part).__module__ for part in parts)))
    settings = "".join(repr(part) for part in parts if is_dataclass(part))
    return sha256_of([f"{code} {settings}"])


@lru_cache(maxsize=64)
def code_fingerprint(modules: tuple[str, ...]) -> str:
    """SHA-256 over the named modules and those of graphkeel they import, in the order of their
    names, with the JSON files of their folders."""
    seen: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen or not _counts(name):
            continue
        path = _source(name)
        if path is None:
            continue
        seen[name], imported = parsed_file(path)
        waiting += imported
        for stored in path.parent.glob("*.json"):
            seen[str(stored.name)] = file_sha256(stored)
    lines = [f"{name} {seen[name]}" for name in sorted(seen)]
    return sha256_of(["\n".join(lines)])


@lru_cache(maxsize=1024)
def parsed_file(path: Path) -> tuple[str, tuple[str, ...]]:
    """SHA-256 of a file's code, and the names that it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = tuple(_imported(tree))
    return sha256_of([ast.dump(_without_docstrings(tree))]), imported


def _counts(name: str) -> bool:
    """Whether the code of a module may decide a number."""
    ignored = any(name == part or name.startswith(f"{part}.") for part in _IGNORED)
    return name.startswith(("graphkeel.", "graphkeel_paper.")) and not ignored


def _source(name: str) -> Path | None:
    """A module's file, found without importing its package; None: in `from a import b` b may be a
    function."""
    top, *parts = name.split(".")
    package = importlib.util.find_spec(top)
    if package is None or package.origin is None:
        return None
    if not parts:
        return Path(package.origin)
    home = Path(package.origin).parent.joinpath(*parts)
    found = [path for path in (home / "__init__.py", home.with_suffix(".py")) if path.is_file()]
    return found[0] if found else None


def _imported(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """The tree without docstrings (comments are not in it anyway)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree


# ---- The origin of a set of numbers: the commit, the versions, the machine.


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
