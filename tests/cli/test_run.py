"""`keel run` and `keel doctor` as a user types them."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest

from graphkeel.cli.main import main
from graphkeel.runs.run import label_budget, run_seeds
from graphkeel.runs.specs import RunSpec
from graphkeel.store.store import FILE


def run_json(capsys, *argv):
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run_prints_one_stable_json_object(capsys):
    found = run_json(capsys, "run", "--method", "none", "--seeds", "2", "--seed", "3")
    assert found["command"] == "run"
    assert (found["dataset"], found["method"], found["labels"]) == ("digits", "none", "train")
    assert [row["seed"] for row in found["rows"]] == [3, 4]
    assert all(row["base"] == row["accuracy"] and row["kept"] for row in found["rows"])
    assert found["summary"]["gain_mean"] == 0
    assert 60 < found["summary"]["base_mean"] < 95


def test_a_run_folder_continues_and_repeats_nothing(tmp_path, monkeypatch):
    import graphkeel.runs.run as module

    computed = []
    original = module.run_seed
    monkeypatch.setattr(
        module,
        "run_seed",
        lambda spec, seed, **kw: computed.append(seed) or original(spec, seed, **kw),
    )
    spec = RunSpec(method="none")
    first = run_seeds(spec, range(2), out=tmp_path)
    again = run_seeds(spec, range(3), out=tmp_path)
    assert computed == [0, 1, 2]
    assert again.rows[:2] == first.rows
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:  # a damaged row counts as missing
        connection.execute("UPDATE measurements SET result = '{\"half\": ' WHERE seed = 1")
    connection.close()
    run_seeds(spec, range(3), out=tmp_path)
    assert computed == [0, 1, 2, 1]


def test_a_repeated_run_says_what_it_reused(tmp_path, capsys):
    words = ["run", "--method", "none", "--out", str(tmp_path), "--seeds"]
    main([*words, "1"])
    assert "reused" not in capsys.readouterr().err
    main([*words, "2"])
    assert f"1 of 2 seeds were in {tmp_path} already and are reused" in capsys.readouterr().err


def test_two_different_runs_do_not_share_a_folder(tmp_path, capsys):
    arguments = ["run", "--method", "none", "--seeds", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert main([*arguments, "--model", "gcn"]) == 2
    assert "holds another run (got model: 'sgc' there, 'gcn' now)" in capsys.readouterr().err


def test_run_says_what_was_decided_and_why(capsys):
    assert main(["run", "--seeds", "1"]) == 0
    assert re.search(r"changed: .*\d+ won, \d+ lost", " ".join(capsys.readouterr().out.split()))


def test_a_class_weight_is_the_balanced_row(capsys):
    found = run_json(capsys, "run", "--dataset", "sbm", "--class-weight", "balanced", "--seeds=1")
    assert found["method"] == "auto-balanced"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "digit"], "Did you mean digits?"),
        (["--dataset", "cora"], "as in keel-paper run --dataset cora"),
        (["--method", "t3a"], "the method must be one of none, replace"),
        (["--class-weight", "balanced"], "--class-weight is an option of --method auto"),
        (["--model", "mlp"], "the model must be one of"),
        (["--split", "odd"], "split must be one of"),
        (["--features", "odd"], "features must be one of"),
        (["--out", "/dev/null/x"], "output folder cannot be made"),
    ],
)
def test_bad_options_get_one_message_and_exit_code_2(capsys, arguments, message):
    assert main(["run", "--method", "none", "--seeds", "1", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_label_budgets_never_overlap(make_task):
    task = make_task()
    for labels, sizes in (("train", (2, 2)), ("train+half-val", (3, 1)), ("train+val", (4, 0))):
        labelled, validation = label_budget(task, labels, seed=0)
        assert (len(labelled), len(validation)) == sizes
        assert not set(labelled.tolist()) & set(validation.tolist())
        assert not task.test_mask[labelled].any()
        assert not task.test_mask[validation].any()


def test_a_run_folder_holds_one_store_and_what_belongs_to_each_seed(tmp_path):
    run_seeds(RunSpec(dataset="sbm", method="diffuse"), range(1), out=tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {FILE, "nodes/seed-0000.safetensors"} <= found
    assert found <= {FILE, "nodes/seed-0000.safetensors", "features/seed-0000.safetensors"}


def test_doctor_says_what_is_installed(capsys):
    found = run_json(capsys, "doctor")
    assert found["data"]["datasets"]["digits"] == "embedded"
    assert found["packages"]["torch"]
    assert main(["doctor"]) == 0
    assert "keel doctor" in capsys.readouterr().out


def test_help_teaches(capsys):
    for arguments in (["--help"], ["run", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
    assert "keel run --dataset my_graph.npz" in capsys.readouterr().out
