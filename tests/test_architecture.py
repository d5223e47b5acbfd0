"""The packages: who may import whom (an `ast` walk), and what a light command must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import graphkeel

ROOT = Path(graphkeel.__file__).parent

# package: the packages of ours that it may import. This table is the picture that
# docs/contributing.md draws.
MAY_IMPORT: dict[str, set[str]] = {
    "checker": set(),
    "property_checker": {"checker"},
    "core": set(),
    "control": {"core"},
    "verify": {"core"},
    "graph": {"core"},
    "models": {"core", "graph"},
    "certificate": {"checker", "property_checker", "core", "graph", "models"},
    "lyapunov": {"core", "graph", "models", "control", "verify", "certificate"},
    "reconstruct": {"core", "graph", "models", "control", "lyapunov"},
    "paper": {"core", "graph", "models", "control", "verify", "lyapunov", "reconstruct"},
    "report": {"core", "certificate", "paper"},
    "testing": {"core", "graph", "models", "control", "verify", "reconstruct", "paper"},
    "cli": {
        "checker",
        "core",
        "graph",
        "models",
        "verify",
        "certificate",
        "lyapunov",
        "paper",
        "report",
    },
}

TORCH = {"torch", "torch_geometric"}
SOLVERS = {"z3", "highspy", "cvc5", "maraboupy"}

# package: what it must not import of what others wrote
MUST_NOT_KNOW: dict[str, set[str]] = {
    "core": {"numpy", "torch_geometric", *SOLVERS},
    "verify": TORCH,
    "certificate": {"scipy", "numba", "torch_geometric", *SOLVERS},
    "control": {"torch_geometric", *SOLVERS},
    "lyapunov": {"torch_geometric", *SOLVERS},
}


def imports(path: Path) -> set[str]:
    """Every dotted name a module imports anywhere, `from a import b` counted as a and a.b; not
    those for types only."""
    tree = ast.parse(path.read_text())
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If)
        and isinstance(block.test, ast.Name)
        and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def breaches(package: str) -> list[str]:
    """Imports of a package that its lines in the tables do not allow."""
    allowed = {package, *MAY_IMPORT[package]}
    strangers = MUST_NOT_KNOW.get(package, set())
    found = []
    for file in sorted((ROOT / package).rglob("*.py")):
        for name in sorted(imports(file)):
            top, _, rest = name.partition(".")
            own = rest.split(".")[0]
            wrong = top in strangers or (
                top == "graphkeel" and own in MAY_IMPORT and own not in allowed
            )
            if wrong:
                found.append(f"{file.relative_to(ROOT)} imports {name}")
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_what_they_may(package):
    assert (ROOT / package / "__init__.py").exists()
    assert breaches(package) == []


def test_every_module_belongs_to_a_package():
    found = {
        path.name
        for path in ROOT.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found == {*MAY_IMPORT, "__init__.py"}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_graphkeel_and_asking_for_help_load_nothing_heavy():
    heavy = {"torch", "torch_geometric", "numpy", "scipy", "numba", "rich"}
    assert not loaded_by("import graphkeel") & heavy
    parser = "from graphkeel.cli.main import build_parser; build_parser()"
    assert not loaded_by(parser) & heavy


def test_no_print_outside_the_command_line():
    for path in ROOT.rglob("*.py"):
        if "cli" in path.parts:
            continue
        calls = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path


def test_no_pickle_but_the_allow_list_reader():
    for path in ROOT.rglob("*.py"):
        if path.name != "unpickle.py":
            assert not imports(path) & {"pickle", "dill", "cloudpickle", "shelve"}, path
