"""`keel verify` and `keel export`: exit codes, JSON, and clear errors."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import readers
from graphkeel.certificate import write_certificate
from graphkeel.cli import check, export, verify
from graphkeel.core.errors import ConfigError, ProblemError
from graphkeel.verify.problem import Network, Problem, Region
from graphkeel.verify.problem_io import read_problem, write_problem

SPLIT = np.concatenate([np.eye(2), -np.eye(2)])


def halving(rho: float) -> Problem:
    return Problem(
        Network.of((SPLIT, np.zeros(4)), (0.5 * SPLIT.T, np.zeros(2))),
        Network.of((SPLIT, np.zeros(4)), (np.ones((1, 4)), np.zeros(1))),
        lower=-np.ones(2),
        upper=np.ones(2),
        equilibrium=np.zeros(2),
        hole_radius=0.125,
        rho=rho,
        positivity=0.5,
    )


def command(module: Any, *words: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return int(module.run(parser.parse_args(list(words))))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_problem(halving(0.75), tmp_path / "p.json")
    return tmp_path / "p.json"


@pytest.mark.parametrize("engine", ["auto", "branch", "smt"])
def test_proved_and_refuted(file: Path, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(verify, str(file), "--engine", engine, "--json") == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["command"] == "verify" and payload["verdict"] == "proved"
    assert payload["counterexample"] is None and payload["seconds"] >= 0 and payload["nodes"] >= 0
    assert [row["condition"] for row in payload["conditions"]] == [
        "positivity",
        "decrease",
        "invariance",
    ]

    write_problem(halving(0.4), file.with_suffix(".npz"))
    assert command(verify, str(file.with_suffix(".npz")), "--engine", engine, "--json") == 1
    payload = json.loads(capsys.readouterr().out)
    assert payload["verdict"] == "refuted" and len(payload["counterexample"]) == 2
    y = np.abs(payload["counterexample"])
    assert y.max() <= 1 and y.max() >= 0.125


def test_a_refutation_ends_the_work_unless_all_is_asked_for(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = replace(halving(0.4), positivity=3.0)
    write_problem(wrong, file)
    assert command(verify, str(file), "--json") == 1
    answers = {row["condition"]: row for row in json.loads(capsys.readouterr().out)["conditions"]}
    assert answers["positivity"]["verdict"] == "refuted"
    assert answers["decrease"]["verdict"] == "unknown"
    assert answers["decrease"]["reason"] == "not asked: positivity is refuted"
    assert command(verify, str(file), "--all", "--json") == 1
    answers = {row["condition"]: row for row in json.loads(capsys.readouterr().out)["conditions"]}
    assert answers["decrease"]["verdict"] == "refuted"
    assert answers["invariance"]["verdict"] == "proved"


def test_conditions_can_be_selected(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--conditions", "invariance, positivity", "--clock", "processor", "--json")
    assert command(verify, str(file), *words) == 0
    payload = json.loads(capsys.readouterr().out)
    assert [row["condition"] for row in payload["conditions"]] == ["invariance", "positivity"]
    for wrong in ("stability", "region"):
        with pytest.raises(ProblemError, match="condition"):
            command(verify, str(file), "--conditions", wrong)
    with pytest.raises(ConfigError, match="names no condition"):
        command(verify, str(file), "--conditions", ",")


def test_a_region_in_the_file_is_asked_about(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r.json", "r.npz"):
        path = file.with_name(name)
        write_problem(replace(halving(0.75), region=Region(1, 0.25)), path)
        assert read_problem(path).region == Region(1, 0.25)
        code = command(verify, str(path), "--conditions", "region", "--json")
        (row,) = json.loads(capsys.readouterr().out)["conditions"]
        assert row["condition"] == "region"
        assert code == 1  # F halves the lead, so a lead of exactly 1/4 is lost


def test_a_thin_box_is_a_box(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    thin = replace(halving(0.75), lower=np.array([-1.0, 0.0]), upper=np.array([1.0, 0.0]))
    write_problem(thin, file)
    assert command(verify, str(file), "--json") == 0
    point = replace(halving(0.75), lower=np.zeros(2), upper=np.zeros(2))
    write_problem(point, file)
    assert command(verify, str(file), "--all", "--engine", "branch", "--json") == 0
    capsys.readouterr()
    with pytest.raises(ProblemError, match="empty along axis 1"):
        replace(halving(0.75), lower=np.array([-1.0, 0.5]), upper=np.array([1.0, 0.0]))


def test_text_output(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(verify, str(file)) == 0
    out = capsys.readouterr().out
    assert out.startswith("proved: ") and "decrease" in out


def test_unknown_is_exit_3(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(verify, str(file), "--engine", "falsify", "--json") == 3  # it never proves
    assert json.loads(capsys.readouterr().out)["verdict"] == "unknown"


def test_bad_input(tmp_path: Path, file: Path) -> None:
    with pytest.raises(ProblemError):
        command(verify, str(tmp_path / "none.json"))
    with pytest.raises(SystemExit):
        command(verify, str(file), "--engine", "magic")
    with pytest.raises(SystemExit):
        command(verify, str(file), "--timeout", "0")


def test_an_engine_that_cannot_run_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphkeel.verify.smt import SmtVerifier

    monkeypatch.setattr(SmtVerifier, "supports", lambda self, problem: "not here")
    with pytest.raises(ConfigError, match="not here"):
        command(verify, str(file), "--engine", "smt")


def test_export_of_a_problem(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        command(
            export, str(file), "--out", str(tmp_path / "x"), "--format", "vnnlib,smt2", "--json"
        )
        == 0
    )
    files = json.loads(capsys.readouterr().out)["files"]
    assert len(files) == 12 and all(Path(name).stat().st_size for name in files)
    with pytest.raises(ConfigError, match="formats"):
        command(export, str(file), "--out", str(tmp_path / "x"), "--format", "pdf")


def test_export_of_a_certificate(tmp_path: Path) -> None:
    """The loop of every class comes from controller and head, as a certificate stores them."""
    write_certificate(readers.certificate_content("contraction"), tmp_path / "c.json")
    where = ["--out", str(tmp_path / "x"), "--format", "smt2"]
    assert command(export, str(tmp_path / "c.json"), *where) == 0
    exported = sorted(tmp_path.glob("x/class_*/decrease.smt2"))
    assert exported and all(path.stat().st_size for path in exported)
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ProblemError):
        command(export, str(tmp_path / "broken.json"), "--out", str(tmp_path / "x"))


def test_the_proofs_of_all_conditions_are_kept_and_checked(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = tmp_path / "proof.json"
    assert command(verify, str(file), "--proof", str(proof)) == 0
    shown = capsys.readouterr().out
    assert "The proof of positivity, decrease, invariance is in" in shown
    assert command(check, str(proof), "--problem", str(file)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "decrease with ρ = 0.75, ‖y − Y‖ ≥ 0.125" in shown
    assert "positivity with c = 0.5" in shown and "invariance" in shown
    write_problem(halving(0.5), file)  # ρ is another one
    assert command(check, str(proof), "--problem", str(file)) == 1
    content = json.loads(proof.read_text())
    content["loop"]["rho"] = 0.25  # V only halves
    write_certificate(content, proof)
    assert command(check, str(proof)) == 1
    assert "decrease" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="--results"):
        command(verify, str(file), "--results", str(tmp_path / "results.txt"))
