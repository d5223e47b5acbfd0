"""The tables of README.md, docs/results.md and docs/reproducing.md say what the stored files
say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    path = ROOT / "benchmarks" / "figures_in_docs.py"
    spec = importlib.util.spec_from_file_location("figures_in_docs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/reproducing.md"])
def test_figures_are_those_of_the_stored_runs(figures, page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert figures.BLOCK.search(text), f"{page} has no block of figures"
    assert figures.with_figures(text) == text, "run: python benchmarks/figures_in_docs.py --write"


def test_a_changed_figure_is_noticed(figures):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = figures.mean("table-1", "auto", "cora")
    assert shown in text
    assert figures.with_figures(text.replace(shown, "99.9")) == text
