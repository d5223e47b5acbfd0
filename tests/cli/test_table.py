"""`keel table` as a user types it."""

from __future__ import annotations

import argparse
import json

import pytest

from graphkeel.cli import table
from graphkeel.core.errors import ConfigError


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
    assert [row["method"] for row in found["rows"]] == ["sgc", "t3a", "lp"]
    assert {"method", "dataset", "mean", "std", "paper", "p_value", "note"} <= set(found["rows"][0])
    assert all(
        row["seeds"] == 2 and row["mean"] > 30 and row["peak_mb"] > 0 for row in found["rows"]
    )
    assert found["provenance"]["versions"]["torch"]

    def refuse(*_, **__):
        raise AssertionError("a finished job was computed again")

    monkeypatch.setattr("graphkeel.paper.tables.grid.run_grid", refuse)
    assert call(*small, "--format", "md") == 0
    assert f"{found['rows'][1]['mean']:.2f} ±" in capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir()}
    assert {
        "table-1.txt",
        "table-1.md",
        "table-1.tex",
        "table-1.csv",
        "table-1.json",
        "measurements.sqlite",
    } <= written
    assert json.loads((tmp_path / "table-1.json").read_text())["rows"] == found["rows"]


def test_no_run_shows_what_is_there(tmp_path, capsys):
    assert call("3", "--datasets", "sbm", "--no-run", "--seeds", "1", "--out", tmp_path) == 0
    assert "not run" in capsys.readouterr().out


def test_bad_rows_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="table 3 has the rows"):
        call("3", "--only", "auto", "--out", tmp_path)
