"""TENT: only batch norms move, only in a copy, and only where there are any."""

from __future__ import annotations

import pytest
import torch
from shifted_graph import apply, check_contract, frozen_sgc, small_task
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GCNConv

from graphkeel.graph import GraphTask
from graphkeel.models import TrainingConfig, train
from graphkeel.models.frozen import FrozenModel
from graphkeel_paper.baselines.retrained.copies import Tent, TentConfig, batch_norms


class NormedGcn(nn.Module):
    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.conv1, self.norm, self.conv2 = (
            GCNConv(n_features, 16),
            BatchNorm(16),
            GCNConv(16, n_classes),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv2(self.norm(self.conv1(x, edge_index)).relu(), edge_index)


@pytest.fixture(scope="module")
def task() -> GraphTask:
    return small_task()


@pytest.fixture(scope="module")
def frozen(task: GraphTask) -> FrozenModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return FrozenModel(train(NormedGcn(8, 3), task, TrainingConfig(epochs=30)))


def test_a_model_without_batch_norm_is_left_alone_with_the_reason(task):
    result = apply(Tent(), task, frozen_sgc(task))
    assert result.scores is None and result.features is None
    assert result.decision == {
        "applied": False,
        "reason": "the model has no batch norm with weights",
    }


def test_it_makes_predictions_surer_and_keeps_the_contract(task, frozen):
    result = check_contract(Tent(config=TentConfig(lr=0.01, steps=5)), task, frozen)
    assert result.decision["applied"]
    assert result.decision["entropy_after"] < result.decision["entropy_before"]


def test_no_steps_use_the_statistics_of_the_graph_at_hand(task, frozen):
    """A shifted and scaled input is the same input to a model that normalises by what it sees."""
    untouched = apply(Tent(config=TentConfig(steps=0)), task, frozen).scores
    norm = batch_norms(frozen.model)[0]
    seen: list[Tensor] = []
    handle = norm.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    frozen.logits(task.x, task.edge_index)
    handle.remove()
    centred = (seen[0] - seen[0].mean(0)) / (seen[0].var(0, unbiased=False) + norm.eps).sqrt()
    hidden = (centred * norm.weight + norm.bias).relu()
    expected = frozen.model.conv2(hidden, task.edge_index)
    assert torch.allclose(untouched, expected, atol=1e-5)
