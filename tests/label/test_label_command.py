"""`keel label`: what it opens, what it says, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from subprocess import PIPE

import pytest

import graphkeel
from graphkeel.cli.main import main
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.label import read_labels
from graphkeel.runs import specs
from graphkeel.runs.opened import opened
from threads import PATIENCE

DATASET = "digits:3,8,9"


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert (
        main(["run", "--dataset", DATASET, "--seeds", "2", "--seed", "4", "--out", str(folder)])
        == 0
    )
    return folder


def test_without_the_extra_one_sentence_says_what_to_install(run_folder, capsys, monkeypatch):
    for module in ("starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["label", str(run_folder)]) == 2
    error = capsys.readouterr().err
    assert "pip install 'graphkeel[label]'" in error and error.count("\n") == 1
    assert not (run_folder / "label").exists()


def test_a_run_is_opened_with_its_first_seed_or_another(run_folder):
    rec, data, seed = opened(run_folder, specs)
    assert seed == 4 and rec.predict(data).shape == (data.num_nodes,)
    _, other, seed = opened(run_folder, specs, 5)
    assert seed == 5 and not other.train_mask.equal(data.train_mask)
    with pytest.raises(ConfigError, match="no finished seed"):
        opened(run_folder, specs, 6)


def test_a_run_of_feedback_keeps_its_labels(tmp_path):
    words = ["feedback", "--dataset", DATASET, "--simulate", "20", "--batches", "1"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    rec, data, _ = opened(tmp_path, specs)
    known = int((data.train_mask | data.val_mask).sum())
    assert len(rec.labels_) == known + 20
    assert len(rec.suggest(3)) == 3


def test_a_run_on_another_graph_is_opened_on_the_target(tmp_path):
    words = [
        "adapt",
        "--source",
        "sbm:nodes=300,edges=900",
        "--target",
        "sbm:nodes=250,edges=800,seed=1",
        "--out",
        str(tmp_path),
    ]
    assert main(words) == 0
    rec, data, _ = opened(tmp_path, specs)
    assert data.num_nodes == 250 and len(rec.suggest(3)) == 3


def test_a_graph_that_has_changed_is_refused(run_folder, monkeypatch):
    monkeypatch.setattr(specs.RunSpec, "data_hash", lambda *_: "another")
    with pytest.raises(DataError, match="not the one of the run"):
        opened(run_folder, specs)


@pytest.mark.parametrize("name", ["empty", "absent"])
def test_a_folder_without_a_run(tmp_path, capsys, name):
    pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
    (tmp_path / "empty").mkdir()
    assert main(["label", str(tmp_path / name)]) == 2
    assert "no run in this folder" in capsys.readouterr().err


def test_columns_and_names_are_checked_before_the_page(run_folder, tmp_path, capsys):
    pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
    names = tmp_path / "names.txt"
    names.write_text("three\neight\n")
    assert main(["label", str(run_folder), "--classes", str(names)]) == 2
    assert "3 classes need as many names" in capsys.readouterr().err
    assert main(["label", str(run_folder), "--show", str(names)]) == 2
    assert "a column node" in capsys.readouterr().err


def test_a_place_for_answers_that_cannot_be_made(run_folder, tmp_path, capsys):
    pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
    folder = shutil.copytree(run_folder, tmp_path / "run", ignore=lambda *_: ["label"])
    (folder / "label").write_text("a file")
    assert main(["label", str(folder)]) == 2
    assert "cannot be made" in capsys.readouterr().err


def started(folder) -> tuple[subprocess.Popen, object]:
    """The command, and a client that has opened the address it printed."""
    from served import Client

    command = [sys.executable, "-m", "graphkeel.cli.main", "label", str(folder), "--json"]
    process = subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True)
    assert process.stderr is not None
    address = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=\S+", process.stderr.readline())
    assert address is not None
    client = Client(int(address[1]), address[0])
    client.enter()
    return process, client


def answer(client) -> int:
    """Class 2 for the node that is asked about."""
    state = client.state()
    node = state["task"]["node"]
    assert client.post("/answer", version=state["version"], node=node, label=2)[0] == 200
    return node


def test_killed_resumed_and_ended(run_folder, capsys):
    pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
    process, client = started(run_folder)
    nodes = [answer(client)]
    process.kill()
    process.communicate()
    process, client = started(run_folder)
    assert client.state()["labels"] == 1
    nodes.append(answer(client))
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "Traceback" not in error
    found = json.loads(out)
    assert (found["labels"], found["skipped"], found["estimate"]) == (2, 0, None)
    assert read_labels(run_folder / "label" / "labels.csv").nodes.tolist() == nodes
    assert set(nodes) <= set(graphkeel.load(run_folder / "label").labels_.nodes.tolist())
    spec = ["--dataset", DATASET, "--seed", "4", "--json"]
    assert main(["feedback", "--labels", found["file"], *spec]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert steps[-1]["known"] == steps[0]["known"] + 2


def test_a_port_that_is_taken(start):
    pytest.importorskip("starlette", reason="pip install 'graphkeel[label]'")
    import socket

    from graphkeel.label import serve

    refused = pytest.raises(ConfigError, match="cannot be served on this port")
    with socket.create_server(("127.0.0.1", 0)) as taken, refused:
        serve(start(), port=taken.getsockname()[1])
