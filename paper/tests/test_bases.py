"""The bases of the tables, their splits, and the rows that train on words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.models import accuracy, train_model
from graphkeel_paper.baselines import get_baseline
from graphkeel_paper.baselines.bases import ON_WORDS, settings, train_base
from graphkeel_paper.baselines.retrained.words import SparseRows, WordsConfig
from graphkeel_paper.baselines.rival import as_beliefs, votes
from graphkeel_paper.datasets import load_graph, split_of
from graphkeel_paper.specs import RunSpec


@pytest.fixture(scope="module")
def task():
    return RunSpec("sbm", split="random").task(0)


def test_the_tuned_base_is_the_best_of_eight_on_validation(task):
    assert len(list(settings("sgc"))) == 8
    own = train_model("sgc", task, seed=0)
    tuned = train_base("sgc-tuned", task, seed=0)
    right = [
        accuracy(model(task.x, task.edge_index), task, task.val_mask) for model in (own, tuned)
    ]
    assert right[1] >= right[0]
    best = max(
        accuracy(
            train_model("sgc", task, seed=0, config=config)(task.x, task.edge_index),
            task,
            task.val_mask,
        )
        for config in settings("sgc")
    )
    assert right[1] == best


def test_a_named_base_has_its_own_training_and_unknown_ones_are_refused(task):
    named = train_base("sgc-lr0.01", task, seed=0)
    own = train_model("sgc", task, seed=0)
    assert not torch.equal(named.conv.lin.weight, own.conv.lin.weight)
    with pytest.raises(ConfigError, match="the model must be one of"):
        train_base("magic-tuned", task, seed=0)


def test_a_split_with_a_number_is_the_same_for_every_seed():
    fixed = RunSpec("sbm", split="random:3")
    assert fixed.task(0).hash == fixed.task(7).hash == RunSpec("sbm", split="random").task(3).hash
    with pytest.raises(ConfigError, match="number of a split"):
        RunSpec("sbm", split="random:x").task(0)


def test_nodes_outside_the_public_masks(tmp_path):
    graph = load_graph("sbm")
    masks = np.zeros((3, graph.n_nodes), dtype=bool)
    for mask, ids in zip(masks, np.arange(30).reshape(3, 10), strict=True):
        mask[ids] = True
    path = tmp_path / "graph.npz"
    names = ("train_mask", "val_mask", "test_mask")
    np.savez(
        path,
        x=graph.x,
        edge_index=graph.edge_index,
        y=graph.y,
        **dict(zip(names, masks, strict=True)),
    )
    split = split_of(load_graph(str(path)), "outside", 0)
    assert split.test.min() >= 30
    assert not np.isin(split.test, split.train).any()
    assert set(split.val) <= set(range(10, 20))
    with pytest.raises(DataError, match="no public masks"):
        split_of(graph, "outside", 0)


def test_some_digits_become_classes_of_their_own():
    graph = load_graph("digits:3,8,5")
    assert (graph.n_classes, sorted(set(graph.y))) == (3, [0, 1, 2])
    assert graph.name == "digits:3,5,8"
    for name in ("digits:7", "digits:a,b", "digits:"):
        with pytest.raises(DataError):
            load_graph(name)


def test_sparse_rows_multiply_and_learn_as_dense_ones():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(7, 5, generator=generator) * (torch.rand(7, 5, generator=generator) > 0.6)
    right = torch.rand(5, 3, generator=generator, requires_grad=True)
    weight = torch.rand(7, 3, generator=generator)
    (SparseRows(x).product(right) * weight).sum().backward()
    assert torch.allclose(SparseRows(x).product(right), x @ right)
    assert torch.allclose(right.grad, x.T @ weight)


@pytest.mark.parametrize("name", ["gcn-words", "appnp-words"])
def test_rows_on_words_learn_from_the_labels_they_get(task, name):
    short = replace(get_baseline(name), settings=(WordsConfig(),), epochs=40)
    labelled = task.train_mask.nonzero().flatten()
    validation = task.val_mask.nonzero().flatten()
    result = short.fit_predict(None, task.without_test_labels(), labelled, validation, seed=0)
    assert accuracy(result.scores, task, task.test_mask) > 50  # five classes: chance has 20


def test_averaged_rivals_have_names_and_members():
    pooled = get_baseline("rivals+avg")
    assert [rival.name for rival in pooled.rivals] == ["t3a", "cs", "smooth", "lame", "lp"]
    with pytest.raises(ConfigError, match="no settings to choose among"):
        get_baseline("mh-aug+avg")


def test_flat_scores_vote_as_loudly_as_sharp_ones():
    flat = torch.tensor([[0.34, 0.33, 0.33]])
    sharp = torch.tensor([[-9.0, 9.0, -9.0]])
    assert torch.allclose(as_beliefs(sharp).sum(dim=1), torch.ones(1))
    assert torch.allclose(as_beliefs(torch.zeros(1, 4)), torch.full((1, 4), 0.25))
    together = votes(flat) + votes(sharp)
    assert abs(float(together[0, 0] - together[0, 1])) < 0.01
    assert float(together[0, 2]) < 0.01


@pytest.mark.parametrize("name", ["gcn-words", "mlp-words"])
def test_a_base_on_words_answers_as_the_network_it_was_trained_as(name, task):
    kind = replace(ON_WORDS[name], epochs=20)
    networks = kind._trained(task, [task.train_mask.nonzero().flatten()], 3)
    model = kind.network(task, 3)
    untrained = replace(kind, epochs=0).network(task, 3)
    with torch.no_grad():
        answers = model(task.x, task.edge_index)
        torch.testing.assert_close(answers, networks()[:, 0])
        assert (answers - untrained(task.x, task.edge_index)).abs().max() > 0.1
