"""Control characters in names from outside are shown, not obeyed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphkeel.cli import doctor
from graphkeel.cli.main import main
from graphkeel.cli.shared.common import emit_lines, verbatim
from graphkeel.core.errors import KeelError
from graphkeel.core.text import printable

EVIL = "x\x1b[2J\r\n\x07\u202e\x9b31m\udcff"
SHOWN = r"x\x1b[2J\r\n\x07\u202e\x9b31m\udcff"


def clean(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_what_is_shown_is_one_visible_line() -> None:
    assert printable(EVIL) == SHOWN
    assert printable(SHOWN) == SHOWN
    assert printable("Grüße, ‖C(h*)−Y‖ ≤ δ") == "Grüße, ‖C(h*)−Y‖ ≤ δ"
    assert printable(Path("a\tb")) == r"a\tb"


def test_errors_show_names_escaped() -> None:
    error = KeelError(f"{EVIL} cannot be read", got=EVIL, fix=f"Rename {EVIL}.")
    assert str(error) == rf"{SHOWN} cannot be read (got {SHOWN}). Rename {SHOWN}."
    assert error.got == EVIL, "the value itself is kept"


def test_tables_and_lines_show_names_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    emit_lines([EVIL, "plain"])
    assert capsys.readouterr().out == f"{SHOWN}\nplain\n"
    assert clean(verbatim(EVIL))


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--dataset", f"{EVIL}.npz"],
        ["run", "--model", EVIL],
        ["check", f"{EVIL}.json"],
        ["verify", f"{EVIL}.json"],
        ["export", f"{EVIL}.json", "--out", "files"],
        ["report", EVIL],
        ["feedback", "--labels", f"{EVIL}.csv"],
        ["adapt", "--source", f"{EVIL}.npz", "--target", "digits", "--seeds", "1"],
        ["run", "--split", EVIL],
        [EVIL],
    ],
)
def test_messages_of_commands_are_clean(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    out, err = capsys.readouterr()
    assert clean(out + err)
    assert r"\x1b[2J" in err


def test_results_name_files_without_obeying_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole run on a graph with such a name: progress, table title, the folder written."""
    path = tmp_path / "graph\x1b[31m\x07.npz"
    rng, y = np.random.default_rng(0), np.arange(120) % 2
    edges = np.stack([np.arange(120), (np.arange(120) + 2) % 120])
    np.savez(path, x=rng.normal(size=(120, 3)) + y[:, None], edge_index=edges, y=y)
    words = ["run", "--dataset", str(path), "--method", "none", "--seeds", "1", "--split", "random"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert clean(out + err)
    assert r"\x1b[31m\x07" in out.replace("\n", "")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dataset"] == str(path)


def test_doctor_names_folders_without_obeying_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "[/]\x1b[31m"
    root.mkdir(parents=True)
    monkeypatch.setenv("GRAPHKEEL_DATA", str(root))
    doctor.show(doctor.collect())
    assert clean(capsys.readouterr().out)
