"""A large graph that has grown, or has a few more labels, goes on from its last round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_graphs import known, trained
from test_update import NEW, N, grown_graph
from torch_geometric.nn import GCNConv

import graphkeel as gk
from graphkeel.graph.changes import changed_nodes
from graphkeel.graph.rows import softmax
from graphkeel.reconstruct.decide import DecideSettings, _grown, decide, decide_again
from graphkeel.reconstruct.decide import decide_with_more as with_more
from graphkeel.reconstruct.reconstructor import Reconstructor
from graphkeel.reconstruct.scene import Scene

LARGE = DecideSettings(large=0)


@pytest.fixture(autouse=True)
def every_graph_is_large(monkeypatch):
    rule = Reconstructor._rule

    def large(rec):
        return replace(rule(rec), decide=LARGE)

    monkeypatch.setattr(Reconstructor, "_rule", large)


@pytest.fixture(scope="module")
def scene(task) -> Scene:
    data, frozen = task.to_data(), trained(task)
    logits = frozen.logits(data.x, data.edge_index).numpy()
    return Scene(logits, data.x.numpy(), data.edge_index.numpy())


def split_labels(task, n_more=5):
    nodes = np.random.default_rng(0).permutation(len(task.y))[: 60 + n_more]
    classes = task.y.numpy()[nodes]
    return known(nodes[:60], classes[:60], 3), known(nodes, classes, 3)


def test_small_graphs_are_decided_from_nothing(scene, task) -> None:
    labels, _ = split_labels(task)
    assert decide(scene, labels).resumable is None
    assert DecideSettings().at_size(N) == DecideSettings()
    assert DecideSettings().at_size(10**6).folds == DecideSettings().large_folds


def test_nothing_changed_decides_the_same(scene, task) -> None:
    labels, _ = split_labels(task)
    made = decide(scene, labels, settings=LARGE)
    again = decide_again(scene, labels, made.rounds, LARGE, made.resumable)
    np.testing.assert_allclose(again.posterior, made.posterior, atol=1e-4)
    assert set(again.evidence) == set(made.resumable.names)


@pytest.mark.parametrize("balanced", [False, True])
def test_labels_are_judged_by_evidence_they_had_no_part_in(scene, task, balanced) -> None:
    """Whatever class a new label has, what judges it is the same."""
    before, more = split_labels(task)
    made = decide(scene, before, settings=LARGE)
    found = with_more(scene, more, made, settings=LARGE, balanced=balanced)
    assert found.held.shape == (65, 3)
    other = replace(more, classes=np.append(before.classes, (more.classes[60:] + 1) % 3))
    rows = [with_more(scene, one, made, settings=LARGE) for one in (more, other)]
    evidence = [one.resumable.judged.evidence for one in rows]
    np.testing.assert_array_equal(*evidence)
    np.testing.assert_array_equal(evidence[0][:, :60], made.resumable.judged.evidence)
    taken_in = found.scores[more.nodes[60:]].argmax(axis=1) == more.classes[60:]
    assert taken_in.all()


def test_nodes_that_have_come_begin_with_what_their_neighbours_are(scene) -> None:
    before = np.log(softmax(scene.logits[:-4]))
    grown = np.exp(_grown(scene, before))
    assert np.array_equal(grown[:-4], np.exp(before))
    np.testing.assert_allclose(grown.sum(axis=1), 1.0, atol=1e-5)
    row = scene.matrix[N - 1].toarray()[0][: N - 4]
    near = row @ grown[:-4]
    np.testing.assert_allclose(grown[-1], near / near.sum(), atol=1e-5)


@pytest.mark.parametrize("name", ["sgc", "gcn"])
def test_a_loaded_one_goes_on_as_the_one_that_stayed(task, data, tmp_path, name) -> None:
    model = trained(task, name).model
    stayed = Reconstructor(model).fit(data)
    stayed.save(tmp_path)
    later = grown_graph(data)
    back = gk.load(tmp_path, model).update(later)
    stayed.update(later)
    nodes = torch.tensor([N, N + 1])
    for _ in range(2):
        assert torch.equal(back.features_, stayed.features_)
        assert torch.equal(back.posterior_, stayed.posterior_)
        back.feedback(nodes, later.y[nodes])
        stayed.feedback(nodes, later.y[nodes])
        nodes = nodes + 2
    assert back.guard_ == stayed.guard_
    assert "before the graph was updated" not in back.guard_.reason


@pytest.mark.parametrize("name", ["sgc", "gcn", "sage"])
def test_nodes_that_have_not_changed_keep_what_was_decided(task, data, name) -> None:
    """All others are decided by the same weights; where nothing has changed, nothing does."""
    rec = Reconstructor(trained(task, name).model).fit(data)
    decided, features = rec.posterior_, rec.features_
    rec.update(data)
    torch.testing.assert_close(rec.posterior_, decided, atol=1e-5, rtol=0)
    later = grown_graph(data)
    rec.update(later)
    x, matrix = later.x.numpy(), rec._context.scene.matrix
    changed = changed_nodes(x, matrix, rec._resumable.digests, LARGE.newly)
    assert {3, 77, *range(N, N + NEW)} <= set(changed.tolist()) and len(changed) < 2 * NEW + 10
    kept = np.setdiff1d(np.arange(N), changed)
    torch.testing.assert_close(rec.posterior_[kept], decided[kept], atol=1e-5, rtol=0)
    assert features.shape[0] + NEW == rec.features_.shape[0]


def test_what_edges_carry_changes_every_node(data) -> None:
    class Weighed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.conv = GCNConv(data.x.shape[1], 3)

        def forward(self, x, edge_index, edge_weight):
            return self.conv(x, edge_index, edge_weight)

    ones = torch.ones(data.num_edges)
    rec = Reconstructor(Weighed().eval()).fit(data, edge_weight=ones)
    decided = rec.posterior_
    weights = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0))
    rec.update(data, edge_weight=weights)
    assert not torch.allclose(rec.posterior_, decided, atol=1e-3)


@pytest.mark.parametrize("name", ["sgc", "gcn"])
def test_it_agrees_with_what_is_made_from_nothing(task, data, name) -> None:
    rec = Reconstructor(trained(task, name).model).fit(data)
    later = grown_graph(data)
    whole = Reconstructor(rec.model).fit(data)
    whole._resumable = None
    for one in (rec, whole):
        one.update(later)
    decided = [one.posterior_.argmax(dim=1) for one in (rec, whole)]
    assert (decided[0] == decided[1]).float().mean() >= 0.97
    assert (rec.predict(later) == decided[0]).float().mean() >= 0.97
    nodes = torch.arange(N, N + NEW)
    for one in (rec, whole):
        one._resumable = rec._resumable if one is rec else None
        one.feedback(nodes, later.y[nodes])
    decided = [one.posterior_.argmax(dim=1) for one in (rec, whole)]
    assert (decided[0] == decided[1]).float().mean() >= 0.95


def test_many_labels_and_other_ones_choose_anew(model, task, data) -> None:
    rec = Reconstructor(model).fit(data)
    chosen = rec._resumable.chosen
    free = (~(data.train_mask | data.val_mask)).nonzero().flatten()
    rec.feedback(free[:2], task.y[free[:2]])
    assert rec._resumable.chosen == chosen  # a few: the choice of before goes on
    rec.feedback(free[:2], (task.y[free[:2]] + 1) % 3)
    assert rec._resumable.chosen == chosen + 2  # they were wrong
    rec.feedback(free[2:90], task.y[free[2:90]])
    assert rec._resumable.chosen == chosen + 90
    alone = Reconstructor(model).fit(data, nodes=rec.labels_.nodes, labels=rec.labels_.classes)
    assert rec._resumable.chosen == alone._resumable.chosen
