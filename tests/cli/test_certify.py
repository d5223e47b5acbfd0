"""`keel certify` from the command line to a certificate that the independent check accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphkeel.certificate import check_certificate
from graphkeel.checker.certificate import CONDITIONS
from graphkeel.cli.main import main


def certify(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = main(["certify", "--json", "--budget", "600", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_digits_are_proved_and_the_check_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = certify(capsys, "--dataset", "digits", "--out", str(tmp_path))
    assert code == 0
    assert told["command"] == "certify"
    assert [row["class"] for row in told["classes"]] == list(range(10))
    assert all(row["verdict"] == "proved" and row["seconds"] >= 0 for row in told["classes"])
    assert all(row["conditions"]["region"] == "proved" for row in told["classes"])
    assert told["together"]["verdict"] == "proved" and told["together"]["everywhere"]
    assert told["certificate"] == str(tmp_path / "certificate.json")
    result = check_certificate(told["certificate"])
    assert result.accepted, result.reason
    assert result.together == told["together"]["sentence"]
    graph = told["graph"]
    assert graph["contraction"] == "proved" and graph["kappa"] < 1
    assert graph["certain"] == graph["nodes"] == 1797 and graph["uncertain"] == []
    assert graph["labelled_certain"] <= graph["labelled"] == 200
    assert 0 < graph["written"]["median"] <= graph["written"]["max"] < graph["written"]["size"]
    assert any("certain class" in sentence for sentence in told["graph_sentences"])
    for name in ("training.json", "equilibrium.safetensors"):
        assert (tmp_path / name).exists()


def test_a_flipped_weight_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certify(capsys, "--dataset", "digits", "--classes", "3", "--out", str(tmp_path))
    path = tmp_path / "certificate.json"
    content = path.read_text()
    at = content.index('"base64": "') + 15
    path.write_text(content[:at] + ("A" if content[at] != "A" else "B") + content[at + 1 :])
    assert not check_certificate(str(path)).accepted


def test_the_papers_form_gets_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--dataset",
        "digits",
        "--classes",
        "0",
        "--form",
        "paper",
        "--budget",
        "3",
        "--out",
        str(tmp_path),
    )
    code, told = certify(capsys, *arguments)
    verdict = told["classes"][0]["verdict"]
    assert code == {"proved": 0, "refuted": 1, "unknown": 3}[verdict]
    assert set(told["classes"][0]["conditions"]) == set(CONDITIONS)
    assert check_certificate(told["certificate"]).accepted


def test_a_head_without_a_relu_form_is_unknown_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch import nn

    from graphkeel import models

    class Smooth(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(64, 8), nn.Linear(8, 10)

        def forward(self, x, edge_index):
            return self.second(self.first(x).tanh())

    monkeypatch.setattr(models, "train_model", lambda *args, **kwargs: Smooth())
    monkeypatch.setattr(models, "save_model", lambda *args, **kwargs: None)
    code, told = certify(capsys, "--dataset", "digits", "--out", str(tmp_path))
    assert code == 3
    assert told["certificate"] is None
    assert "unsupported activation" in told["classes"][0]["reason"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--classes", "ten"),
        ("--classes", "0,0"),
        ("--features", "pcax"),
        ("--form", "cubic"),
    ],
)
def test_bad_arguments_are_named(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify", "--dataset", "digits", "--out", str(tmp_path), *arguments]) == 2
    assert "keel certify:" in capsys.readouterr().err
