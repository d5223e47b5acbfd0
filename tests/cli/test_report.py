"""`keel report` as a user types it, on what `keel run` wrote."""

from __future__ import annotations

import argparse
import json

import pytest

from graphkeel.cli import report
from graphkeel.core.errors import StorageError
from graphkeel.runs.run import run_seeds
from graphkeel.runs.specs import RunSpec


def call(*arguments):
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return report.run(parser.parse_args([str(argument) for argument in arguments]))


def test_a_real_run_becomes_a_page_with_its_numbers(tmp_path, capsys):
    result = run_seeds(RunSpec(dataset="sbm", method="diffuse"), range(2), out=tmp_path)
    assert call(tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["certificate"], found["figures"]) == (True, False, 0)
    page = (tmp_path / "report.html").read_text()
    for row in result.rows:
        assert f"<td>{row['base']:.2f}</td><td>{row['accuracy']:.2f}</td>" in page
    assert "keel run --dataset sbm --model sgc --method diffuse" in page
    assert 'id="class-table"' in page


def test_another_place_and_places_that_cannot_be(tmp_path):
    run_seeds(RunSpec(dataset="sbm"), range(1), out=tmp_path / "run")
    assert call(tmp_path / "run", "--to", tmp_path / "deep" / "page.html") == 0
    assert (tmp_path / "deep" / "page.html").exists()
    with pytest.raises(StorageError, match="cannot be written"):
        call(tmp_path / "run", "--to", "/dev/null/page.html")
