"""SOGA, HomoTTT, Matcha, TSA, retraining and the pool: their parts against hand-worked answers, and
that they run with labels, with few, and without any."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from shifted_graph import small_task

from graphkeel.graph import UNLABELLED
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel_paper.baselines import get_baseline
from graphkeel_paper.baselines.frozen.embeddings import hop_features, spread_ratio, weighted_hops
from graphkeel_paper.baselines.frozen.gtrans import TSA, class_pairs, edge_weights, sure
from graphkeel_paper.baselines.retrained.copies import (
    contrastive_loss,
    contrasts,
    fresh_copy,
    information_loss,
    node_homophily,
)
from graphkeel_paper.baselines.rival import measurably_worse

NOBODY = torch.tensor([], dtype=torch.int64)
NAMES = ("soga", "homottt", "matcha", "tsa", "retrain", "finetune", "pool", "t3a", "lame", "cs")


@pytest.fixture(scope="module")
def shifted():
    task = small_task()
    return task, FrozenModel(train_model("sgc", task, seed=0), n_classes=task.n_classes)


@pytest.mark.parametrize("name", [*NAMES, "smooth", "lp", "gtrans"])
@pytest.mark.parametrize("count", [0, 3])
def test_every_rival_runs_without_labels_and_with_a_class_missing(shifted, name, count):
    task, frozen = shifted
    before = frozen.weights_hash
    same_class = (task.y == 0).nonzero().flatten()[:count]
    known = torch.full_like(task.y, UNLABELLED)
    known[same_class] = 0
    none = torch.zeros(task.n_nodes, dtype=torch.bool)
    hidden = replace(task, y=known, train_mask=none, val_mask=none, test_mask=none)
    result = get_baseline(name).fit_predict(frozen, hidden, same_class, NOBODY, 0)
    if result.scores is not None:
        assert result.scores.shape == (task.n_nodes, task.n_classes)
        assert torch.isfinite(result.scores).all()
    assert frozen.weights_hash == before


def test_models_that_a_method_cannot_change_are_left_alone_with_the_reason(shifted):
    task, _ = shifted
    nodes = task.train_mask.nonzero().flatten()
    for model, name in (("gcn", "matcha"), ("sage", "tsa")):
        frozen = FrozenModel(train_model(model, task, seed=0), n_classes=task.n_classes)
        result = get_baseline(name).fit_predict(frozen, task, nodes, NOBODY, 0)
        assert result.scores is None
        assert "no" in result.decision["reason"]


def test_retraining_is_from_scratch_and_fine_tuning_is_not(shifted):
    task, frozen = shifted
    copied = fresh_copy(frozen.model, seed=1)
    assert not torch.equal(copied.conv.lin.weight, frozen.model.conv.lin.weight)
    again = fresh_copy(frozen.model, seed=1)
    assert torch.equal(copied.conv.lin.weight, again.conv.lin.weight)
    labelled = (task.train_mask | task.val_mask).nonzero().flatten()
    result = get_baseline("retrain").fit_predict(frozen, task, labelled, NOBODY, 0)
    right = result.scores.argmax(dim=1) == task.y
    assert right[labelled].float().mean() > 0.8


def test_the_information_loss_is_least_for_sure_and_even_predictions():
    sure_and_even = torch.eye(2).repeat(5, 1)
    one_class = torch.tensor([[1.0, 0.0]]).repeat(10, 1)
    unsure = torch.full((10, 2), 0.5)
    losses = [float(information_loss(b)) for b in (sure_and_even, one_class, unsure)]
    assert losses[0] == pytest.approx(-math.log(2), abs=1e-3)
    assert losses[1] == pytest.approx(0, abs=1e-3)
    assert losses[2] == pytest.approx(0, abs=1e-3)


def test_contrast_rewards_likeness_to_a_neighbour():
    beliefs = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    negative = torch.tensor([[2], [2], [0]])
    alike = contrastive_loss(beliefs, torch.tensor([1, 0, 2]), negative)
    unlike = contrastive_loss(beliefs, torch.tensor([2, 2, 0]), negative)
    assert float(alike) == pytest.approx(-1.0)
    assert float(unlike) == pytest.approx(0.0)


def test_contrasts_are_neighbours_and_lonely_nodes_contrast_with_themselves(make_task):
    task = make_task()
    positive, negative = contrasts(task, np.random.default_rng(0))
    edges = set(map(tuple, task.edge_index.T.tolist()))
    assert all((a, b) in edges for a, b in enumerate(positive.tolist()))
    assert negative.shape == (task.n_nodes, 5)


def test_homophily_of_a_path():
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    found = node_homophily(path, torch.tensor([0, 0, 1, 1]), 4)
    assert found.tolist() == [1.0, 0.5, 0.0, 0.0]


def test_spread_ratio_is_zero_for_points_and_one_for_a_single_class():
    nodes = torch.tensor([[0.0], [0.0], [4.0], [4.0]])
    apart = torch.tensor([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 2)
    assert float(spread_ratio(nodes, apart)) == pytest.approx(0)
    assert float(spread_ratio(nodes, torch.ones(4, 1))) == pytest.approx(1)


def test_hops_of_an_sgc_give_its_own_scores(shifted):
    task, frozen = shifted
    layer = weighted_hops(frozen)
    last = hop_features(task, layer.K)[-1]
    torch.testing.assert_close(
        last @ layer.lin.weight.T + layer.lin.bias,
        frozen(task.x, task.edge_index),
        atol=1e-4,
        rtol=1e-4,
    )


def test_edges_are_weighted_as_on_the_source_and_degrees_stay(make_task):
    task = make_task()
    beliefs = torch.nn.functional.one_hot(task.y, 2).float() * 0.98 + 0.01
    known = sure(beliefs, 0.5)
    assert known.all()
    alike = torch.tensor([[0.99, 0.01], [0.01, 0.99]])
    weights = edge_weights(task, beliefs, alike, known)
    neighbour, node = task.edge_index
    total = torch.zeros(task.n_nodes).index_add_(0, node, weights)
    degree = torch.bincount(node, minlength=task.n_nodes).float()
    torch.testing.assert_close(total, degree)
    across = task.y[neighbour] != task.y[node]
    assert weights[across & (degree[node] > 1)].max() < 0.2


def test_pairs_of_classes_are_counted_from_the_node_to_its_neighbour():
    edges = torch.tensor([[1, 2, 2], [0, 0, 1]])  # neighbour, node
    found = class_pairs(edges, torch.nn.functional.one_hot(torch.tensor([0, 0, 1]), 2).float())
    torch.testing.assert_close(found[0], torch.tensor([1 / 3, 2 / 3]), atol=1e-4, rtol=0)


def test_tsa_takes_the_sources_summary(shifted):
    task, _ = shifted
    pairs = TSA().with_source(task).source_pairs
    torch.testing.assert_close(pairs.sum(dim=1), torch.ones(task.n_classes))
    assert (pairs.diagonal() > 1 / task.n_classes).all()  # a homophilous graph


def test_candidates_within_one_standard_error_are_averaged():
    best = torch.tensor([True] * 8 + [False] * 2)
    nearly = torch.tensor([True] * 7 + [False] * 2 + [True])
    poor = torch.tensor([True] * 3 + [False] * 7)
    assert not measurably_worse(nearly, best)
    assert measurably_worse(poor, best)
    assert not measurably_worse(best[:0], best[:0])
