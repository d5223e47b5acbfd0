"""Which code made a number: a hash of the modules a method is made of, without their comments and
docstrings."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path

from graphkeel.paper.tables.spec import RunSpec

# Every number depends on these, whatever the method.
_ALWAYS = (
    "graphkeel.paper.tables.run",
    "graphkeel.paper.tables.spec",
    "graphkeel.graph.datasets.registry",
    "graphkeel.models.zoo",
    "graphkeel.models.frozen",
)
# What is imported along the way but decides no accuracy: storage, tables and certificates.
_NEVER = (
    *(
        "graphkeel.cli",
        "graphkeel.report",
        "graphkeel.certificate",
        "graphkeel.checker",
        "graphkeel.core.errors",
    ),
    *("graphkeel.core.files", "graphkeel.core.tensor_files", "graphkeel.core.memory"),
)
_OWN = (*_ALWAYS[:2], "graphkeel.paper.tables.controllers")


def method_version(spec: RunSpec) -> str:
    """SHA-256 of all code that a cell of this specification runs."""
    if spec.method == "none":
        return code_fingerprint(_ALWAYS)
    from graphkeel.paper.tables.methods import find_method

    try:
        home = type(find_method(spec.method, spec.method_options)).__module__
    except (
        Exception
    ) as error:  # the cell will say so; once the method can be had, its version is another
        return f"not available: {error}"
    return code_fingerprint((*_ALWAYS, home))


@lru_cache(maxsize=64)
def code_fingerprint(modules: tuple[str, ...]) -> str:
    """SHA-256 over the named modules and those of graphkeel they import, in the order of their
    names."""
    seen: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in seen or not _counts(name) else _source(name)
        if path is None:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        seen[name] = hashlib.sha256(ast.dump(_bare(tree)).encode()).hexdigest()
        waiting += _imported(tree)
    return hashlib.sha256(
        "\n".join(f"{name} {seen[name]}" for name in sorted(seen)).encode()
    ).hexdigest()


def _counts(name: str) -> bool:
    if name.startswith("graphkeel.paper.tables"):
        return name in _OWN
    return name.startswith("graphkeel.") and not any(
        name == part or name.startswith(f"{part}.") for part in _NEVER
    )


def _source(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (
        ModuleNotFoundError,
        ValueError,
    ):  # `from a import b` where b is a function, not a module
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _imported(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _bare(tree: ast.Module) -> ast.Module:
    """The tree without docstrings (comments are not in it anyway)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree
