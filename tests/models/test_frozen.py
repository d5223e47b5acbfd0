"""FrozenModel: the weights, modes and caches of the user's model are as they were, whatever
happens."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, SGConv, SSGConv

from graphkeel.core.errors import ModelError
from graphkeel.models import GCN
from graphkeel.models import frozen as frozen_module
from graphkeel.models.frozen import FrozenModel, cache_slots
from threads import PATIENCE, Meeting, WatchedLock, at_once


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
    assert all(getattr(*slot) is None for slot in cache_slots(conv)), "empty again"


@pytest.mark.parametrize("layer", [SGConv, SSGConv, GCNConv])
def test_a_warm_cache_neither_answers_nor_gets_lost(make_task, layer):
    task = make_task()
    torch.manual_seed(0)
    conv = (
        layer(2, 2, alpha=0.1, cached=True) if layer is SSGConv else layer(2, 2, cached=True)
    ).eval()
    cold = FrozenModel(copy.deepcopy(conv))(task.x + 1, task.edge_index[:, :4])
    theirs = conv(task.x, task.edge_index)  # the user's own call fills the cache
    kept = {name: value for name, value in vars(conv).items() if name.startswith("_cached")}
    assert torch.equal(FrozenModel(conv)(task.x + 1, task.edge_index[:, :4]), cold)
    assert all(getattr(conv, name) is value for name, value in kept.items())
    assert conv.cached is True
    assert torch.equal(conv(task.x, task.edge_index), theirs)


class Remembering(nn.Module):
    """Its answers depend on how often it was asked."""

    def __init__(self, kind, how):
        super().__init__()
        self.kind, self.how = kind, how
        if kind == "weight":
            self.seen = nn.Parameter(torch.zeros(2))
        elif kind == "list":
            self.seen = [torch.zeros(2)]
        elif kind == "sparse":
            self.seen = torch.eye(2).to_sparse()
        elif kind == "attribute":
            self.seen = torch.zeros(2)
        else:
            self.register_buffer("seen", torch.zeros(2), persistent=kind == "buffer")

    def forward(self, x, edge_index):
        seen = self.seen[0] if self.kind == "list" else self.seen
        if self.how == "in place":
            seen += 1
        elif self.how == "behind autograd's back":
            seen.data.copy_(seen.data + 1) if self.kind != "sparse" else seen._values().add_(1)
        elif self.kind == "list":
            self.seen[0] = seen + 1
        elif self.kind == "sparse":
            self.seen = seen * 2
        else:
            self.seen = type(seen)(seen + 1)
        total = self.seen[0] if self.kind == "list" else self.seen
        return x + (total.to_dense().sum(0) if self.kind == "sparse" else total)


MEMORIES = [
    (kind, how)
    for kind in ("weight", "buffer", "hidden buffer", "attribute", "list", "sparse")
    for how in ("in place", "behind autograd's back", "anew")
    if (kind, how) != ("sparse", "in place")
]


@pytest.mark.parametrize(("kind", "how"), MEMORIES)
def test_a_forward_that_changes_what_the_model_holds_is_refused(make_task, kind, how):
    model = Remembering(kind, how).train()
    with pytest.raises(ModelError, match=r"have changed during its own forward \(got 'seen"):
        FrozenModel(model)(make_task().x, make_task().edge_index)
    assert model.training


@pytest.mark.parametrize("kind", ["weight", "buffer", "hidden buffer", "attribute", "list"])
def test_what_a_forward_sets_anew_is_put_back_even_when_it_is_refused(make_task, kind):
    model = Remembering(kind, "anew")
    with pytest.raises(ModelError):
        FrozenModel(model)(make_task().x, make_task().edge_index)
    held = model.seen[0] if kind == "list" else model.seen
    assert torch.equal(held, torch.zeros(2))


def test_a_hidden_buffer_that_is_changed_from_outside_is_noticed(make_task):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(1), persistent=False)

        def forward(self, x, edge_index):
            return x * self.scale

    model = Scaled()
    frozen = FrozenModel(model)
    frozen(make_task().x, make_task().edge_index)
    model.scale += 1
    with pytest.raises(ModelError, match=r"buffers have changed since it was wrapped"):
        frozen(make_task().x, make_task().edge_index)


def test_records_of_the_last_call_are_removed(make_task):
    """Attention weights and the like, left behind where there was nothing."""

    class Recording(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.history, self.named = None, [], {}

        def forward(self, x, edge_index):
            self.attention = self.fresh = x * 2
            self.history.append(x)
            self.named["last"] = x
            return x

    model = Recording()
    frozen = FrozenModel(model)
    for _ in range(2):
        assert torch.equal(frozen(make_task().x, make_task().edge_index), make_task().x)
    assert model.attention is None
    assert not hasattr(model, "fresh")
    assert model.history == []
    assert model.named == {}


@pytest.mark.parametrize("lazy", [nn.LazyLinear(2), GCNConv(-1, 2), nn.LazyBatchNorm1d()])
def test_a_lazy_layer_without_weights_is_named(lazy):
    with pytest.raises(ModelError, match=r"lazy layer without weights \(got '.*0\..*'\). Run"):
        FrozenModel(nn.Sequential(lazy))


def test_two_threads_leave_the_model_as_it_was(make_task, monkeypatch):
    """The second would find eval mode and put that back, after the first had put back its own."""
    task, meeting, first_left = make_task(), Meeting(parties=2), threading.Event()
    lock = WatchedLock(meeting)
    monkeypatch.setattr(frozen_module, "lock_of", lambda model: lock)
    order = []

    class Slow(nn.Linear):
        def forward(self, x, edge_index):
            order.append(threading.get_ident())
            meeting.wait()
            if threading.get_ident() != order[0]:
                assert first_left.wait(PATIENCE)
            return super().forward(x)

    model = Slow(2, 2).train()

    def ask():
        FrozenModel(model)(task.x, task.edge_index)
        if threading.get_ident() == order[0]:
            first_left.set()

    at_once(ask, ask)
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_every_model_has_a_lock_of_its_own(model):
    assert frozen_module.lock_of(model) is frozen_module.lock_of(model)
    assert frozen_module.lock_of(model) is not frozen_module.lock_of(GCN(2, 2))


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
