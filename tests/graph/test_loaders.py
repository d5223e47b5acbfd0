"""Loaders: the embedded and generated graphs, files of one's own, and damaged ones."""

from __future__ import annotations

import numpy as np
import pytest

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import load, load_graph, make_sbm
from graphkeel.graph.datasets.registry import prepare_features


@pytest.mark.parametrize("name", ["cora", "Computers"])
def test_a_dataset_of_the_paper_is_refused_in_one_sentence(name):
    with pytest.raises(DataError, match=f"keel-paper run --dataset {name.lower()}"):
        load(name)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(DataError, match=r"Did you mean citeseer\?"):
        load("citseer")
    with pytest.raises(DataError, match=r"path of an \.npz file"):
        load("xyzzy")


def test_digits_are_embedded_and_split():
    task = load()
    assert (task.name, task.n_nodes, task.n_features, task.n_classes) == ("digits", 1797, 64, 10)
    assert float(task.x.max()) == 1.0
    assert [int(m.sum()) for m in (task.train_mask, task.val_mask, task.test_mask)] == [
        200,
        300,
        1297,
    ]


def test_sbm_is_seeded_homophilous_and_as_large_as_asked():
    graph = make_sbm(1000, 5000, n_classes=4, n_features=8, homophily=0.9, seed=3)
    again = make_sbm(1000, 5000, n_classes=4, n_features=8, homophily=0.9, seed=3)
    assert np.array_equal(graph.x, again.x)
    assert np.array_equal(graph.edge_index, again.edge_index)
    assert 4500 < graph.edge_index.shape[1] / 2 <= 5000
    same = (graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]).mean()
    assert 0.85 < same < 0.97
    pairs = set(map(tuple, graph.edge_index.T.tolist()))
    assert all((b, a) in pairs for a, b in pairs)


def test_sbm_refuses_nonsense():
    with pytest.raises(ConfigError, match="at least two classes"):
        make_sbm(1, 10)
    with pytest.raises(ConfigError, match="homophily"):
        make_sbm(10, 10, homophily=2.0)


@pytest.mark.parametrize("x", [np.array(3.0), np.zeros((4, 2))])
@pytest.mark.parametrize("labels", [True, False])
def test_as_many_labels_as_nodes(tmp_path, x, labels):
    given = {"x": x, "edge_index": np.zeros((2, 1), int), "train_mask": np.zeros(5, bool)}
    np.savez(tmp_path / "mine.npz", **given, y=np.zeros(5, int))
    with pytest.raises(DataError, match=r"y must have one entry per node.*5 labels"):
        load_graph(str(tmp_path / "mine.npz"), labels=labels)
    np.savez(tmp_path / "mine.npz", x=np.array(3.0), edge_index=given["edge_index"])
    with pytest.raises(DataError):
        load_graph(str(tmp_path / "mine.npz"), labels=False)


def test_own_graph_from_npz(tmp_path, make_task):
    task = make_task()
    path = tmp_path / "mine.npz"
    np.savez(
        path,
        **{
            key: getattr(task, key).numpy()
            for key in ("x", "edge_index", "y", "train_mask", "val_mask")
        },
    )
    mine = load(str(path), split="public")
    assert mine.name == "mine"
    assert mine.train_mask.equal(task.train_mask)
    assert not mine.test_mask.any()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((3, 2))}, "misses the key"),
        (
            {"x": np.ones((3, 2)), "edge_index": np.zeros((2, 1)), "y": np.zeros(3, int)},
            "edge_index has the wrong type",
        ),
        (
            {"x": np.ones((2, 2)), "edge_index": np.zeros((2, 1), int), "y": np.zeros(3, int)},
            "one entry per node",
        ),
        (
            {"x": np.ones((3, 2)), "edge_index": np.full((2, 1), 9), "y": np.zeros(3, int)},
            "node ids in 0..2",
        ),
        (
            {
                "x": np.ones((3, 2)),
                "edge_index": np.zeros((2, 1), int),
                "y": np.zeros(3, int),
                "train_mask": np.zeros(3),
            },
            "boolean array",
        ),
        (
            {"x": np.array([object()]), "edge_index": np.zeros((2, 1), int), "y": np.zeros(3, int)},
            "Pickled objects",
        ),
    ],
)
def test_bad_npz_files(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    load_graph.cache_clear()
    with pytest.raises(DataError, match=message):
        load(str(path))


def test_npz_that_is_missing_or_not_one(tmp_path):
    with pytest.raises(DataError, match="no such graph file"):
        load(str(tmp_path / "none.npz"))
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(DataError, match="cannot be read"):
        load(str(tmp_path / "text.npz"))


def test_unknown_features_and_split():
    with pytest.raises(ConfigError, match="features must be one of"):
        prepare_features(load_graph("digits"), "tfidf")
    with pytest.raises(ConfigError, match="split must be one of"):
        load("digits", split="sideways")
    with pytest.raises(DataError, match="no public split"):
        load("digits", split="public")
