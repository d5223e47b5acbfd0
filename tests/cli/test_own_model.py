"""A model of one's own on the command line: run, certify, feedback, report."""

from __future__ import annotations

import csv
import json
import re
import shlex

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from graphkeel import Reconstructor
from graphkeel.cli.main import KEEL, main
from graphkeel.core.errors import ModelError
from graphkeel.graph import load
from graphkeel.label import read_labels
from graphkeel.models import train_model
from graphkeel.models.zoo import own_model
from graphkeel.runs.run import run_seeds
from graphkeel.runs.specs import RunSpec

MODULE = """
from graphkeel.models.networks import SGC

def make(n_features, n_classes):
    return SGC(n_features, n_classes)

def narrow():
    return SGC(3, 10)

def number():
    return 7

def broken():
    raise ValueError("no weights today")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("own")
    (path / "own_net_for_tests.py").write_text(MODULE)
    model = train_model("sgc", load("digits"))
    save_file(model.state_dict(), path / "net.safetensors")
    moved = {name: value + 0.1 for name, value in model.state_dict().items()}
    save_file(moved, path / "other_weights.safetensors")
    torch.save(model.state_dict(), path / "net.pt")
    torch.save(model, path / "whole.pt")
    return path


@pytest.fixture
def own(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return ["--weights", "net.safetensors", "--factory", "own_net_for_tests:make"]


def test_run_gives_what_the_model_of_ours_gives(own, capsys):
    """With all labels, as `Reconstructor.fit` takes them."""
    assert main(["run", "--json", *own]) == 0
    mine = json.loads(capsys.readouterr().out)
    (ours,) = run_seeds(RunSpec(method="auto", labels="train+val"), range(1)).rows
    assert mine["rows"] == [{name: ours[name] for name in ("seed", "base", "accuracy", "kept")}]
    assert (mine["model"], mine["labels"]) == ("own", "train+val")
    data = load("digits").to_data()
    predicted = Reconstructor(train_model("sgc", load("digits")), seed=0).fit(data).predict(data)
    right = (predicted == data.y)[data.test_mask].double().mean()
    assert mine["rows"][0]["accuracy"] == pytest.approx(100 * float(right))


def test_the_page_of_a_run_repeats_it(own, tmp_path, capsys):
    assert main(["run", "--method", "none", "--out", str(tmp_path), *own]) == 0
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    (command,) = re.findall(r"keel (run --[^<]*)", page)
    args = KEEL.parser().parse_args(shlex.split(command))
    assert (str(args.weights), args.factory) == (own[1], own[3])


def test_weights_of_torch_save(folder, own):
    model = own_model("net.pt", "own_net_for_tests:make", 64, 10)
    assert not model.training


def fill_in_csv(path, y):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["label"], row["why"]) for row in rows] == [("", "suggested")] * 7
    assert all(row["likeliest"] and row["neighbours"] for row in rows)  # the context
    for row in rows[:4]:
        row["label"] = int(y[int(row["node"])])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def fill_in_label_studio(path, y):
    tasks = json.loads(path.read_text())
    assert [task["annotations"] for task in tasks] == [[]] * 7
    assert all("likeliest classes: " in task["data"]["text"] for task in tasks)
    for task in tasks[:4]:
        chosen = {"choices": [str(int(y[task["data"]["node"]]))]}
        result = {"from_name": "label", "to_name": "text", "type": "choices", "value": chosen}
        task["annotations"] = [{"id": 1, "was_cancelled": False, "result": [result]}]
    path.write_text(json.dumps(tasks))


@pytest.mark.parametrize(
    ("name", "fill_in"), [("wanted.csv", fill_in_csv), ("wanted.json", fill_in_label_studio)]
)
def test_suggest_writes_a_list_that_feedback_reads(own, tmp_path, capsys, name, fill_in):
    path = tmp_path / name
    assert main(["feedback", "--suggest", "7", "--to", str(path), *own]) == 0
    assert "7 nodes to label" in capsys.readouterr().out
    fill_in(path, load("digits").y)
    assert len(read_labels(path).nodes) == 4
    assert main(["feedback", "--labels", str(path), "--json", *own]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert steps[-1]["known"] == steps[0]["known"] + 4


def test_report(own, tmp_path, capsys):
    path = tmp_path / "page.html"
    assert main(["report", "--to", str(path), *own]) == 0
    assert "SGC on 1,797 nodes" in path.read_text()


def test_certify(own, tmp_path, capsys):
    assert main(["certify", "--json", "--out", str(tmp_path), *own]) == 0
    assert {row["verdict"] for row in json.loads(capsys.readouterr().out)["classes"]} == {"proved"}
    certificate = str(tmp_path / "certificate.json")
    check = ["check", certificate, "--data", "digits", "--json"]
    assert main([*check, *own]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accepted"] and found["model_checked"] and found["data_checked"]
    other = ["--weights", "other_weights.safetensors", "--factory", "own_net_for_tests:make"]
    assert main([*check, *other]) == 1
    assert "about another model" in json.loads(capsys.readouterr().out)["reason"]
    for wrong in (own[:2], [*own, "--model", "net.safetensors"]):
        assert main(["check", certificate, *wrong]) == 2


@pytest.mark.parametrize(
    ("weights", "factory", "words"),
    [
        ("net.safetensors", "own_net_for_tests", "must be module:function"),
        ("net.safetensors", "own_net_for_tests:absent", "has no function absent"),
        ("net.safetensors", "no_such_module:make", "cannot be imported"),
        ("net.safetensors", "own_net_for_tests:number", "must return a torch module"),
        ("net.safetensors", "own_net_for_tests:broken", "no weights today"),
        ("net.safetensors", "own_net_for_tests:narrow", r"size mismatch .*\[10, 3\]"),
        ("whole.pt", "own_net_for_tests:make", "no file of weights alone"),
        ("own_net_for_tests.py", "own_net_for_tests:make", "no file of weights alone"),
        ("absent.pt", "own_net_for_tests:make", "cannot be read"),
    ],
)
def test_what_does_not_fit_is_named(own, weights, factory, words):
    with pytest.raises(ModelError, match=words):
        own_model(weights, factory, 64, 10)


def test_missing_keys_are_named(own, folder):
    save_file({"elsewhere": torch.zeros(3)}, folder / "other.safetensors")
    with pytest.raises(ModelError, match=r"Missing .*conv\.lin\.bias.*Unexpected .*elsewhere"):
        own_model("other.safetensors", "own_net_for_tests:make", 64, 10)


def test_one_option_without_the_other_is_refused(own, capsys):
    assert main(["run", *own[:2]]) == 2
    assert "needs both --weights FILE and --factory" in capsys.readouterr().err
    assert main(["report"]) == 2


# ---- the masks of the user's graph


@pytest.fixture
def graphs(folder):
    """Two graphs like digits, one with masks that no split of ours would draw."""
    task = load("digits")
    order = np.random.default_rng(9).permutation(task.n_nodes)
    masks = {
        f"{name}_mask": np.isin(np.arange(task.n_nodes), order[first:last])
        for name, first, last in (("train", 0, 300), ("val", 300, 500), ("test", 500, 1797))
    }
    arrays = {"x": task.x.numpy(), "edge_index": task.edge_index.numpy(), "y": task.y.numpy()}
    np.savez(folder / "masked.npz", **arrays, **masks)
    np.savez(folder / "bare.npz", **arrays)
    return masks


def test_run_takes_the_masks_of_the_file(own, graphs, tmp_path, capsys) -> None:
    words = ["run", "--dataset", "masked.npz", "--method", "none", "--json", "--out", str(tmp_path)]
    assert main([*words, *own]) == 0
    split = load_file(tmp_path / "nodes" / "seed-0000.safetensors")["split"]
    assert np.array_equal(split.numpy() == 1, graphs["train_mask"])
    assert "is drawn" not in capsys.readouterr().err


def test_without_masks_it_says_that_a_split_is_drawn(own, graphs, capsys) -> None:
    assert main(["run", "--dataset", "bare.npz", "--method", "none", "--json", *own]) == 0
    assert "nobody says what the model was trained on" in capsys.readouterr().err


def test_certify_takes_the_masks_of_the_file(own, graphs, tmp_path, capsys) -> None:
    words = ["certify", "--dataset", "masked.npz", "--classes", "0", "--form", "paper"]
    main([*words, "--budget", "0.1", "--json", "--out", str(tmp_path), *own])
    remarks = json.loads((tmp_path / "certificate.json").read_text())["provenance"]
    assert remarks["split"] == "public"


def test_adapt_with_a_model_of_ones_own(own, graphs, tmp_path, capsys) -> None:
    words = ["adapt", "--source", "masked.npz", "--target", "bare.npz", "--target-labels", "30"]
    assert main([*words, "--json", "--out", str(tmp_path), *own]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert found["model"] == "own"
    assert row["accuracy"] > 80
    nodes = load_file(tmp_path / "nodes" / "seed-0000.safetensors")
    model = own_model("net.safetensors", "own_net_for_tests:make", 64, 10)
    task = load("digits")
    assert torch.equal(nodes["before"], model(task.x, task.edge_index).argmax(dim=1))
