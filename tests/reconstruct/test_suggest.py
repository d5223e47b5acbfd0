"""`suggest`: greedy coverage of uncertain nodes, lazily, equals the plain greedy choice."""

from __future__ import annotations

import pytest
import torch

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph import make_sbm, make_task
from graphkeel.graph.propagate.coverage import greedy_coverage
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.graph.suggest import uncertainty
from graphkeel.models import train_model
from graphkeel.reconstruct.reconstructor import Reconstructor


@pytest.fixture(scope="module")
def fitted():
    graph = make_sbm(400, 900, n_classes=3, n_features=8, homophily=0.6, signal=1.0, seed=3)
    task = make_task(graph, split="random")
    data = task.to_data()
    return Reconstructor(train_model("sgc", task)).fit(data), data


def plain_greedy(propagator, weights, labelled, allowed, k):
    matrix = propagator(propagator(torch.eye(propagator.n_nodes))).double()
    cover = matrix[labelled].max(dim=0).values
    chosen = []
    for _ in range(k):
        gains = ((matrix - cover).clamp_min(0) * weights).sum(dim=1)
        gains[~allowed] = -1
        best = int(gains.argmax())
        chosen.append(best)
        allowed = allowed.clone()
        allowed[best] = False
        cover = torch.maximum(cover, matrix[best])
    return chosen


@pytest.mark.parametrize("n_labelled", [1, 3, 60])
def test_lazy_is_greedy(n_labelled):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 80, (2, 200), generator=generator)
    propagator = Propagator(edges, 80)
    weights = torch.rand(80, generator=generator, dtype=torch.float64)
    labelled = torch.randperm(80, generator=generator)[:n_labelled]
    allowed = torch.ones(80, dtype=torch.bool)
    allowed[labelled] = False
    found = greedy_coverage(propagator, weights, labelled, allowed, 12)
    assert found.tolist() == plain_greedy(propagator, weights, labelled, allowed, 12)


def test_uncertainty_lies_between_sure_and_not_at_all():
    rows = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.9, 0.1]])
    found = uncertainty(rows)
    assert found[0] == pytest.approx(0.0, abs=1e-9)
    assert found[1] == pytest.approx(1.0)
    assert 0.0 < found[2] < 1.0


def test_nodes_with_a_label_are_left_out(fitted):
    rec, data = fitted
    nodes = rec.suggest(20)
    assert len(set(nodes.tolist())) == 20
    assert not torch.isin(nodes, rec.labels_.nodes).any()
    among = torch.zeros(400, dtype=torch.bool)
    among[data.test_mask.nonzero().flatten()[:30]] = True
    assert among[rec.suggest(10, among=among)].all()
    ids = among.nonzero().flatten()
    assert torch.equal(rec.suggest(10, among=ids), rec.suggest(10, among=among))
    assert len(rec.suggest(500)) == int((~torch.isin(torch.arange(400), rec.labels_.nodes)).sum())


def test_suggestions_feed_back(fitted):
    rec, data = fitted
    nodes = rec.suggest(10)
    before = len(rec.labels_)
    rec.feedback(nodes, data.y[nodes])
    assert len(rec.labels_) == before + 10
    assert not torch.isin(rec.suggest(10), nodes).any()
    rec.reset()


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_a_count_that_is_none(fitted, k):
    with pytest.raises(ConfigError, match="at least 1"):
        fitted[0].suggest(k)


def test_nodes_that_are_none(fitted):
    rec, _ = fitted
    with pytest.raises(DataError, match="node ids"):
        rec.suggest(3, among=torch.tensor([400]))
    with pytest.raises(DataError, match="mask of 400"):
        rec.suggest(3, among=torch.ones(3, dtype=torch.bool))
    with pytest.raises(ConfigError, match="no node without a label"):
        rec.suggest(3, among=rec.labels_.nodes)
