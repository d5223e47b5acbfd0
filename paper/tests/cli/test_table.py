"""`keel-paper table` as a user types it."""

from __future__ import annotations

import argparse
import json
import re

import pytest

from graphkeel.core.errors import ConfigError, DataError
from graphkeel_paper.cli import table
from graphkeel_paper.cli.main import main


def call(*arguments):
    parser = argparse.ArgumentParser()
    table.add_arguments(parser)
    return table.run(parser.parse_args([str(argument) for argument in arguments]))


def test_a_small_table_from_nothing_and_again_from_its_store(tmp_path, capsys, monkeypatch):
    small = (
        "1",
        "--datasets",
        "sbm",
        "--only",
        "t3a,lp",
        "--quick",
        "--jobs",
        "1",
        "--out",
        tmp_path,
    )
    assert call(*small, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "table"
    assert [row["method"] for row in found["rows"]] == ["sgc", "sgc-tuned", "t3a", "lp"]
    assert {"method", "dataset", "mean", "std", "paper", "p_value", "note"} <= set(found["rows"][0])
    assert all(
        row["seeds"] == 2 and row["mean"] > 30 and row["peak_mb"] > 0 for row in found["rows"]
    )
    assert found["provenance"]["versions"]["torch"]

    def refuse(*_, **__):
        raise AssertionError("a finished job was computed again")

    monkeypatch.setattr("graphkeel_paper.tables.grid.run_grid", refuse)
    assert call(*small, "--format", "md") == 0
    assert f"{found['rows'][2]['mean']:.2f} ±" in capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir()}
    assert {"table-1.txt", "table-1.md", "table-1.json", "measurements.sqlite"} <= written
    stored = json.loads((tmp_path / "table-1.json").read_text())
    assert stored["rows"] == found["rows"]
    run = stored["runs"][0]
    assert (run["row"], run["column"], run["seed"], run["split"]) == ("sgc", "sbm", 0, "biased 0")
    assert {"accuracy", "base", "seconds", "cpu_seconds", "peak_mb", "data", "code"} <= set(run)
    assert run["commit"]
    assert stored["settings"]["t3a, sbm"]["method"] == "t3a"

    monkeypatch.delenv("GRAPHKEEL_DATA", raising=False)
    assert call("--from", tmp_path / "table-1.json", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == found["rows"]
    assert again["verdicts"] == found["verdicts"]


def test_rows_are_computed_anew_and_the_others_come_from_a_file(tmp_path, capsys):
    small = ("1", "--datasets", "sbm", "--quick", "--jobs", "1")
    assert call(*small, "--only", "t3a", "--out", tmp_path / "before") == 0
    stored = tmp_path / "before" / "table-1.json"
    content = json.loads(stored.read_text())
    for run in content["runs"]:
        run["commit"] = "earlier"
        run["accuracy"] += 1.0 * (run["row"] == "t3a")
    stored.write_text(json.dumps(content))
    out = tmp_path / "now"
    assert call(*small, "--only", "lp", "--from", stored, "--out", out) == 0
    capsys.readouterr()
    joined = json.loads((out / "table-1.json").read_text())
    assert [row["method"] for row in joined["rows"]] == ["sgc", "sgc-tuned", "t3a", "lp"]
    was = {row["method"]: row["mean"] for row in content["rows"]}
    now = {row["method"]: row["mean"] for row in joined["rows"]}
    assert now["t3a"] == pytest.approx(was["t3a"] + 1.0)  # as stored, not computed again
    commits = {run["row"]: run["commit"] for run in joined["runs"]}
    assert commits["t3a"] == "earlier" != commits["lp"]
    assert joined["settings"]["t3a, sbm"] == content["settings"]["t3a, sbm"]
    with pytest.raises(DataError, match="joined"):
        call(*small, "--labels", "train+val", "--only", "lp", "--from", stored, "--out", out)


def test_a_plan_says_what_is_missing_and_what_it_will_take(tmp_path, capsys):
    earlier = {"rows": [], "runs": [{"row": "t3a", "column": "sbm", "seconds": 7.0}]}
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    small = ("1", "--datasets", "sbm", "--only", "t3a", "--seeds", "3", "--jobs", "1")
    out = ("--out", tmp_path / "out")
    assert call(*small, *out, "--plan", "--from", tmp_path / "earlier.json") == 0
    said = capsys.readouterr().out
    assert "9 jobs, 0 of them stored" in said
    assert "of 6 jobs nothing is measured" in said
    assert "0.01 core hours" in said
    call(*small, *out, "--plan", "--from", tmp_path / "earlier.json", "--row-budget", "5")
    assert "to compute: 7 jobs" in capsys.readouterr().out  # of t3a one seed only


def test_a_file_without_runs_is_refused(tmp_path):
    (tmp_path / "table-1.json").write_text('{"table": 1, "rows": []}')
    with pytest.raises(DataError, match="no measurements"):
        call("--from", tmp_path / "table-1.json")
    with pytest.raises(ConfigError, match="needs a table or a file"):
        call("--out", tmp_path)


def test_no_run_shows_what_is_there(tmp_path, capsys):
    assert call("3", "--datasets", "sbm", "--no-run", "--seeds", "1", "--out", tmp_path) == 0
    assert "not run" in capsys.readouterr().out


def test_bad_rows_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="table 3 has the rows"):
        call("3", "--only", "auto", "--out", tmp_path)


def test_a_table_that_was_run_fits_the_terminal(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["table", "1", "--datasets", "digits", "--only", "sgc,auto", "--seeds", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert len(re.findall(r"\d\d\.\d\d ± \d\.\d\d", text)) >= 2
    main([*words, "--out", str(tmp_path)])
    assert "6 of 6 measurements were in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (["table", "1", "--fromat", "md"], "Did you mean --format?"),
        (["table", "1", "--format", "markdown"], "invalid choice"),
    ],
)
def test_did_you_mean(words, question, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert question in capsys.readouterr().err


def test_a_strange_name_is_shown_without_its_control_characters(tmp_path, capsys) -> None:
    words = ["table", "1", "--datasets", "\x1b[2J.npz", "--only", "auto", "--seeds", "1"]
    assert main([*words, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "\\x1b[2J" in error and "\x1b" not in error
