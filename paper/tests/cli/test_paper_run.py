"""`keel-paper run` and `keel-paper doctor` as a user types them."""

from __future__ import annotations

import json

import pytest

from graphkeel_paper.cli.main import PROGRAM, main


def run_json(capsys, *argv):
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run_shows_a_table_with_the_papers_figures(capsys, data_folder):
    assert main(["run", "--dataset", "cora", "--method", "none", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert "64.36 ± 2.90" in out
    assert "mean ± std" in out


def test_untouched_rows_are_those_of_the_papers_protocol(capsys, data_folder):
    """The protocol's known means over ten published splits, to a point."""
    for dataset, expected in (("cora", 64.5), ("citeseer", 60.3)):
        found = run_json(capsys, "run", "--dataset", dataset, "--method", "none", "--seeds", "10")
        assert found["summary"]["base_mean"] == pytest.approx(expected, abs=1.0)


def test_doctor_tells_where_datasets_are(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHKEEL_DATA", str(tmp_path))
    found = run_json(capsys, "doctor")
    assert found["data"]["root"] == str(tmp_path)
    assert found["data"]["datasets"]["digits"] == "embedded"
    assert found["data"]["datasets"]["cora"] is None
    assert found["packages"]["torch"]
    assert main(["doctor"]) == 0
    assert "keel doctor" in capsys.readouterr().out


def test_help_teaches(capsys):
    for arguments in (["--help"], ["run", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
    assert "keel-paper run --dataset cora --method none" in capsys.readouterr().out


@pytest.mark.parametrize("control", ["no-model", "random-weights"])
def test_controls_do_without_what_the_model_has_learned(capsys, control):
    found = run_json(capsys, "run", "--method", control, "--labels", "train+val", "--seeds", "1")
    (row,) = found["rows"]
    assert row["accuracy"] > row["base"]
    assert not row["kept"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "coar"], "Did you mean cora?"),
        (["--labels", "all"], "labels must be one of"),
        (["--model", "mlp"], "the model must be one of"),
        (["--split", "odd"], "biased, random, public, outside"),
        (["--method", "magic"], "the method must be one of"),
    ],
)
def test_bad_options_get_one_message_and_exit_code_2(capsys, arguments, message):
    assert main(["run", "--method", "none", "--seeds", "1", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("keel-paper run: ") and message in error


def test_commands_of_the_library_run_on_the_papers_datasets(capsys, data_folder, tmp_path):
    words = ["--dataset", "cora", "--classes", "3", "--out", str(tmp_path)]
    assert run_json(capsys, "certify", *words)["classes"][0]["verdict"] == "proved"
    stored = [str(tmp_path / name) for name in ("certificate.json", "model.safetensors")]
    checked = run_json(capsys, "check", stored[0], "--model", stored[1], "--data", "cora")
    assert checked["accepted"] and checked["data_checked"]


@pytest.mark.parametrize("command", ["", *PROGRAM.commands])
def test_help_fits_and_breaks_no_word(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80 or line.endswith("-")] == []
