"""The packages: who may import whom (an `ast` walk), and what a light command must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import graphkeel

ROOT = Path(graphkeel.__file__).parent

# package: the packages of ours that it may import. This table is the picture that
# docs/contributing.md draws.
MAY_IMPORT: dict[str, set[str]] = {
    "checker": set(),
    "core": set(),
    "control": {"core"},
    "verify": {"core"},
    "graph": {"core"},
    "store": {"core"},
    "models": {"core", "graph"},
    "certificate": {"checker", "core", "graph", "models"},
    "report": {"core", "store", "certificate"},
    "lyapunov": {"core", "graph", "models", "control", "verify", "certificate"},
    "monitor": {"core", "graph", "report"},
    "reconstruct": {"core", "graph", "models", "control", "lyapunov", "report", "monitor"},
    "label": {"core", "graph", "reconstruct"},
    "cluster": {"core", "graph", "models", "reconstruct"},
    "runs": {"core", "graph", "store", "models", "reconstruct", "report", "label"},
    "testing": {"core", "graph", "models", "control", "runs"},
    "cli": {
        "checker",
        "cluster",
        "core",
        "graph",
        "models",
        "verify",
        "certificate",
        "lyapunov",
        "report",
        "label",
        "monitor",
        "runs",
    },
}
PAPER = "graphkeel_paper"  # the other distribution, which the library never imports

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
    """Every dotted name a module imports anywhere, also inside its functions; `from a import b`
    counts as a and a.b, a name of the root as its home. Not those for types only."""
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
        if node not in typing_only:
            found |= set(_imported(node))
    return {_home(name) for name in found}


def _imported(node: ast.AST) -> Iterator[str]:
    """Imports of one node: a statement, `graphkeel.name`, a call of `import_module`, or a table of
    names that load on first use."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id == "graphkeel":
            yield f"graphkeel.{node.attr}"
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
        yield from (str(word.value) for word in node.args if isinstance(word, ast.Constant))
    elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("_HOMES", "_HOME"):
        words = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
        yield from (word for word in words if str(word).startswith("graphkeel."))


def _home(name: str) -> str:
    """Where a name of the root comes from; every other name is its own home."""
    top, _, rest = name.partition(".")
    return graphkeel._HOME.get(rest, name) if top == "graphkeel" else name


def own_packages(name: str) -> set[str]:
    """The package of ours that an import is of, if any."""
    top, _, rest = name.partition(".")
    own = rest.split(".")[0]
    return {own} if top == "graphkeel" and own in MAY_IMPORT else set()


def breaches(package: str) -> list[str]:
    """Imports of a package that its lines in the tables do not allow."""
    allowed = {package, *MAY_IMPORT[package]}
    strangers = {PAPER, *MUST_NOT_KNOW.get(package, set())}
    found = []
    for file in sorted((ROOT / package).rglob("*.py")):
        for name in sorted(imports(file)):
            if name.partition(".")[0] in strangers or not own_packages(name) <= allowed:
                found.append(f"{file.relative_to(ROOT)} imports {name}")
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_what_they_may(package):
    assert (ROOT / package / "__init__.py").exists()
    assert breaches(package) == []


def test_the_packages_have_an_order():
    """Of imports, and of those that may be: no package is above and below another."""
    seen = {
        package: {
            own
            for file in (ROOT / package).rglob("*.py")
            for name in imports(file)
            for own in own_packages(name) - {package}
        }
        for package in MAY_IMPORT
    }
    for graph in (seen, MAY_IMPORT):
        assert set(TopologicalSorter(graph).static_order()) == set(MAY_IMPORT)  # or CycleError


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f():\n    from graphkeel.verify import load_engine", "verify"),
        ("def f():\n    from graphkeel import Reconstructor", "reconstruct"),
        ("import graphkeel\ndef f():\n    return graphkeel.certify", "lyapunov"),
        ("import importlib\nimportlib.import_module('graphkeel.cli.run')", "cli"),
        ("_HOMES = {'load': 'graphkeel.graph.datasets.registry'}", "graph"),
    ],
)
def test_hidden_imports_are_seen(tmp_path, code, expected):
    path = tmp_path / "module.py"
    path.write_text(code)
    assert expected in {own for name in imports(path) for own in own_packages(name)}


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
    parser = "from graphkeel.cli.main import KEEL; KEEL.parser()"
    assert not loaded_by(parser) & heavy


WORK = """
import graphkeel
from graphkeel.cli.main import main
from graphkeel.graph import load
from graphkeel.models import train_model
task = load("digits:0,1,2")
rec = graphkeel.Reconstructor(train_model("sgc", task), seed=0).fit(task.to_data())
rec.report("own.html", task.to_data())
assert main(["run", "--dataset", "digits:0,1,2", "--seeds", "1", "--out", "run"]) == 0
assert main(["report", "run"]) == 0
"""


def test_fit_run_and_report_load_no_verifier(tmp_path, monkeypatch):
    pytest.importorskip("jinja2", reason="pip install 'graphkeel[report]'")
    monkeypatch.chdir(tmp_path)
    loaded = loaded_by(WORK)
    assert "graphkeel.store.store" in loaded and "graphkeel.report.page" in loaded
    assert {name for name in loaded if name.startswith("graphkeel.verify")} == set()


def test_no_print_outside_the_command_line():
    for path in ROOT.rglob("*.py"):
        if "cli" in path.parts:
            continue
        calls = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], path


PICKLES = {"pickle", "dill", "cloudpickle", "shelve"}


def test_nothing_is_pickled():
    for path in ROOT.rglob("*.py"):
        assert not imports(path) & PICKLES, path
