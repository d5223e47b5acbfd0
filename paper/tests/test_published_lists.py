"""The published biased training sets: read, used, and drawn again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphkeel.core.errors import DataError
from graphkeel.graph import make_split
from graphkeel.graph.splits import biased_sampler
from graphkeel_paper.datasets import load, load_graph
from graphkeel_paper.datasets.files import read_seed_lists


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_published_lists_are_rebuilt_from_their_first_nodes(data_folder, name):
    assert _rebuilt(data_folder, name, runs=30) >= 0.99


@pytest.mark.slow
def test_all_published_lists_are_rebuilt(data_folder):
    for name in ("cora", "citeseer", "pubmed"):
        assert _rebuilt(data_folder, name, runs=100) >= 0.99


def _rebuilt(data_folder, name, runs):
    published = read_seed_lists(data_folder / "biased_seeds" / f"{name}.json")[:runs]
    sampler = biased_sampler(load_graph(name))
    drawn = [
        np.concatenate([sampler.around(int(p[i])) for i in range(0, len(p), 20)]) for p in published
    ]
    same = sum(len(np.intersect1d(a, b)) for a, b in zip(drawn, published, strict=True))
    return same / sum(len(p) for p in published)


def test_biased_split_uses_the_published_list_and_the_public_test_nodes(data_folder):
    graph = load_graph("cora")
    split = make_split(graph, "biased", 3)
    published = json.loads((data_folder / "biased_seeds" / "cora.json").read_text())[3]
    assert split.train.tolist() == published
    assert np.array_equal(split.test, graph.public_split[2])
    assert len(split.val) == 500 - len(np.intersect1d(published, graph.public_split[1]))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[[]]", "[[1.5]]", "[[1, 1]]", "[[-1]]", "[[true]]", "[" * 99999]
)
def test_bad_seed_lists(tmp_path, text):
    path = tmp_path / "seeds.json"
    path.write_text(text)
    with pytest.raises(DataError):
        read_seed_lists(path)


@pytest.mark.parametrize("split", ["biased", "random"])
@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_splits_are_disjoint_and_balanced(data_folder, name, split):
    task = load(name, split=split, features="raw", seed=1)
    masks = [task.train_mask, task.val_mask, task.test_mask]
    assert int(sum(m.int() for m in masks).max()) == 1
    assert np.array_equal(np.bincount(task.y[task.train_mask]), np.full(task.n_classes, 20))
