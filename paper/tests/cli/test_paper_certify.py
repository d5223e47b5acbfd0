"""Algorithm 1 as printed, as a user types it."""

from __future__ import annotations

import json

import pytest

from graphkeel_paper.cli.main import main


@pytest.mark.parametrize(
    ("node", "message"),
    [("99999", "a labelled node of the graph"), ("-1", "--start-node"), ("no", "the id of a node")],
)
def test_nodes_that_cannot_be(node, message, tmp_path, capsys):
    words = ["certify", "--dataset", "digits:0,1", "--start-node", node, "--out", str(tmp_path)]
    try:
        assert main(words) == 2
    except SystemExit as ended:
        assert ended.code == 2
    assert message in capsys.readouterr().err


def test_the_command_says_how_it_ended(tmp_path, capsys):
    pytest.importorskip("z3")
    literal = ["--form", "paper", "--engine", "smt", "--set", "steps=1"]
    case = ["--dataset", "digits:0,1", "--set", "hidden=2", "--set", "rounds=2"]
    node = ["--start-node", "random", "--budget", "600"]
    code = main(["certify", *case, *literal, *node, "--json", "--out", str(tmp_path)])
    shown = json.loads(capsys.readouterr().out)
    printed = shown["as_printed"]
    assert (printed["solver"], printed["rounds"], printed["steps"]) == ("smt", 2, 2)
    assert set(printed["conditions"]) == {"positivity", "decrease"}
    assert code == {"proof": 0, "refutation": 1, "budget": 3}[printed["ended"]]
    assert [row["class"] for row in shown["classes"]] == [printed["class"]]
    assert shown["classes"][0]["engine"] == "smt"  # nobody else was asked anything
    rounds = json.loads((tmp_path / "training.json").read_text())["rounds"]
    learnt = sum(sum(one["counterexamples"]) for one in rounds)
    assert printed["counterexamples"] == learnt > 0


@pytest.mark.parametrize("engine", ["smt", "branch"])
def test_a_small_case_ends_by_proof(tmp_path, capsys, engine):
    pytest.importorskip("z3")
    literal = ["--form", "paper", "--engine", engine, "--set", "steps=1"]
    case = ["--dataset", "digits:0,1", "--features", "rownorm", "--seed", "5", "--set", "hidden=4"]
    started = ["certify", *case, *literal, "--start-node", "random", "--budget", "600"]
    assert main([*started, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "it ended by proof" in shown
    assert ("its word is not in the certificate" in shown) == (engine == "smt")
