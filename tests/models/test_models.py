"""The reference models: hand-computed forward passes, training, storage."""

from __future__ import annotations

import pytest
import torch

from graphkeel.core.errors import ConfigError, ModelError
from graphkeel.graph import load
from graphkeel.models import (
    MODELS,
    SGC,
    TrainingConfig,
    accuracy,
    build_model,
    load_model,
    save_model,
    train,
    train_model,
)


def test_sgc_by_hand():
    """Two nodes, one edge: Ã has all entries 1/2, so every node sees the mean of both, whatever
    K."""
    model = SGC(1, 2, k=3)
    with torch.no_grad():
        model.conv.lin.weight.copy_(torch.tensor([[2.0], [-1.0]]))
        model.conv.lin.bias.copy_(torch.tensor([0.5, 0.0]))
    out = model(torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 1], [1, 0]]))
    assert torch.allclose(out, torch.tensor([[4.5, -2.0], [4.5, -2.0]]))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_and_survives_storage(name, tmp_path):
    task = load("digits", split="random")
    model = train_model(name, task, seed=0, config=TrainingConfig(epochs=60, lr=0.02))
    scores = model(task.x, task.edge_index)
    assert scores.shape == (task.n_nodes, 10)
    assert accuracy(scores, task, task.test_mask) > 80
    path = tmp_path / "model.safetensors"
    save_model(path, model, name, task.n_features, task.n_classes)
    assert torch.equal(load_model(path)(task.x, task.edge_index), scores)


def test_training_is_seeded_and_leaves_the_global_generator_alone(make_task):
    state = torch.random.get_rng_state()
    a = train_model("gcn", make_task(), seed=1).state_dict()
    b = train_model("gcn", make_task(), seed=1).state_dict()
    assert all(torch.equal(a[key], b[key]) for key in a)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_hoisted_sgc_training_equals_the_plain_forward(make_task):
    """The trainer propagates once; the weights must be those of propagating every epoch."""
    task = make_task()
    torch.manual_seed(0)
    hoisted = SGC(2, 2)
    plain = SGC(2, 2)
    plain.load_state_dict(hoisted.state_dict())
    train(hoisted, task, TrainingConfig(epochs=20))
    optimiser = torch.optim.Adam(plain.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(20):
        optimiser.zero_grad()
        scores = plain(task.x, task.edge_index)[task.train_mask]
        torch.nn.functional.cross_entropy(scores, task.y[task.train_mask]).backward()
        optimiser.step()
    assert torch.allclose(hoisted.conv.lin.weight, plain.conv.lin.weight, atol=1e-6)


def test_early_stopping_keeps_the_best_epoch(make_task):
    """A learning rate that overshoots: the last epoch is worse on validation than the one that is
    kept."""
    task = make_task()
    torch.manual_seed(0)
    model = train(SGC(2, 2), task, TrainingConfig(epochs=200, lr=5.0, patience=200))
    kept = torch.nn.functional.cross_entropy(
        model(task.x, task.edge_index)[task.val_mask], task.y[task.val_mask]
    )
    torch.manual_seed(0)
    last = train(SGC(2, 2), task, TrainingConfig(epochs=200, lr=5.0))
    final = torch.nn.functional.cross_entropy(
        last(task.x, task.edge_index)[task.val_mask], task.y[task.val_mask]
    )
    assert kept <= final


def test_unknown_models_options_and_files(tmp_path):
    with pytest.raises(ConfigError, match="the model must be one of sgc"):
        build_model("transformer", 2, 2)
    with pytest.raises(ConfigError, match="does not take those options"):
        build_model("sgc", 2, 2, hidden=3)
    (tmp_path / "x").write_text("no")
    with pytest.raises(ModelError, match="not a stored model"):
        load_model(tmp_path / "x")
    with pytest.raises(ModelError, match="not a stored model"):
        load_model(tmp_path / "missing")
