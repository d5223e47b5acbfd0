"""The rooms: who may import whom (an `ast` walk), and what a light command must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import graphkeel

ROOT = Path(graphkeel.__file__).parent

SOLVERS = {"z3", "highspy", "dreal", "cvc5", "maraboupy"}
TORCH = {"torch", "torch_geometric"}
PYG = {"torch_geometric"}


def rooms(*names: str) -> set[str]:
    return {f"graphkeel.{name}" for name in names}


ABOVE = rooms("experiments", "report", "cli")

# room: what its modules must not import (a package name, or the prefix of a room of ours)
FORBIDDEN = {
    "errors.py": TORCH | SOLVERS | {"numpy", "graphkeel"},
    "_optional.py": TORCH | SOLVERS | {"numpy"},
    "durable.py": TORCH | SOLVERS | ABOVE | {"numpy"},
    "memory_limit.py": TORCH | SOLVERS | ABOVE | {"numpy"},
    "tensor_files.py": PYG | SOLVERS | ABOVE,
    "propagate": TORCH
    | SOLVERS
    | ABOVE
    | rooms("data", "models", "control", "lyapunov", "verify", "reconstruct", "baselines", "frozen", "reconstructor"),
    "data": SOLVERS | ABOVE | rooms("models", "control", "lyapunov", "verify", "reconstruct", "baselines"),
    "models": SOLVERS | ABOVE | rooms("control", "lyapunov", "verify", "reconstruct", "baselines"),
    "method.py": SOLVERS | ABOVE | rooms("verify", "lyapunov", "control", "reconstruct", "baselines"),
    "frozen.py": SOLVERS | ABOVE | rooms("data", "control", "lyapunov", "verify", "reconstruct", "baselines"),
    "head.py": SOLVERS | ABOVE | rooms("data", "control", "lyapunov", "reconstruct", "baselines"),
    "control": SOLVERS | PYG | ABOVE | rooms("data", "verify", "lyapunov", "reconstruct", "baselines"),
    "lyapunov": SOLVERS | PYG | ABOVE | rooms("data", "models", "reconstruct", "baselines"),
    "verify": TORCH | ABOVE | rooms("data", "models", "control", "lyapunov", "reconstruct", "baselines"),
    "certificate.py": TORCH | SOLVERS | ABOVE | {"scipy", "numba"} | rooms("verify", "data", "models"),
    "certificates": TORCH | SOLVERS | ABOVE | {"scipy", "numba"} | rooms("verify", "data", "models"),
    "reconstruct": SOLVERS | ABOVE,
    "baselines": SOLVERS | ABOVE | rooms("verify", "lyapunov"),
    "reconstructor.py": SOLVERS | ABOVE,
    "experiments": rooms("cli"),
}


def imports(path: Path) -> set[str]:
    """Every dotted name a module imports anywhere, `from a import b` counted as a and a.b; not those for types only."""
    tree = ast.parse(path.read_text())
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
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


def broken_rules(room: str) -> list[str]:
    place = ROOT / room
    files = [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files
        for name in imports(file)
        if any(name == rule or name.startswith(f"{rule}.") for rule in FORBIDDEN[room])
    ]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_rooms_import_only_what_they_may(room):
    assert (ROOT / room).exists()
    assert broken_rules(room) == []


def test_every_module_belongs_to_a_room():
    homes = {*FORBIDDEN, "cli", "report", "__init__.py", "testing"}
    assert {path.name for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} <= homes


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
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
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path


def test_no_pickle_but_the_allow_list_reader():
    for path in ROOT.rglob("*.py"):
        if path.name != "unpickle.py":
            assert not imports(path) & {"pickle", "dill", "cloudpickle", "shelve"}, path
