"""`keel adapt` as a user types it, on two graphs of one kind."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphkeel.cli.main import main
from graphkeel.graph import make_sbm


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Two draws of one stochastic block model: the target's features are noisier."""
    folder = tmp_path_factory.mktemp("data") / "graphs"
    folder.mkdir()
    kind = {"n_classes": 3, "n_features": 8, "homophily": 0.85}
    for name, seed, signal in (("old", 0, 1.5), ("new", 1, 0.8)):
        graph = make_sbm(400, 2400, signal=signal, seed=seed, **kind)
        arrays = {"x": graph.x, "edge_index": graph.edge_index, "y": graph.y}
        np.savez(folder / f"{name}.npz", **arrays)
    return folder


def adapt(graphs, capsys, *flags):
    data = ["--source", str(graphs / "old.npz"), "--target", str(graphs / "new.npz")]
    assert main(["adapt", *data, "--seeds", "2", "--json", *map(str, flags)]) == 0
    return json.loads(capsys.readouterr().out)


def test_adapt_prints_one_stable_object(graphs, capsys):
    found = adapt(graphs, capsys, "--target-labels", 30)
    assert (found["command"], found["target_labels"]) == ("adapt", 30)
    assert {"seed", "base", "accuracy", "kept"} <= set(found["rows"][0])
    assert [row["seed"] for row in found["rows"]] == [0, 1]
    assert set(found["summary"]) >= {"base_mean", "accuracy_mean", "gain_mean", "gain_min"}


def test_untouched_is_the_same_whatever_the_method(graphs, capsys):
    untouched = adapt(graphs, capsys, "--method", "none", "--target-labels", 30)
    changed = adapt(graphs, capsys, "--target-labels", 30)
    assert [row["base"] for row in untouched["rows"]] == [row["base"] for row in changed["rows"]]
    assert all(row["accuracy"] == row["base"] for row in untouched["rows"])
    assert changed["summary"]["gain_mean"] != 0


@pytest.mark.parametrize(
    ("flags", "method"),
    [
        (["--class-weight", "balanced"], "auto-balanced"),
        (["--method", "no-model"], "no-model"),
        (["--method", "random-weights"], "random-weights"),
    ],
)
def test_classes_that_count_alike_and_controls(graphs, capsys, flags, method):
    found = adapt(graphs, capsys, "--target-labels", 60, *flags)
    assert found["method"] == method
    assert all(50 < row["accuracy"] <= 100 for row in found["rows"])


def test_labels_from_a_file_are_used_and_not_scored(graphs, capsys, tmp_path):
    labels = np.load(graphs / "new.npz")["y"]
    path = tmp_path / "known.csv"
    lines = [f"{node},{labels[node]}" for node in range(40)]
    path.write_text("node,label\n" + "\n".join(lines) + "\n")
    out = tmp_path / "run"
    found = adapt(graphs, capsys, "--target-labels", path, "--out", out)
    assert found["target_labels"] == str(path)
    from safetensors.numpy import load_file

    nodes = load_file(out / "nodes" / "seed-0000.safetensors")
    assert (nodes["split"][:40] == 1).all()
    assert (nodes["split"][40:] == 3).all()
    right = (nodes["after"] == nodes["y"])[40:].mean()
    assert found["rows"][0]["accuracy"] == pytest.approx(100 * right, abs=1e-4)


def test_a_run_folder_continues_and_becomes_a_page(graphs, capsys, tmp_path, monkeypatch):
    first = adapt(graphs, capsys, "--out", tmp_path)
    monkeypatch.setattr("graphkeel.runs.adapt.outcome", lambda *_: pytest.fail("again"))
    assert adapt(graphs, capsys, "--out", tmp_path) == first
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "keel adapt --source" in page
    assert f"<td>{first['rows'][0]['accuracy']:.2f}</td>" in page


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--target-labels", "400"], "some must stay to score on"),
        (["--target-labels", "missing.csv"], "cannot be read"),
        (["--method", "magic"], "the method must be one of"),
        (["--method", "no-model"], "only labels can decide"),
        (["--split", "odd"], "the split must be one of"),
        (["--features", "odd"], "features must be one of"),
    ],
)
def test_bad_flags_get_one_message_and_exit_code_2(graphs, capsys, flags, message):
    data = ["--source", str(graphs / "old.npz"), "--target", str(graphs / "new.npz")]
    assert main(["adapt", *data, "--seeds", "1", *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_other_features_are_refused(graphs, capsys):
    data = ["--source", str(graphs / "old.npz"), "--target", "digits"]
    assert main(["adapt", *data, "--seeds", "1"]) == 2
    assert "the same features" in capsys.readouterr().err


def test_a_negative_count_of_labels_is_refused_by_the_parser(graphs, capsys):
    data = ["--source", str(graphs / "old.npz"), "--target", str(graphs / "new.npz")]
    with pytest.raises(SystemExit) as stop:
        main(["adapt", *data, "--target-labels", "-3"])
    assert stop.value.code == 2
    assert "whole number from 0" in capsys.readouterr().err
