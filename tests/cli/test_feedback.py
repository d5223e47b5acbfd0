"""`keel feedback`: labels arrive, the features follow, the score is on nodes that never told
theirs."""

from __future__ import annotations

import json

import pytest

import graphkeel
from graphkeel.cli.main import main
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import load
from graphkeel.label import read_labels
from graphkeel.runs.feedback import simulated


def test_feedback_where_classes_count_alike(capsys):
    words = ["feedback", "--dataset", "sbm", "--simulate", "20", "--batches", "1"]
    assert main([*words, "--class-weight", "balanced", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["steps"]) == 2


def test_simulated_feedback_improves_digits_and_is_kept(capsys, tmp_path):
    assert (
        main(["feedback", "--simulate", "300", "--batches", "2", "--out", str(tmp_path), "--json"])
        == 0
    )
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["known"] for step in steps] == [500, 650, 800]
    assert len({step["base"] for step in steps}) == 1  # the same nodes are scored at every step
    assert steps[-1]["accuracy"] > steps[0]["accuracy"] > steps[0]["base"]
    kept = graphkeel.load(tmp_path)
    assert len(kept.labels_.nodes) == 800


def test_simulation_draws_only_test_nodes_and_repeats_itself():
    task = load("digits")
    batches = simulated(task, 30, 4, seed=1)
    again = simulated(task, 30, 4, seed=1)
    assert sum(len(batch.nodes) for batch in batches) == 30
    assert all(task.test_mask[batch.nodes].all() for batch in batches)
    assert all(a.nodes.equal(b.nodes) for a, b in zip(batches, again, strict=True))
    with pytest.raises(ConfigError, match="some must stay"):
        simulated(task, 1297, 1, seed=0)


def test_labels_from_a_file(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("node,label\n3,1\n4, 0\n")
    batch = read_labels(path)
    assert (batch.nodes.tolist(), batch.labels.tolist()) == ([3, 4], [1, 0])


@pytest.mark.parametrize(
    "text",
    [
        "node,label\n1,1180591620717411303424\n",
        "",
        "a,b\n1,2\n",
        "node,label\n",
        "node,label\n1\n",
        "node,label\n1,x\n",
        "node,label\n1,2,3\n",
    ],
)
def test_bad_label_files(tmp_path, text):
    path = tmp_path / "new.csv"
    path.write_text(text)
    with pytest.raises(DataError):
        read_labels(path)


def test_labels_out_of_range_end_with_one_message(tmp_path, capsys):
    path = tmp_path / "new.csv"
    path.write_text("node,label\n5000,1\n")
    assert main(["feedback", "--labels", str(path), "--out", str(tmp_path / "out")]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error == "keel feedback: nodes must be integers in 0..1796 (got [5000])."
    assert list((tmp_path / "out").iterdir()) == [], "refused before anything is fitted"


def test_a_run_and_a_reconstruction_do_not_share_a_folder(tmp_path, capsys):
    one = ["--dataset", "digits:0,1,2", "--out", str(tmp_path)]
    feedback, run = (
        ["feedback", "--simulate", "9", "--batches", "1"],
        ["run", "--method", "none"],
    )
    for first, second, words in (
        (feedback, run, "holds a reconstruction"),
        (run, feedback, "holds a run"),
    ):
        for path in sorted(tmp_path.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        assert main([*first, *one, "--seed", "1"]) == 0
        kept = (tmp_path / "nodes" / "seed-0001.safetensors").read_bytes()
        capsys.readouterr()
        assert main([*second, *one, "--seed", "1"]) == 2
        assert words in capsys.readouterr().err
        assert (tmp_path / "nodes" / "seed-0001.safetensors").read_bytes() == kept
