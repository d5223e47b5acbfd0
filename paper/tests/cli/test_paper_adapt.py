"""`keel-paper adapt` and `keel-paper table adapt` as a user types them, on two graphs of one
kind."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphkeel.graph import make_sbm
from graphkeel_paper.cli.main import main


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


@pytest.mark.parametrize("method", ["smooth", "cs", "t3a"])
def test_rivals_adapt(graphs, capsys, method, monkeypatch):
    monkeypatch.setenv("GRAPHKEEL_DATA", str(graphs.parent))
    words = ["adapt", "--source", "old", "--target", "new", "--target-labels", "30", "--seeds", "1"]
    assert main([*words, "--method", method, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["source"]) == (method, "old")
    assert 30 < found["rows"][0]["accuracy"] <= 100


def test_an_unknown_rival_is_refused(graphs, capsys):
    data = ["--source", str(graphs / "old.npz"), "--target", str(graphs / "new.npz")]
    assert main(["adapt", *data, "--seeds", "1", "--method", "magic"]) == 2
    assert "the baseline must be one of" in capsys.readouterr().err


def test_the_table_compares_every_row_on_the_same_model_and_nodes(
    graphs, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("GRAPHKEEL_DATA", str(graphs.parent))
    arguments = ["table", "adapt", "--pairs", "old:new", "--target-labels", "0,20", "--quick"]
    only = ["auto", "no-model", "random-weights", "smooth", "finetune"]
    arguments += ["--only", ",".join(only), "--jobs", "1", "--out", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["method"] for row in rows} == {"none", *only}
    without_labels = ("no-model", "0 target labels")  # nothing is left to decide by
    for row in rows:
        asked = 0 if (row["method"], row["block"]) == without_labels else 2
        assert row["seeds"] == asked, row["note"]
    base = {row["block"]: row["mean"] for row in rows if row["method"] == "none"}
    assert len(set(base.values())) == 1  # the same nodes are scored with 0 and with 20 labels
    fine_tuned = {row["block"]: row for row in rows if row["method"] == "finetune"}
    assert fine_tuned["0 target labels"]["gain"] == 0
    assert fine_tuned["0 target labels"]["refused"] == 2
    assert (tmp_path / "table-adapt.md").exists()
