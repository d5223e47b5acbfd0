"""Figures in README, docs and paper/docs are those of the stored files and of the code; prose has
none of its own."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAPER = sorted((ROOT / "paper" / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS, *PAPER]
# Definitions (formulas, formats) have numbers; so has the list of models, which a test makes.
PROSE = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
    if page.name not in ("mathematics.md", "formats.md", "compatibility.md")
]
# Pages of the paper's distribution whose figures are generated, too. What they say of the protocol,
# of settings and of the paper itself is no measurement; paragraphs that begin so say only that. One
# that tells figures of which no run is stored has to say so, in the words that follow.
COMPARED = [page for page in PAPER if page.name in ("reproducing.md", "rivals.md")]
DEFINED = (
    "**Protocol.**",
    "**Numbers.**",
    "**Two bases.**",
    "**Ten seeds a cell",
    "**Rows.**",
    "**In Table 1 by rounds",
    "- *Photo and Computers.*",
    "- *Pubmed.*",
    "- *FRGNN, MH-AUG, KDGA.*",
    "- *As written.*",
    "- *Nodes against splits.*",
    "- *Edges.*",  # test_verdicts.py compares ours
    "- *Biased or random.*",
    "- *KDGA out of memory on Photo.*",
    "One random training node,",
    "| name | what it does | settings |",
    "- `rivals+avg`",
    "The examination:",
    "Graph domain adaptation has",
    "With 100 target labels",
    "In `keel-paper table adapt` the model",
)
UNSTORED = "no stored file holds"
# Numbers that are names, not figures: versions, formulas, types of numbers, exit codes.
NAMES = re.compile(
    r"Python 3\.\d+ to 3\.\d+|Apache-2\.0|arXiv 2410\.09708|[Vv]ersion 0\.\d|Eq\. \d+|m = 1|y⁺"
    r"|float\d+|bfloat\d+|exit code \d|with 0 if|0…n−1|largest label \+ 1|a = 0|V\(Y\) = 0|V > 0"
    r"|kappa` < 1|(?<=, )[13] if one|γ > 0|ρ < 1|−1 where|\(−z/2, z/2\)|Algorithm 1|Definition 1"
    r"|100 columns|SHA-256|V ≡ 0|node 0|\(2, E\)|version 1 |‖₂|100 %|(?m:^\d\. )|VNN-COMP"
)


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    path = ROOT / "benchmarks" / "figures_in_docs.py"
    spec = importlib.util.spec_from_file_location("figures_in_docs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_stored_runs(figures, page):
    text = page.read_text(encoding="utf-8")
    assert figures.with_figures(text) == text, "run: python benchmarks/figures_in_docs.py --write"


def test_every_page_with_figures_is_written_by_the_script(figures):
    marked = {page for page in PAGES if "<!-- figures:" in page.read_text(encoding="utf-8")}
    assert {ROOT / "README.md", ROOT / "docs" / "results.md"} <= marked <= set(figures.PAGES)


def test_every_block_is_shown_somewhere(figures):
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {name for name in figures.BLOCKS if f"<!-- figures: {name} -->" not in text} == set()


def digits_changed(text: str) -> str:
    """The text with the last digit of every number turned into another one."""
    return re.sub(r"\d(?!\d)", lambda found: str((int(found[0]) + 1) % 10), text)


def marked(figures: ModuleType) -> list[tuple[Path, str]]:
    """Every block and value of every page that has a digit."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        parts = [*figures.BLOCK.finditer(text), *figures.VALUE.finditer(text)]
        found += [(page, part[0]) for part in parts if re.search(r"\d", part[3])]
    return found


def test_a_changed_figure_is_noticed(figures):
    """Each of them, with its digits changed, is put right again."""
    parts = marked(figures)
    assert len(parts) > 20
    for page, part in parts:
        head, inner, tail = re.split(r"(?<=-->)((?:.|\n)*)(?=<!-- end)", part, maxsplit=1)
        wrong = head + digits_changed(inner) + tail
        assert wrong != part and figures.with_figures(wrong) == part, page.name


# ---- prose


def prose(text: str) -> str:
    """A page without what is generated, code, and targets of links."""
    text = re.sub(r"<!-- (?:figures|value): .*?<!-- end -->", " ", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->", " ", text, flags=re.DOTALL)
    return NAMES.sub(" ", text)


def typed_figures(text: str) -> list[str]:
    """Decimals, percentages, and numbers of two digits or more."""
    return re.findall(r"[^\n]{0,30}(?<![\w.])[+−-]?(?:\d+\.\d+|\d+ ?(?:%|percent)|\d[\d,]+)", text)


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_prose_has_no_figure_of_its_own(page):
    assert typed_figures(prose(page.read_text(encoding="utf-8"))) == []


def measured(text: str) -> str:
    """A page without paragraphs of definitions, and those that say that they are not stored."""
    # a table goes with the words before it
    parts = re.split(r"\n\n(?!\|)|\n(?=- )|(?<=\n)(?=\| name)", text)
    told = (part for part in parts if UNSTORED not in part and not part.startswith(DEFINED))
    return "\n\n".join(told)


@pytest.mark.parametrize("page", COMPARED, ids=lambda page: page.name)
def test_what_the_papers_pages_measured_is_generated_or_said_to_be_unstored(page):
    assert typed_figures(prose(measured(page.read_text(encoding="utf-8")))) == []


def test_a_typed_figure_on_a_page_of_the_paper_is_found():
    told = (
        "**Protocol.** 20 components.\n\n- Cora gains 3.5 points.\n- 1.5, no stored file holds it."
    )
    assert [figure[-3:] for figure in typed_figures(prose(measured(told)))] == ["3.5"]


@pytest.mark.parametrize("text", ["gains +11.2 points", "64 % of", "on 1,797 nodes", "215 loops"])
def test_a_typed_figure_is_found(text):
    assert typed_figures(prose(f"It {text}.")) != []


# ---- what pages say of the code


def test_the_sources_of_evidence_are_those_of_the_mathematics():
    import graphkeel
    from graphkeel.graph import load
    from graphkeel.models import train_model

    task = load("digits:0,1,2", seed=0)
    rec = graphkeel.Reconstructor(train_model("sgc", task, seed=0), seed=0).fit(task.to_data())
    text = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    rows = text.partition("| sources | names |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", rows)) == set(rec._decision.evidence)


def test_the_numbers_that_the_mathematics_name_are_fields():
    from dataclasses import fields

    from graphkeel.reconstruct.decide import DecideSettings
    from graphkeel.reconstruct.guard import GuardSettings

    assert {"heterophilous", "homophilous", "half"} <= {
        field.name for field in fields(DecideSettings)
    }
    assert "trust" in {field.name for field in fields(GuardSettings)}


def test_the_citation_is_that_of_the_file():
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    filed = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    title = re.search(r'^title: "(.*)"$', filed, flags=re.MULTILINE)
    assert title is not None and f"title   = {{{title[1]}}}" in told
    assert all(name in told for name in re.findall(r"family-names: (\w+)", filed))
