"""Graphs by a name that says their size, and graphs whose features stay on disk."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import load_graph, make_sbm, make_task
from graphkeel.graph.propagate import neighbours


def test_an_sbm_by_name_is_the_one_by_call():
    named = load_graph("sbm:nodes=300,edges=9e2,features=4,classes=3,homophily=0.5,seed=2")
    made = make_sbm(300, 900, n_features=4, n_classes=3, homophily=0.5, seed=2)
    assert np.array_equal(named.edge_index, made.edge_index) and np.array_equal(named.x, made.x)


@pytest.mark.parametrize(
    "name", ["sbm:size=3", "sbm:nodes=many", "sbm:nodes=1.5", "sbm:nodes=-1", "sbm:nodes=inf"]
)
def test_a_wrong_sbm_is_refused(name):
    with pytest.raises(ConfigError):
        load_graph(name)


@pytest.fixture
def folder(tmp_path):
    graph = make_sbm(300, 900, n_features=4, n_classes=3)
    for key in ("x", "edge_index", "y"):
        np.save(tmp_path / f"{key}.npy", getattr(graph, key))
    return tmp_path, graph


def test_features_of_a_folder_stay_on_disk(folder):
    path, graph = folder
    loaded = load_graph(f"{path}/")
    assert isinstance(loaded.x, np.memmap)
    task = make_task(loaded, split="random")
    assert task.mapped and task.x.data_ptr() == loaded.x.ctypes.data
    assert torch.equal(task.x, torch.from_numpy(graph.x))
    assert task.without_test_labels().x is task.x


def test_a_bad_folder_is_refused(folder):
    path, _ = folder
    with pytest.raises(DataError, match="no such folder"):
        load_graph(f"{path}/nowhere/")
    (path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00")
    with pytest.raises(DataError, match=r"x\.npy"):
        load_graph(str(path) + "/.")


def test_neighbours_are_joined_both_ways_once_and_never_to_themselves():
    found = neighbours(np.array([[0, 0, 1, 2], [1, 1, 0, 2]]), 4)
    assert found.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
