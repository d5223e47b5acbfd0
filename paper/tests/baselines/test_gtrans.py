"""GTrans: projection and loss by hand, weighted edges in models that know of none, the budget, the
contract."""

from __future__ import annotations

import pytest
import torch
from shifted_graph import apply, check_contract, small_task

from graphkeel.models import TrainingConfig, train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel_paper.baselines.frozen.gtrans import (
    GTrans,
    Views,
    dissimilarity,
    project,
)

TASK = small_task()
QUICK = TrainingConfig(epochs=20)


def frozen(name: str) -> FrozenModel:
    return FrozenModel(train_model(name, TASK, seed=0, config=QUICK))


def test_projection_by_hand():
    """0.9 + 0.8 + 0.1 shifted by 0.35 leaves 0.55 + 0.45 + 0, whose sum is the budget."""
    assert torch.allclose(
        project(torch.tensor([0.9, 0.8, 0.1]), 1.0),
        torch.tensor([0.55, 0.45, GTrans.start]),
        atol=1e-4,
    )
    assert torch.allclose(
        project(torch.tensor([0.3, -1.0, 0.2]), 1.0), torch.tensor([0.3, GTrans.start, 0.2])
    )


def test_dissimilarity_by_hand():
    a = torch.tensor([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    b = torch.tensor([[0.0, 3.0], [-1.0, 0.0], [2.0, 2.0]])
    assert float(dissimilarity(a, b)) == pytest.approx((1 + 2 + 0) / 3)


@pytest.mark.parametrize("name", ["sgc", "gcn", "appnp"])
def test_a_weight_of_zero_is_a_missing_edge(name):
    views = Views(frozen(name), TASK)
    weights = torch.ones(TASK.n_edges)
    weights[::3] = 0.0
    with torch.no_grad():
        weighted = views.logits(TASK.x, weights)
        removed = views.logits(TASK.x, torch.ones(TASK.n_edges), weights > 0)
    assert torch.allclose(weighted, removed, atol=1e-5)
    assert not torch.allclose(weighted, views.frozen.logits(TASK.x, TASK.edge_index), atol=1e-3)


def test_the_embedding_is_what_enters_the_last_layer():
    model = frozen("gcn")
    hidden = model.model.conv1(TASK.x, TASK.edge_index).relu()
    assert torch.allclose(
        Views(model, TASK).embedding(TASK.x, torch.ones(TASK.n_edges)), hidden, atol=1e-5
    )


def test_sgc_has_no_embedding_of_its_own_and_its_logits_stand_for_it():
    model = frozen("sgc")
    views = Views(model, TASK)
    assert torch.allclose(
        views.embedding(TASK.x, torch.ones(TASK.n_edges)),
        model.logits(TASK.x, TASK.edge_index),
        atol=1e-5,
    )


@pytest.mark.parametrize("name", ["sgc", "gcn"])
def test_edges_and_features_within_the_budget(name):
    method = GTrans(budget=0.02)
    result = check_contract(method, TASK, frozen(name))
    assert 0 < result.decision["edges_removed"] <= 0.02 * TASK.n_edges / 2
    assert result.features is None  # the features without the edges would not give these scores


def test_layers_without_weights_get_features_only():
    result = check_contract(GTrans(), TASK, frozen("sage"))
    assert result.decision["edges_removed"] == 0
    assert result.features is not None


def test_features_only_rewrites_features_that_reproduce_the_scores():
    model = frozen("sgc")
    result = check_contract(GTrans(edge_steps=0), TASK, model)
    assert torch.allclose(model.logits(result.features, TASK.edge_index), result.scores, atol=1e-5)
    assert not torch.equal(result.features, TASK.x)


def test_no_hook_is_left_behind():
    model = frozen("gcn")
    apply(GTrans(), TASK, model)
    assert not model.model.conv1._forward_pre_hooks and not model.model.conv2._forward_pre_hooks
