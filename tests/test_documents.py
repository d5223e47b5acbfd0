"""README and docs: every command they show exists with those options, and every file they point to
is there."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from graphkeel.cli.main import KEEL
from tally import TALLY

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "paper" / "docs").glob("*.md")),
]
CODE = ("src", "tests", "benchmarks", "paper")
# What stands in the paper's pages is that distribution's to run, but for commands of the library.


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"```(?:bash|sh)\n(.*?)```", page.read_text(), flags=re.S)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("keel ")]


SHOWN = [(page.name, line) for page in PAGES for line in commands(page)]


def test_the_pages_show_commands():
    assert {"README.md"} <= {page for page, _ in SHOWN}


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=lambda value: value)
def test_commands_in_the_pages_exist(page, line):
    words = shlex.split(line.split(" | ")[0].split(" && ")[0], comments=True)
    KEEL.parser().parse_args(words[1:])


def test_readme_says_what_it_is_in_a_minute():
    """For whom, when not, what is proved and what it costs, before anything is installed."""
    first = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install")[0]
    spoken = re.sub(r"<!--.*?-->|!\[.*?\]\(.*?\)|(?<=\])\(.*?\)", "", first)
    assert len(spoken.split()) <= 185
    for name in ("**For you, if**", "**Not for you, if**", "**Proved**", "processor seconds"):
        assert name in spoken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    local = [target for target in targets if not target.startswith("http")]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_pages_that_the_code_names_exist():
    files = [ROOT / "Makefile", *(f for top in CODE for f in (ROOT / top).rglob("*.py"))]
    named = {
        (file, page)
        for file in files
        for page in re.findall(r"(?:paper/)?docs/[\w/-]+\.md", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert {(file, page) for file, page in named if not (ROOT / page).exists()} == set()


def test_docstrings_begin_with_what_it_is():
    """Subject or verb first: "What …" and "The same …" have to be read twice."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    files = [f for top in (*CODE, "examples") for f in (ROOT / top).rglob("*.py")]
    found = {
        f"{file.relative_to(ROOT)}: {text[:60]}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, documented)
        if (text := ast.get_docstring(node) or "").startswith(("What ", "The same "))
    }
    assert len(files) > 400
    assert found == set()


def test_the_ten_pages_stay_short():
    """Words outside code and generated figures: a page is read, or it is not kept."""
    words = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"<!-- figures:.*?<!-- end -->|```.*?```", " ", text, flags=re.DOTALL)
        generated = page.name in ("cli.md", "compatibility.md")
        words += 0 if generated else len(re.findall(r"[^\s|]*[^\W_][^\s|]*", text))
    TALLY["documents", "words of the ten pages"] = words
    assert words < 18_000
