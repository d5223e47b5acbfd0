"""`keel fit`: a graph in shards, on workers of this machine."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from graphkeel import Reconstructor
from graphkeel.cli.main import main
from graphkeel.cluster import save_shards
from graphkeel.core.optional import is_installed
from graphkeel.graph import make_sbm
from graphkeel.models.networks import SGC

FACTORY = """
from graphkeel.models.networks import SGC


def make(n_features, n_classes):
    return SGC(n_features, n_classes, k=2)
"""
needs_dask = pytest.mark.skipif(
    not is_installed("distributed"), reason="dask.distributed is not installed (extra: dask)"
)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A graph in three shards, a model with weights on disk, and both in memory."""
    graph = make_sbm(300, 900, n_classes=3, n_features=8, seed=0)
    data = Data(
        x=torch.from_numpy(graph.x),
        edge_index=torch.from_numpy(graph.edge_index),
        y=torch.from_numpy(graph.y),
    )
    data.train_mask = torch.zeros(300, dtype=torch.bool)
    data.val_mask = torch.arange(300) < 60
    save_shards(data, tmp_path / "graph", rows=100)
    torch.manual_seed(0)
    model = SGC(8, 3, k=2)
    save_file(model.state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "net_of_fit.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return data, model


def named(*more: str) -> list[str]:
    model = ["--weights", "net.safetensors", "--factory", "net_of_fit:make"]
    return ["fit", "graph", "--out", "better", *model, *more]


@needs_dask
def test_features_are_those_of_one_machine(stored, tmp_path, capsys) -> None:
    data, model = stored
    assert main(named("--workers", "1", "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["command"] == "fit"
    shards = sorted((tmp_path / "better" / "x").glob("*.npy"))
    assert [len(np.load(shard)) for shard in shards] == [100, 100, 100]
    found = np.concatenate([np.load(shard) for shard in shards])
    wanted = Reconstructor(model).fit(data).features_.numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert not np.array_equal(found, data.x.numpy())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["fit", "graph", "--out", "better"], "no model is named"),
        (["fit", "nowhere", "--out", "better", *named()[4:]], "no graph in shards"),
        (named("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "has the workers it has"),
    ],
)
def test_wrong_calls_are_one_sentence(stored, capsys, given, said) -> None:
    assert main(given) == 2
    message = capsys.readouterr().err
    assert said in message and len(message.strip().splitlines()) == 1
