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

SIZE = {"n_nodes": 400, "n_edges": 1600, "n_features": 8, "n_classes": 3}


def graph(seed: int, homophily: float = 0.95):
    """A block model; the class means are the same for every seed, the rest is not."""
    sbm = make_sbm(**SIZE, signal=0.5, homophily=homophily, seed=0)
    return make_task(sbm, seed=seed, split="random")


@pytest.fixture(scope="module")
def source():
    task = graph(0)
    return task, train_model("sgc", task, seed=0, k=2)


@pytest.fixture(scope="module")
def target(source):
    """A graph of the same classes, features shifted by a constant that the model has not seen."""
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
    assert out.guard_.kept and "no label judges here" in out.guard_.reason
    again = fitted.adapt(data)  # whatever is kept
    assert torch.equal(out.features_, again.features_)
    assert out.guard_ == again.guard_


def test_the_model_alone_needs_no_fit(fitted, source, target):
    data, _ = target
    out = gk.Reconstructor(source[1]).adapt(data)
    assert torch.equal(out.predict(data), fitted.adapt(data, keep="model").predict(data))


def test_labels_of_the_target_that_were_not_handed_over_change_nothing(fitted, target):
    data, y = target
    mask = torch.ones_like(y).bool()
    labelled = Data(x=data.x, edge_index=data.edge_index, y=y, train_mask=mask)
    assert torch.equal(fitted.adapt(labelled).features_, fitted.adapt(data).features_)


@pytest.mark.parametrize("count", [1, 5, 20, 100])
def test_few_labels_and_missing_classes_are_taken(fitted, source, target, count):
    data, y = target
    nodes = (y != 2).nonzero().flatten()[:count]  # no label of class 2 at all
    out = fitted.adapt(data, nodes, y[nodes])
    assert len(out.labels_) == out.guard_.n_labels == count
    assert torch.isfinite(out.features_).all()
    assert (out.predict(data) == 2).any()  # the class without a label is still there
    assert accuracy(out.predict(data), y) >= accuracy(untouched(source[1], data), y) - 2.0


def test_labels_of_the_target_judge_and_move_the_weights(fitted, source, target):
    data, y = target
    nodes = torch.arange(0, 400, 4)
    out = fitted.adapt(data, nodes, y[nodes])
    assert "not trained on" in out.guard_.source
    assert out.guard_.n_labels == len(nodes)
    assert accuracy(out.predict(data), y) >= accuracy(untouched(source[1], data), y)
    shares = [
        sum(one.share for one in rec.evidence_ if one.kind == "model")
        for rec in (fitted.adapt(data), out)
    ]
    assert shares[0] > shares[1]


def test_feedback_after_adapt_is_adapt_with_labels(fitted, target):
    data, y = target
    nodes = torch.arange(0, 400, 10)
    later = fitted.adapt(data).feedback(nodes, y[nodes])
    at_once = fitted.adapt(data, nodes, y[nodes])
    assert torch.equal(later.features_, at_once.features_)
    assert later.guard_ == at_once.guard_


def test_a_graph_whose_neighbours_differ_is_hardly_changed(source):
    """Sources that lean on neighbours have no part where the model says that these differ."""
    task, model = source
    strange = graph(2, homophily=0.05)
    data = Data(x=strange.x, edge_index=strange.edge_index)
    out = gk.Reconstructor(model).fit(task.to_data()).adapt(data)
    before = accuracy(untouched(model, data), strange.y)
    assert accuracy(out.predict(data), strange.y) >= before - 1.0


def test_the_summary_holds_no_row_of_the_source(fitted, target, tmp_path):
    data, y = target
    fitted.save(tmp_path, keep="summary")
    loaded = gk.load(tmp_path, model=fitted.model)
    nodes = torch.arange(0, 400, 20)
    for given in ((), (nodes, y[nodes])):
        one, two = loaded.adapt(data, *given), fitted.adapt(data, *given)
        assert torch.equal(one.features_, two.features_)
        assert one.guard_ == two.guard_
    assert not list(tmp_path.glob("*.safetensors")) or all(
        file.stat().st_size < 1000 for file in tmp_path.glob("*.safetensors")
    )
    facts = json.loads((tmp_path / "reconstruction.json").read_text())
    ours = {"format", "sha256", "notes"}
    assert set(facts) - ours == {"parameters", "n_features", "n_classes", "weights"}
    with pytest.raises(ConfigError, match="summary of a source graph"):
        loaded.transform(data)


def test_an_adapted_one_survives_the_folder(fitted, target, tmp_path):
    """Later labels lead to the same state."""
    data, y = target
    nodes = torch.arange(0, 400, 20)
    stayed = fitted.adapt(data)
    stayed.save(tmp_path)
    back = gk.load(tmp_path, model=fitted.model).attach(data)
    assert back.guard_ == stayed.guard_
    assert back.feedback(nodes, y[nodes]).guard_ == stayed.feedback(nodes, y[nodes]).guard_


def test_other_features_or_classes_than_the_source_has_are_refused(fitted, target):
    data, _ = target
    with pytest.raises(DataError, match=r"the source's 8 features \(got 5\)"):
        fitted.adapt(Data(x=data.x[:, :5], edge_index=data.edge_index))
    with pytest.raises(ConfigError, match="keep must be one of"):
        fitted.adapt(data, keep="everything")


@pytest.mark.parametrize("given", [{"nodes": [1]}, {"labels": [1]}])
def test_nodes_and_labels_go_together(fitted, target, given):
    with pytest.raises(DataError, match=r"must be integers in .* \(got None\)"):
        fitted.adapt(target[0], **given)


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "appnp"])
def test_deeper_models_adapt_too(name, target):
    task = graph(0)
    data, y = target
    model = train_model(name, task, seed=0)
    out = gk.Reconstructor(model).fit(task.to_data()).adapt(data)
    assert accuracy(out.predict(data), y) >= accuracy(untouched(model, data), y) - 1.0
