"""A name that does not exist is refused before any work, and before a folder or file is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkeel.cli.main import main

OTHERS = {
    "feedback": ["--simulate", "9"],
    "adapt": ["--source", "digits", "--target", "digits"],
}
NAMES = {
    "run": ("method", "model", "split", "features", "dataset"),
    "certify": (*("model", "split", "features", "classes", "form", "set", "engine", "dataset"),),
    "feedback": ("model", "split", "features", "dataset"),
    "adapt": ("method", "model", "split", "features", "source", "target", "target-labels"),
}


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> str:
    """The message of a command that makes nothing."""
    assert main(list(words)) == 2
    assert list(folder.iterdir()) == []
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.fixture(autouse=True)
def _untrained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, in which no model can be trained."""
    monkeypatch.chdir(tmp_path)
    for module in ("graphkeel.models", "graphkeel.models.zoo"):
        monkeypatch.setattr(f"{module}.train_model", None)


@pytest.mark.parametrize(
    ("command", "option"), [(name, option) for name, options in NAMES.items() for option in options]
)
@pytest.mark.parametrize("out", [[], ["--out", "o"]])
def test_a_wrong_name_leaves_nothing_behind(
    command: str,
    option: str,
    out: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [command, *OTHERS.get(command, []), f"--{option}", "nope", *out]
    assert "nope" in refused(capsys, tmp_path, *words)


def test_other_late_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "99" in refused(capsys, tmp_path, "certify", "--classes", "99")
    assert "pcaN" in refused(capsys, tmp_path, "certify", "--features", "pcax")
    assert "both" in refused(capsys, tmp_path, "certify", "--weights", "w.pt")
    words = ("verify", "net.onnx", "p.vnnlib", "--conditions", "decrease")
    assert "--conditions" in refused(capsys, tmp_path, *words)
