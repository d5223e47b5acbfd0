"""Names and strings from data reach a page, a shell command or the terminal as letters, never as
code."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import readers
from graphkeel.certificate import certificate_bytes
from graphkeel.cli.main import main
from graphkeel.core.text import printable
from graphkeel.report.page import render_page
from graphkeel.report.sources import find_sources
from tally import TALLY

EVIL = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "</title></script><!--",
    "{{ 7 * 7 }}{% include 'x' %}",
    "x; touch owned; $(touch owned) `touch owned` | sh",
    "' --out / '",
    "javascript:alert(1)",
    "[/][red]x",
    "proved\u202edevorp\u2066",  # turns the direction of what follows
    "a\u200bb\u00adc\ufeff",  # letters that nobody sees
    "\x1b[31mred\x07\x00\x7f\x9b2J",
    "one\ntwo\r\u2028three",
]


def folder_with(name: str, folder: Path) -> Path:
    """A run, a certificate and a figure in which every free string is `name`."""
    spec = dict.fromkeys(("dataset", "model", "method", "labels", "split", "features"), name)
    manifest = {"spec": {**spec, "pca": name}, "program": name, "torch": name}
    row = {
        **readers.row_sample(),
        "decision": {"reason": name, "chosen": [name]},
        "data": name,
        "weights": name,
    }
    readers.write_run(folder, json.dumps(manifest), json.dumps(row), readers.nodes_sample())
    content = readers.certificate_content("contraction")
    told = {
        **content,
        "provenance": {**content["provenance"], "dataset": name, "model": name, "split": name},
    }
    readers.put(folder, "certificate.json", certificate_bytes(told))
    readers.put(
        folder, "figure-9.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{name}</svg>".encode()
    )
    return folder


def tags(page: str) -> list[str]:
    return re.findall(r"<[a-zA-Z!/][^\s>]*", page)


def check_page(name: str, folder: Path) -> None:
    """The page has the tags it has for a harmless name, its commands are split by a shell into
    whole names, and every character of it is a visible one."""
    harmless, page = (
        render_page(find_sources([folder_with(n, folder / k)]))
        for n, k in (("plain", "a"), (name, "b"))
    )
    assert tags(page) == tags(harmless)
    (command,) = [
        html.unescape(line) for line in re.findall(r"keel-paper run --dataset[^<]*", page)
    ]
    words = shlex.split(command)
    assert words[words.index("--dataset") + 1] == printable(name)
    assert words[words.index("--features") + 1] == printable(name)
    assert all(line.isprintable() for line in page.split("\n"))


@pytest.mark.parametrize("name", EVIL)
def test_hostile_names_stay_names_in_a_page(name: str, tmp_path: Path) -> None:
    check_page(name, tmp_path)


@pytest.mark.slow
def test_any_name_stays_a_name_in_a_page(tmp_path: Path) -> None:
    letters = st.text(
        st.sampled_from("<>&\"'`$;|(){}[]%/\\!-= abcé\u2028"), min_size=1, max_size=30
    )

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(letters)
    def run(name: str) -> None:
        TALLY["fuzz executions", "hypothesis"] += 1
        check_page(name, tmp_path)

    run()


def test_a_file_named_like_markup_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x[" / "][red].npz"
    path.parent.mkdir()
    rng, y = np.random.default_rng(0), np.arange(120) % 2
    edges = np.stack([np.arange(120), (np.arange(120) + 2) % 120])
    np.savez(path, x=rng.normal(size=(120, 3)) + y[:, None], edge_index=edges, y=y)
    assert (
        main(
            ["run", "--dataset", str(path), "--method", "none", "--seeds", "1", "--split", "random"]
        )
        == 0
    )
    assert "[/][red]" in capsys.readouterr().out.replace("\n", "")
    assert not (tmp_path / "owned").exists()
