"""FrozenModel: the weights, modes and caches of the user's model are as they were, whatever
happens."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, SGConv

from graphkeel.core.errors import ModelError
from graphkeel.models import GCN
from graphkeel.models.frozen import FrozenModel, clear_caches


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GCN(2, 2)


def test_runs_in_eval_mode_and_puts_the_mode_back(make_task, model):
    task = make_task()
    model.train()
    frozen = FrozenModel(model)
    first = frozen(task.x, task.edge_index)
    assert torch.equal(first, frozen(task.x, task.edge_index))  # no dropout
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_puts_the_mode_back_when_the_model_fails(make_task):
    class Failing(nn.Module):
        def forward(self, x, edge_index):
            raise RuntimeError("boom")

    failing = Failing().train()
    with pytest.raises(RuntimeError, match="boom"):
        FrozenModel(failing)(make_task().x, make_task().edge_index)
    assert failing.training


def test_a_changed_weight_is_noticed(make_task, model):
    frozen = FrozenModel(model)
    with torch.no_grad():
        model.conv1.bias[0] += 1e-7
    with pytest.raises(ModelError, match="weights have changed"):
        frozen(make_task().x, make_task().edge_index)


def test_a_model_that_changes_its_own_weights_is_noticed(make_task):
    class Learning(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))

        def forward(self, x, edge_index):
            self.weight.data += 1
            return x + self.weight

    with pytest.raises(ModelError, match="weights have changed"):
        FrozenModel(Learning())(make_task().x, make_task().edge_index)


def test_gradients_reach_the_features_and_never_the_weights(make_task, model):
    task = make_task()
    x = task.x.clone().requires_grad_()
    FrozenModel(model).differentiable_logits(x, task.edge_index).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("layer", [SGConv, GCNConv])
def test_caches_are_cleared_so_that_new_features_and_edges_count(make_task, layer):
    task = make_task()
    torch.manual_seed(0)
    conv = layer(2, 2, cached=True)
    frozen = FrozenModel(conv)
    first = frozen(task.x, task.edge_index)
    assert not torch.allclose(frozen(task.x + 1, task.edge_index), first)
    assert not torch.allclose(frozen(task.x, task.edge_index[:, :4]), first)
    conv.eval()(task.x, task.edge_index)  # the user's own call fills the cache
    assert torch.allclose(frozen(task.x + 1, task.edge_index), frozen(task.x + 1, task.edge_index))
    assert clear_caches(conv) == 0


def test_an_unknown_cache_is_refused(make_task):
    class Odd(nn.Module):
        cached = True

        def forward(self, x, edge_index):
            return x

    with pytest.raises(ModelError, match=r"cached=True.*cached=False"):
        FrozenModel(Odd())(make_task().x, make_task().edge_index)


def test_callables_and_keyword_arguments_pass_through(make_task):
    task = make_task()
    frozen = FrozenModel(lambda x, edge_index, scale: x * scale)
    assert torch.equal(frozen(task.x, task.edge_index, scale=2.0), task.x * 2)


def test_output_width_must_match_the_classes(make_task, model):
    with pytest.raises(ModelError, match=r"as wide as there are classes, 3 \(got 2\)"):
        FrozenModel(model, n_classes=3)(make_task().x, make_task().edge_index)
    with pytest.raises(ModelError, match="one row of scores for each of the 6 nodes"):
        FrozenModel(lambda x, e: x[:3])(make_task().x, make_task().edge_index)
    with pytest.raises(ModelError, match="a callable"):
        FrozenModel("gcn")


def test_return_types(make_task):
    task = make_task()
    raw = FrozenModel(lambda x, e: x)
    probs = FrozenModel(lambda x, e: x.softmax(-1), return_type="probs")
    log_probs = FrozenModel(lambda x, e: x.log_softmax(-1), return_type="log_probs")
    expected = raw.logits(task.x, task.edge_index).log_softmax(-1)
    for frozen in (probs, log_probs):
        assert torch.allclose(frozen.logits(task.x, task.edge_index), expected, atol=1e-6)
        assert torch.equal(
            frozen.predict(task.x, task.edge_index), raw.predict(task.x, task.edge_index)
        )
    with pytest.raises(ModelError, match="return_type must be one of raw"):
        FrozenModel(lambda x, e: x, return_type="odds")
