"""Another graph: with the source, with its summary, with the model alone; few labels, or none."""

from __future__ import annotations

import json

import pytest
import torch
from torch_geometric.data import Data

import graphkeel as gk
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import make_sbm, make_task
from graphkeel.models import train_model
from graphkeel.reconstruct.summary import edge_agreement

SIZE = {"n_nodes": 600, "n_edges": 2400, "n_features": 8, "n_classes": 3}


def graph(seed: int, homophily: float = 0.95, **changes: int):
    """A block model; the class means are the same for every seed, the rest is not."""
    settings = {**SIZE, "signal": 0.5, "homophily": homophily, "seed": 0, **changes}
    return make_task(make_sbm(**settings), seed=seed, split="random")


@pytest.fixture(scope="module")
def source():
    task = graph(0)
    return task, train_model("sgc", task, seed=0, k=2)


@pytest.fixture(scope="module")
def target(source):
    """The same classes, features shifted by a constant that the model has not seen."""
    task = graph(1)
    shift = 0.15 * torch.randn(1, 8, generator=torch.Generator().manual_seed(5))
    return Data(x=task.x + shift, edge_index=task.edge_index), task.y


@pytest.fixture(scope="module")
def fitted(source):
    task, model = source
    return gk.Reconstructor(model).fit(task.to_data())


def accuracy(predicted, y):
    return 100.0 * float((predicted == y).float().mean())


def untouched(model, data):
    return gk.FrozenModel(model).predict(data.x, data.edge_index)


@pytest.mark.parametrize("keep", ["graph", "summary", "model", None])
def test_a_target_without_a_label_is_not_refused(fitted, source, target, keep):
    data, y = target
    out = fitted.adapt(data, keep=keep)
    assert accuracy(out.predict(data), y) >= accuracy(untouched(source[1], data), y)
    assert "no label of this graph" in out.guard_.reason
    assert ("labels won" in out.guard_.reason) == (keep != "model")
    assert not out.guard_.left_alone


def test_the_model_alone_needs_no_fit(source, target):
    data, _ = target
    out = gk.Reconstructor(source[1]).adapt(data)
    assert "no trial at the source" in out.guard_.reason
    assert out.predict(data).shape == (data.x.shape[0],)


def test_labels_of_the_target_that_were_not_handed_over_change_nothing(fitted, target):
    data, y = target
    bare = fitted.adapt(data)
    told = Data(x=data.x, edge_index=data.edge_index, y=y, train_mask=torch.ones_like(y).bool())
    assert torch.equal(fitted.adapt(told).features_, bare.features_)


@pytest.mark.parametrize("count", [1, 5, 20, 100])
def test_few_labels_and_missing_classes_are_taken(fitted, target, count):
    data, y = target
    nodes = (y != 2).nonzero().flatten()[:count]  # no label of class 2 at all
    out = fitted.adapt(data, nodes, y[nodes])
    assert len(out.labels_) == count
    assert torch.isfinite(out.features_).all()
    assert (out.predict(data) == 2).any()  # the class without a label is still there


def test_labels_of_the_target_judge_where_there_are_enough(fitted, source, target):
    data, y = target
    nodes = torch.arange(0, 600, 6)
    out = fitted.adapt(data, nodes, y[nodes])
    assert "not trained on, cross-fitted" in out.guard_.source
    assert out.guard_.n_labels == len(nodes)
    assert accuracy(out.predict(data), y) >= accuracy(untouched(source[1], data), y)


def test_feedback_after_adapt_is_adapt_with_labels(fitted, target):
    data, y = target
    nodes = torch.arange(0, 600, 10)
    later = fitted.adapt(data).feedback(nodes, y[nodes])
    assert torch.equal(later.features_, fitted.adapt(data, nodes, y[nodes]).features_)


def test_a_graph_whose_neighbours_differ_is_left_alone(source):
    """All candidates lean on neighbours; where those have other classes, nothing is changed."""
    task, model = source
    strange = graph(2, homophily=0.05)
    data = Data(x=strange.x, edge_index=strange.edge_index)
    out = gk.Reconstructor(model).fit(task.to_data()).adapt(data)
    assert out.guard_.left_alone
    assert torch.equal(out.features_, data.x)


def test_the_summary_holds_no_row_of_the_source(fitted, target, tmp_path):
    data, _ = target
    fitted.save(tmp_path, keep="summary")
    loaded = gk.load(tmp_path, model=fitted.model)
    assert torch.equal(loaded.adapt(data).features_, fitted.adapt(data).features_)
    (file,) = tmp_path.glob("*.safetensors")
    d = fitted.n_features_in_
    assert file.stat().st_size < 8 * (d * d + 4 * d) + 2000  # statistics, whatever the graph's size
    facts = json.loads((tmp_path / "reconstruction.json").read_text())
    assert set(facts["source"]) == {"trial"}
    with pytest.raises(ConfigError, match="summary of a source graph"):
        loaded.transform(data)


def test_other_features_or_classes_than_the_source_has_are_refused(fitted, target):
    data, _ = target
    with pytest.raises((DataError, gk.KeelError)):
        fitted.adapt(Data(x=data.x[:, :5], edge_index=data.edge_index))
    with pytest.raises(ConfigError, match="keep must be one of"):
        fitted.adapt(data, keep="everything")


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "appnp"])
def test_deeper_models_adapt_too(name, target):
    task = graph(0)
    data, y = target
    model = train_model(name, task, seed=0)
    out = gk.Reconstructor(model).fit(task.to_data()).adapt(data)
    assert accuracy(out.predict(data), y) >= accuracy(untouched(model, data), y) - 1.0


def test_agreement_is_beyond_chance():
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 0, 3, 2, 0]])
    assert edge_agreement(torch.tensor([0, 0, 1, 1]), edges, 2) == pytest.approx(1.0)
    assert edge_agreement(torch.tensor([0, 1, 0, 1]), edges, 2) == pytest.approx(-1.0)
    assert edge_agreement(torch.tensor([0, 0, 0, 0]), edges, 2) == 0.0
