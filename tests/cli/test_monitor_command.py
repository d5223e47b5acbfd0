"""`keel monitor` as cron calls it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import graphkeel as gk
from graphkeel.cli.main import main
from graphkeel.graph import load
from graphkeel.models import train_model
from graphkeel.monitor import read_history


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of digits, its model's weights, and two weeks."""
    path = tmp_path_factory.mktemp("weeks")
    (path / "own_net_for_weeks.py").write_text(
        "from graphkeel.models.networks import SGC\n\n\n"
        "def make(n_features, n_classes):\n    return SGC(n_features, n_classes)\n"
    )
    task = load("digits", split="random")
    model = train_model("sgc", task)
    save_file(model.state_dict(), path / "net.safetensors")
    gk.Reconstructor(model).fit(task.to_data()).save(path / "run")
    graph = {"edge_index": task.edge_index.numpy(), "y": np.full(task.n_nodes, -1), "n_classes": 10}
    np.savez(path / "same.npz", x=task.x.numpy(), **graph)
    scale = torch.linspace(0.2, 3.0, 64)
    np.savez(path / "moved.npz", x=(task.x * scale + 0.5).numpy(), **graph)
    return path


@pytest.fixture
def words(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("COLUMNS", "80")
    own = ["--weights", "net.safetensors", "--factory", "own_net_for_weeks:make"]
    return ["monitor", "run", *own, "--data"]


def test_exit_codes_and_history(words, folder, capsys) -> None:
    before = len(read_history(folder / "run"))
    assert main([*words, "same.npz"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("nothing to do: ")
    assert max(map(len, out.splitlines())) <= 80
    assert main([*words, "moved.npz", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["command"], found["action"], found["exit_code"]) == ("monitor", "update", 4)
    assert found["tests"][0]["name"] == "features" and found["tests"][0]["drifted"]
    reports = read_history(folder / "run")[before:]
    assert [look["action"] for look in reports] == ["nothing", "update"]
    assert "update the features" in (folder / "run" / "monitor.html").read_text()


def test_a_week_needs_no_labels(words, folder, capsys) -> None:
    week = np.load(folder / "same.npz")
    np.savez(folder / "bare.npz", x=week["x"], edge_index=week["edge_index"])
    assert main([*words, "bare.npz"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert main(["run", "--dataset", "bare.npz"]) == 2
    assert "misses the key(s) y" in capsys.readouterr().err


def test_prices(words, capsys) -> None:
    dear = ["--price", "update=99", "--price", "label=99", "--price", "retrain=99"]
    assert main([*words, "moved.npz", *dear]) == 0
    assert "no step is expected to bring more than its price" in capsys.readouterr().out
    assert main([*words, "moved.npz", "--price", "update=99", "--price", "label=0"]) == 5
    assert "Label: " in capsys.readouterr().out
    for wrong in ("nothing=1", "label", "label=-1", "label=nan"):
        with pytest.raises(SystemExit):
            main([*words, "moved.npz", "--price", wrong])


def test_a_run_of_feedback_says_which_model(tmp_path, capsys) -> None:
    run = ["feedback", "--dataset", "digits:0,1,2", "--simulate", "20", "--batches", "1"]
    assert main([*run, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["monitor", str(tmp_path), "--data", "digits:0,1,2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["drifted"] == []


def test_a_run_says_which_model(tmp_path, capsys) -> None:
    assert main(["run", "--dataset", "digits:0,1,2", "--seeds", "1", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    words = ["monitor", str(tmp_path), "--data", "digits:0,1,2", "--json"]
    assert main(words) in (0, 4)
    assert json.loads(capsys.readouterr().out)["drifted"] == []
    assert len(read_history(tmp_path)) == 1
    (tmp_path / "net.safetensors").write_bytes(b"")
    own = ["--weights", str(tmp_path / "net.safetensors"), "--factory", "own_net_for_weeks:make"]
    assert main([*words, *own]) == 2
    assert "Leave out --weights and --factory" in capsys.readouterr().err
    assert main([*words, "--seed", "7"]) == 2
    assert "no finished seed" in capsys.readouterr().err


def test_components_of_a_source_are_not_those_of_a_week(tmp_path, capsys) -> None:
    pair = ["--source", "digits:0,1,2", "--target", "digits:0,1,2", "--seeds", "1"]
    assert main(["adapt", *pair, "--out", str(tmp_path / "fitted")]) == 0
    assert main(["adapt", *pair, "--features", "raw", "--out", str(tmp_path / "raw")]) == 0
    assert main(["monitor", str(tmp_path / "raw"), "--data", "digits:0,1,2"]) in (0, 4)
    capsys.readouterr()
    assert main(["monitor", str(tmp_path / "fitted"), "--data", "digits:0,1,2"]) == 2
    assert "components of another graph" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["nowhere", "--data", "same.npz"], "there is no run in this folder"),
        (["run", "--data", "same.npz"], "with --weights and --factory"),
        (["run", "--data", "absent.npz"], "with --weights and --factory"),
    ],
)
def test_bad_input(words, change, message, capsys) -> None:
    assert main(["monitor", *change]) == 2
    assert message in capsys.readouterr().err


def test_a_week_that_cannot_be(words, folder, capsys) -> None:
    assert main([*words, "digits:0,1,2"]) == 2
    assert "keeps the ids of all" in capsys.readouterr().err
    assert main([*words, "absent.npz"]) == 2
    assert "absent.npz" in capsys.readouterr().err
