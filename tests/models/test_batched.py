"""Models asked in batches, beside the whole pass."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

import graphkeel as gk
from graphkeel.core.errors import ConfigError, ModelError
from graphkeel.models import Batches, build_model
from graphkeel.models.batched import AskedInBatches

N, D, C = 120, 9, 3


@pytest.fixture(scope="module")
def data() -> Data:
    """With repeated edges, loops, one-way edges and isolated nodes."""
    torch.manual_seed(0)
    edges = torch.randint(0, N - 5, (2, 260))
    y = torch.randint(0, C, (N,))
    x = torch.randn(N, D) + 2 * torch.nn.functional.one_hot(y, D)
    val = torch.zeros(N, dtype=torch.bool)
    val[:40] = True
    both = torch.cat([edges, edges[:, :200].flip(0), edges[:, :9]], dim=1)
    return Data(x=x, edge_index=both, y=y, val_mask=val)


def model_of(name: str) -> torch.nn.Module:
    torch.manual_seed(1)
    return build_model(name, D, C).eval()


@pytest.mark.parametrize("name", ["sage", "gcn", "gat", "sgc"])
def test_batches_give_what_the_whole_pass_gives(data, name) -> None:
    model = model_of(name)
    hops = {"sage": 2, "gat": 2, "gcn": 3, "sgc": 4}[name]  # one more where degrees divide
    assert Batches.of(model).hops == hops
    asked = AskedInBatches(model, Batches(hops, size=16))
    leaf = data.x.clone().requires_grad_(True)
    whole = model(leaf, data.edge_index)
    weights = torch.randn(N, C) * (torch.arange(N) % 3 == 0)[:, None]  # some nodes pull
    (expected,) = torch.autograd.grad(whole, leaf, weights)
    found = asked(leaf, data.edge_index)
    torch.testing.assert_close(found, whole)
    torch.testing.assert_close(torch.autograd.grad(found, leaf, weights)[0], expected)


def test_only_fields_of_nodes_that_pull_are_computed(data) -> None:
    model = model_of("sage")
    asked = AskedInBatches(model, Batches(2, size=1))
    leaf = data.x.clone().requires_grad_(True)
    scores = asked(leaf, data.edge_index)
    calls = []
    handle = model.register_forward_hook(lambda *_: calls.append(1))
    weights = torch.zeros(N, C)
    weights[7] = 1.0
    torch.autograd.grad(scores, leaf, weights)
    handle.remove()
    assert len(calls) == 1


def by_layers(model, x, edge_index):
    """Layer-wise inference of a user's own."""
    hidden = model.conv1(x, edge_index).relu()
    return model.conv2(hidden, edge_index)


@pytest.mark.parametrize("inference", [Batches(2, size=32), by_layers])
def test_a_fit_in_batches_is_the_fit(data, tmp_path, inference) -> None:
    model = model_of("sage")
    whole = gk.Reconstructor(model).fit(data)
    rec = gk.Reconstructor(model, inference=inference).fit(data)
    assert rec.guard_.kept and rec.guard_.reason == whole.guard_.reason
    torch.testing.assert_close(rec.posterior_, whole.posterior_, atol=1e-4, rtol=1e-3)
    assert torch.equal(rec.predict(data), whole.predict(data))
    rec.save(tmp_path)
    again = gk.load(tmp_path, model, inference=inference)
    assert torch.equal(again.predict(data), rec.predict(data))
    assert torch.equal(again.attach(data).update(data).predict(data), rec.predict(data))


def test_modes_do_not_matter(data) -> None:
    """A model in training mode is asked in eval mode, for gradients as well."""
    model = model_of("gat").train()
    rec = gk.Reconstructor(model, inference=Batches(2)).fit(data)
    assert model.training
    other = gk.Reconstructor(model_of("gat"), inference=Batches(2)).fit(data)
    assert torch.equal(rec.features_, other.features_)


def test_what_cannot_be_asked_in_batches(data) -> None:
    with pytest.raises(ConfigError, match="hops >= 0"):
        Batches(-1)
    with pytest.raises(ModelError, match="needs a torch module"):
        gk.Reconstructor(lambda x, edge_index: x, inference=Batches(1)).fit(data)


@pytest.mark.parametrize("name", ["sage", "gcn", "gat", "sgc"])
def test_too_few_hops_are_refused(data, name) -> None:
    model = model_of(name)
    with pytest.raises(ConfigError, match="more hops"):
        Batches(Batches.of(model).hops - 1)(model, data.x, data.edge_index)


@pytest.mark.parametrize("hops", [-1, 2.5, "2"])
def test_hops_are_whole_numbers(hops) -> None:
    with pytest.raises(ConfigError, match="whole hops"):
        Batches(hops)
