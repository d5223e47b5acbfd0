"""`keel report` as a user types it, on what `keel run` wrote."""

from __future__ import annotations

import argparse
import json
import re

import pytest

from graphkeel import Reconstructor
from graphkeel.cli import report
from graphkeel.cli.main import main
from graphkeel.core.errors import ConfigError, DataError, StorageError
from graphkeel.graph import load
from graphkeel.models import train_model
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
    assert "Where features were written, the median change is " in page
    assert "The answers rest on" not in page, "a method by name rests on no sum"


def test_a_run_says_what_its_answers_rest_on(tmp_path):
    run_seeds(RunSpec(dataset="digits:0,1,2", method="auto"), range(2), out=tmp_path)
    assert call(tmp_path) == 0
    page = (tmp_path / "report.html").read_text()
    (said,) = re.findall(r'id="decided">(.*?)</p>', page)
    assert re.search(r"median change is \d+\.\d % of a node", said)
    shares = [int(share) for share in re.findall(r"\((\d+) %\)", said)]
    assert abs(sum(shares) - 100) <= 3 and shares == sorted(shares, reverse=True)


def test_another_place_and_places_that_cannot_be(tmp_path):
    run_seeds(RunSpec(dataset="sbm"), range(1), out=tmp_path / "run")
    assert call(tmp_path / "run", "--to", tmp_path / "deep" / "page.html") == 0
    assert (tmp_path / "deep" / "page.html").exists()
    with pytest.raises(StorageError, match="cannot be written"):
        call(tmp_path / "run", "--to", "/dev/null/page.html")


def test_a_folder_of_feedback_becomes_a_page(tmp_path, capsys):
    words = ["feedback", "--dataset", "digits:0,1,2", "--simulate", "60", "--batches", "2"]
    assert main([*words, "--out", str(tmp_path), "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    (tmp_path / "names.txt").write_text("zero\none\ntwo\n")
    assert call(tmp_path, "--classes", tmp_path / "names.txt") == 0
    page = (tmp_path / "report.html").read_text()
    assert "sgc on digits:0,1,2" in page
    assert 'id="decision"' in page
    for step in steps:
        assert f"<td>{step['known']}</td><td>{step['base']:.2f}</td>" in page
    assert f'id="after">{steps[-1]["accuracy"]:.2f}<' in page
    assert "<td>zero</td>" in page
    assert 'id="suggested-table"' in page


def test_a_saved_reconstruction_becomes_a_page_without_its_graph(tmp_path):
    task = load("digits:0,1,2")
    rec = Reconstructor(train_model("sgc", task)).fit(task.to_data())
    rec.save(tmp_path / "whole")
    assert call(tmp_path / "whole") == 0
    page = (tmp_path / "whole" / "report.html").read_text()
    assert rec.guard_.reason[1:] in page
    assert 'id="class-table"' not in page
    rec.save(tmp_path / "summary", keep="summary")
    with pytest.raises(ConfigError, match="nothing to report on"):
        call(tmp_path / "summary")


def test_names_that_cannot_be(tmp_path):
    run_seeds(RunSpec(dataset="sbm"), range(1), out=tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        call(tmp_path, "--classes", tmp_path / "absent.txt")
