"""Public names: what has arguments says what they are; docs import public names only."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphkeel
from tally import TALLY

ROOT = Path(graphkeel.__file__).parent
REPOSITORY = Path(__file__).parents[1]
PACKAGES = sorted(
    f"graphkeel.{module.name}" for module in pkgutil.iter_modules([str(ROOT)]) if module.ispkg
)
EXTRA = ("graphkeel.graph.propagate",)


def public(package: str) -> Iterator[tuple[str, object]]:
    """Functions and classes of ours that a package offers."""
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        ours = getattr(value, "__module__", "").startswith("graphkeel")
        if ours and (inspect.isfunction(value) or inspect.isclass(value)):
            yield f"{package}.{name}", value


def documented(name: str, value: object) -> Iterator[tuple[str, str, bool]]:
    """(function, argument, whether it is documented), of a function or a class's methods."""
    if inspect.isclass(value):
        text = inspect.getdoc(value) or ""
        generated = dataclasses.is_dataclass(value) or issubclass(value, Exception)  # fields say it
        if "__init__" in vars(value) and not generated and not _is_protocol(value):
            yield from _arguments(name, vars(value)["__init__"], text)
        for method, function in vars(value).items():
            if inspect.isfunction(function) and not method.startswith("_"):
                inherited = getattr(value, method)
                text = inspect.getdoc(inherited) or ""
                yield from _arguments(f"{name}.{method}", function, text)
    else:
        yield from _arguments(name, value, inspect.getdoc(value) or "")


def _is_protocol(value: type) -> bool:
    return getattr(value, "_is_protocol", False)


def _arguments(name: str, function: object, text: str) -> Iterator[tuple[str, str, bool]]:
    parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    for parameter in parameters:
        if parameter.name in ("self", "cls") or parameter.name.startswith("_"):
            continue
        named = re.search(rf"(?m)^\s*[\w, *]*\b{re.escape(parameter.name)}\b[\w, *]*:", text)
        yield name, parameter.name, named is not None


@pytest.mark.parametrize("package", [*PACKAGES, *EXTRA])
def test_every_public_function_documents_its_arguments(package):
    found = [entry for name, value in public(package) for entry in documented(name, value)]
    TALLY["documented arguments", package.removeprefix("graphkeel.")] += len(found)
    missing = [f"{function}({argument})" for function, argument, named in found if not named]
    assert missing == []


@pytest.mark.parametrize("package", [*PACKAGES, *EXTRA])
def test_every_public_name_says_what_it_is(package):
    own = {name: value.__doc__ or "" for name, value in public(package)}
    generated = {name for name, text in own.items() if text.startswith(name.split(".")[-1] + "(")}
    assert [name for name, text in own.items() if not text or name in generated] == []


def test_every_package_with_public_names_is_on_an_api_page():
    pages = "".join(page.read_text() for page in (REPOSITORY / "docs" / "api").glob("*.md"))
    public_ones = [
        name for name in PACKAGES if getattr(importlib.import_module(name), "__all__", ())
    ]
    assert len(public_ones) > 8
    assert [name for name in public_ones if f":: {name}" not in pages] == []


def imported_by_docs() -> set[str]:
    """Names that README, docs and examples import of graphkeel."""
    found = set()
    texts = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    for path in texts:
        found |= set(re.findall(r"(?m)^(?:from|import) (graphkeel[\w.]*)", path.read_text()))
    for path in (REPOSITORY / "examples").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphkeel"):
                found.add(str(node.module))
    return found


def test_docs_and_examples_import_only_public_packages():
    allowed = {"graphkeel", *PACKAGES, *EXTRA, "graphkeel.cli.main", "graphkeel_paper"}
    assert imported_by_docs() <= allowed


def test_the_largest_folder_has_at_most_thirty_modules():
    """One level of packages, so that nobody looks for a module in folders of folders."""
    for folder in [ROOT, *(path for path in ROOT.rglob("*") if path.is_dir())]:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= 30, folder
