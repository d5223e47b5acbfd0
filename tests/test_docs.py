"""The documentation shows what happens: marked blocks run, examples run, and the site
builds."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runnable_blocks import BadPage, Chain, blocks, chains, run_chain

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CHAINS = [chain for page in PAGES for chain in chains(page)]


# ---- marked blocks


def _frozen_model() -> dict[str, Any]:
    """`model`, `data`, `nodes` and `labels` of the pages: a trained SGC, and labels that arrived
    later."""
    from graphkeel.graph import load
    from graphkeel.models import train_model

    task = load("digits", seed=0)
    data = task.to_data()
    nodes = data.val_mask.nonzero().flatten()[::2]
    return {
        "model": train_model("sgc", task, seed=0),
        "data": data,
        "nodes": nodes,
        "labels": data.y[nodes],
    }


def _problem_file() -> dict[str, Any]:
    """`problem.json`: the example of docs/formats.md."""
    text = next(
        block.text for block in blocks(ROOT / "docs" / "formats.md") if block.language == "json"
    )
    Path("problem.json").write_text(text)
    return {}


def _own_graph() -> dict[str, Any]:
    """The arrays of a graph of the reader's own."""
    from graphkeel.graph import load

    data = load("digits", seed=0).to_data()
    return {name: value.numpy() for name, value in data.to_dict().items()}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "model": _frozen_model,
    "problem": _problem_file,
    "graph": _own_graph,
}


def _parameters() -> list[Any]:
    return [pytest.param(c, id=c.name, marks=[pytest.mark.slow] if c.slow else []) for c in CHAINS]


@pytest.mark.parametrize("chain", _parameters())
def test_marked_blocks_run(chain: Chain, tmp_path, monkeypatch, request):
    if chain.needs:
        request.getfixturevalue("data_folder")
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "__page__"}
    for name in chain.given:
        space |= GIVEN[name]()
    run_chain(chain, space)


def test_the_pages_that_teach_have_marked_blocks():
    pages = {chain.page.name for chain in CHAINS}
    assert {
        "README.md",
        "index.md",
        "own-model.md",
        "choosing.md",
        "growing.md",
        "guarantees.md",
        "pitfalls.md",
        "formats.md",
        "contributing.md",
    } <= pages


# API, commands and examples are generated, and the list of models is a part of own-model.md.
GENERATED = {"cli.md", "compatibility.md"}


def test_there_are_ten_pages():
    assert len({path.name for path in (ROOT / "docs").glob("*.md")} - GENERATED) == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- runnable -->\n\n```python\n1\n```\n", "marks no code block"),
        ("<!-- runnable: sloow -->\n```python\n1\n```\n", "unknown option"),
        ("<!-- runnable slow -->\n```python\n1\n```\n", "is not a marker"),
        ("<!-- runnable: continues -->\n```python\n1\n```\n", "continues nothing"),
    ],
)
def test_a_wrong_marker_is_found(tmp_path, text, message):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(BadPage, match=message):
        chains(page)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- runnable -->\n```python\nassert 1 + 1 == 3\n```\n",
        "<!-- runnable -->\n```python\n>>> 1 + 1\n3\n```\n",
        "<!-- runnable -->\n```console\n$ keel verify nowhere.json\n```\n",
        "<!-- runnable -->\n```console\n$ keel doctor --json\nnothing of the kind\n```\n",
        "<!-- runnable -->\n```sh\nrm -r folder\n```\n",
        "<!-- runnable: exit=1 -->\n```sh\nkeel doctor --json\n```\n",
    ],
)
def test_a_block_that_is_wrong_fails(tmp_path, monkeypatch, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadPage, match=r"page\.md:1"):
        run_chain(chains(page)[0], {})


def test_blocks_of_a_chain_share_folder_and_names(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- runnable: file=a.txt -->\n```text\nhello\n```\n"
        "<!-- runnable: continues -->\n```python\ntext = open('a.txt').read()\n```\n"
        "<!-- runnable: continues -->\n```python\n>>> text\n'hello\\n'\n```\n"
    )
    monkeypatch.chdir(tmp_path)
    (chain,) = chains(page)
    assert len(chain.blocks) == 3
    run_chain(chain, {})


# ---- docstrings

MODULES = [
    path
    for source in (ROOT / "src", ROOT / "paper" / "src")
    for path in sorted(source.rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_examples_in_docstrings_hold(path):
    parts = path.with_suffix("").parts
    name = ".".join(parts[parts.index("src", len(ROOT.parts)) + 1 :]).removesuffix(".__init__")
    pytest.importorskip(name.partition(".")[0])
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0 and result.failed == 0


# ---- examples


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_examples_run(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_every_example_is_a_page(script):
    page = ROOT / "docs" / "examples" / f"{script.stem}.md"
    assert f"```{{keel-example}} {script.stem}\n" in page.read_text()


def _extension(name: str) -> Any:
    """One of the site's own extensions, by its file: docs/ is no package."""
    pytest.importorskip(
        "sphinx", reason="the docs extra is not installed: pip install 'graphkeel[docs]'"
    )
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "_ext" / f"{name}.py")))


def test_a_notebook_holds_what_its_cells_print(tmp_path):
    pytest.importorskip("jupytext")
    (tmp_path / "small.py").write_text(
        "# %% [markdown]\n# Hello\n\n# %%\nx = 2\n\n# %%\nprint(x + 1)\n"
    )
    book = _extension("keel_examples").notebook(tmp_path / "small.py", run=True)
    assert [cell.cell_type for cell in book.cells] == ["markdown", "code", "code"]
    assert [[output.text for output in cell.outputs] for cell in book.cells[1:]] == [[], ["3\n"]]


def test_an_example_that_fails_ends_the_build(tmp_path):
    pytest.importorskip("jupytext")
    (tmp_path / "broken.py").write_text("# %%\nassert 1 == 2\n")
    with pytest.raises(Exception, match="broken does not run"):
        _extension("keel_examples").notebook(tmp_path / "broken.py", run=True)


def test_a_formula_that_cannot_be_drawn_ends_the_build():
    extension = _extension("keel_math")
    assert "<mfrac>" in extension.mathml(r"\frac{1}{2}", block=False)
    hat = extension.mathml(r"\hat y_v = \bar W", block=False)
    assert "<msub><mover" in hat and "munderover" not in hat and "¯" in hat
    with pytest.raises(Exception, match="not a formula"):
        extension.mathml(r"\nosuchcommand", block=False)
    with pytest.raises(Exception, match="needs braces"):
        extension.mathml(r"\tfrac12\Pr", block=False)


def test_docstrings_become_restructuredtext():
    extension = _extension("keel_docstrings")
    assert (
        extension.as_rst("    `f(y)` is h*_c, |y| and *none*")
        == "    ``f(y)`` is h\\*_c, \\|y\\| and *none*"
    )
    fields = [":ivar a, b: both", "    of them", ":ivar c: one"]
    assert extension.one_name_a_field(fields) == [
        ":ivar a: both", "    of them", ":ivar b: both", "    of them", ":ivar c: one",
    ]  # fmt: skip
    assert extension.one_name_a_field([":ivar a_: one"]) == [":ivar a\\_: one"]


# ---- the site


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The whole site, warnings as errors; examples are left to their own tests."""
    pytest.importorskip("graphkeel_paper", reason="the site shows its commands, too")
    pytest.importorskip(
        "furo", reason="the docs extra is not installed: pip install 'graphkeel[docs]'"
    )
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-n",
        "-D",
        "keel_run_examples=0",
    ]
    # A proxy that nobody answers: a build that asks the network for anything fails.
    nowhere = dict.fromkeys(
        ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"
    )
    built = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        env={**os.environ, **nowhere},
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


def test_the_site_builds_without_a_warning(site):
    pages = {
        path.relative_to(ROOT / "docs").with_suffix(".html")
        for path in (ROOT / "docs").rglob("*.md")
        if path.name != "compatibility.md"
    }
    assert {page for page in pages if not (site / page).exists()} == set()


def test_the_models_that_are_tested_are_a_part_of_their_page(site):
    assert "GCNConv" in (site / "own-model.html").read_text()


def test_fitted_attributes_keep_their_underscore(site):
    """A name that ends in an underscore is a reference in reStructuredText, which eats it."""
    import graphkeel

    told = re.findall(r"(?m)^ {8}([\w, ]+): ", str(graphkeel.Reconstructor.__doc__))
    fitted = {name for names in told for name in names.split(", ") if name.endswith("_")}
    assert {"guard_", "features_", "n_features_in_", "classes_"} <= fitted
    page = (site / "api" / "facade.html").read_text()
    assert {name for name in fitted if f"<strong>{name}</strong>" not in page} == set()


def test_the_site_loads_nothing_from_elsewhere(site):
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*\"")
    found = {page.name: loads.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: tags for name, tags in found.items() if tags} == {}
    sheets = "".join(sheet.read_text() for sheet in site.rglob("*.css"))
    assert re.findall(r"@import|url\([\"']?(?:https?:)?//", sheets) == []


def test_formulas_are_mathml(site):
    page = (site / "mathematics.html").read_text()
    assert page.count("<math ") > 100
    assert "\\mathrm" not in page and "\\(" not in page  # no formula is left as its source
    assert [
        name for name in re.findall(r'<script[^>]*src="([^"]*)"', page) if "math" in name.lower()
    ] == []


def test_the_command_reference_is_that_of_the_parsers(site):
    from graphkeel.cli.main import KEEL
    from graphkeel_paper.cli.main import PROGRAM

    page = (site / "cli.html").read_text()
    for program in (KEEL, PROGRAM):
        missing = [name for name in program.commands if f'id="{program.name}-{name}"' not in page]
        assert missing == []
    assert "--simulate" in page and "--any-code" in page


def test_notebooks_are_offered(site):
    nbformat = pytest.importorskip("nbformat")
    for script in EXAMPLES:
        book = nbformat.read(site / "notebooks" / f"{script.stem}.ipynb", as_version=4)
        nbformat.validate(book)
        assert {"markdown", "code"} == {cell.cell_type for cell in book.cells}
        assert (
            f'href="../notebooks/{script.stem}.ipynb"'
            in (site / "examples" / f"{script.stem}.html").read_text()
        )
