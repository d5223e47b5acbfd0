"""The paper's distribution stands on the library: what it may import of it, and how light it is."""

from __future__ import annotations

from pathlib import Path

import graphkeel_paper
from test_architecture import PICKLES, imports, loaded_by, own_packages

ROOT = Path(graphkeel_paper.__file__).parent
MAY_IMPORT = {
    "cli",
    "control",
    "core",
    "graph",
    "lyapunov",
    "models",
    "reconstruct",
    "runs",
    "store",
    "verify",
}


def test_the_paper_imports_only_what_it_may():
    found = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in ROOT.rglob("*.py")
        for name in imports(path)
        if not own_packages(name) <= MAY_IMPORT
    }
    assert found == set()


def test_asking_for_help_loads_nothing_heavy():
    heavy = {"torch", "torch_geometric", "numpy", "scipy", "numba", "rich"}
    assert not loaded_by("from graphkeel_paper.cli.main import PROGRAM; PROGRAM.parser()") & heavy


def test_only_the_allow_list_reader_unpickles():
    for path in ROOT.rglob("*.py"):
        if path.name != "unpickle.py":
            assert not imports(path) & PICKLES, path
