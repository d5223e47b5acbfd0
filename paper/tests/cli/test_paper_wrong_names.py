"""A name that does not exist is refused before any work, and before a folder or file is made."""

from __future__ import annotations

import pytest

from graphkeel_paper.cli.main import main

WORDS = {"run": ["run"], "figure": ["figure", "3"], "certify": ["certify"]}
NAMES = {
    "run": ("method", "model", "labels", "split", "features", "dataset"),
    "figure": ("model", "dataset"),
    "certify": ("model", "split", "features", "dataset"),
}


@pytest.mark.parametrize(
    ("command", "option"), [(name, option) for name, options in NAMES.items() for option in options]
)
def test_a_wrong_name_leaves_nothing_behind(command, option, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for module in ("graphkeel.models", "graphkeel.models.zoo", "graphkeel_paper.baselines.bases"):
        monkeypatch.setattr(f"{module}.train_model", None)
    assert main([*WORDS[command], f"--{option}", "nope", "--out", "o"]) == 2
    assert list(tmp_path.iterdir()) == []
    (line,) = capsys.readouterr().err.splitlines()
    assert "nope" in line
