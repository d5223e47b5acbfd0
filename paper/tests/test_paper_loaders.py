"""Loaders of the paper's datasets: the real files where they are at hand, and damaged ones."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pytest

from graphkeel.core.errors import DataError
from graphkeel_paper.datasets import load, load_graph
from graphkeel_paper.datasets.unpickle import safe_unpickle

# name: nodes, undirected edges, features, classes, nodes without label
FACTS = {
    "cora": (2708, 5278, 1433, 7, 0),
    "citeseer": (3327, 4552, 3703, 6, 15),
    "pubmed": (19717, 44324, 500, 3, 0),
    "photo": (7650, 119081, 745, 8, 0),
    "computers": (13752, 245861, 767, 10, 0),
}


@pytest.mark.parametrize("name", FACTS)
def test_real_graphs_have_the_known_sizes(data_folder, name):
    graph = load_graph(name)
    edges = graph.edge_index
    assert (
        graph.n_nodes,
        edges.shape[1] // 2,
        graph.x.shape[1],
        graph.n_classes,
        (graph.y < 0).sum(),
    ) == FACTS[name]
    assert (edges[0] != edges[1]).all()


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_agrees_with_pygs_own_loader(data_folder, name, tmp_path):
    from torch_geometric.datasets import Planetoid

    folder = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}[name]
    shutil.copytree(data_folder / folder / "raw", tmp_path / folder / "raw")
    theirs, ours = Planetoid(str(tmp_path), folder)[0], load_graph(name)
    assert np.array_equal(ours.x.toarray(), theirs.x.numpy())
    assert np.array_equal(
        np.unique(ours.edge_index, axis=1), np.unique(theirs.edge_index.numpy(), axis=1)
    )
    known = ours.y >= 0
    assert np.array_equal(ours.y[known], theirs.y.numpy()[known])
    for ids, mask in zip(
        ours.public_split, (theirs.train_mask, theirs.val_mask, theirs.test_mask), strict=True
    ):
        assert np.array_equal(ids, mask.nonzero().flatten().numpy())


def test_nodes_without_label_are_in_no_split(data_folder):
    task = load("citeseer")
    assert int((task.y < 0).sum()) == 15
    assert not ((task.train_mask | task.val_mask | task.test_mask) & (task.y < 0)).any()


def test_a_damaged_file_is_named_with_its_checksum(data_folder, tmp_path, monkeypatch):
    shutil.copytree(data_folder / "Cora", tmp_path / "Cora")
    victim = tmp_path / "Cora" / "raw" / "ind.cora.x"
    victim.chmod(0o644)
    content = bytearray(victim.read_bytes())
    content[100] ^= 1
    victim.write_bytes(content)
    monkeypatch.setenv("GRAPHKEEL_DATA", str(tmp_path))
    load_graph.cache_clear()
    with pytest.raises(DataError, match=r"ind\.cora\.x is not the published one"):
        load_graph("cora")
    load_graph.cache_clear()


def test_a_missing_dataset_says_where_it_looked(tmp_path, monkeypatch):
    import torch_geometric.data

    def offline(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(torch_geometric.data, "download_url", offline)
    monkeypatch.setenv("GRAPHKEEL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_graph.cache_clear()
    with pytest.raises(
        DataError, match=r"no route to host.*looked in .*Photo.*GRAPHKEEL_DATA=FOLDER"
    ):
        load_graph("photo")


def test_data_folder_that_does_not_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHKEEL_DATA", str(tmp_path / "nowhere"))
    load_graph.cache_clear()
    with pytest.raises(DataError, match="must name a folder"):
        load_graph("photo")


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


def test_pickles_run_nothing_off_the_allow_list(capsys):
    with pytest.raises(DataError, match="not on the allow-list"):
        safe_unpickle(pickle.dumps(Evil()), source="evil")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps([1, 2])[:-1]])
def test_damaged_pickles_are_data_errors(content):
    with pytest.raises(DataError, match="cannot be read"):
        safe_unpickle(content, source="file")
