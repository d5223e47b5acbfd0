"""`update`: a graph that has grown gets what a fresh context with the same weights gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

import graphkeel as gk
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.units import relative_change
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import Rule, held_away, known_from, written
from graphkeel.reconstruct.decide import decide_again
from graphkeel.reconstruct.reconstructor import Reconstructor
from graphkeel.reconstruct.steer import SteerSettings

N = 600
NEW = 12


def grown_graph(data, seed=0):
    """New nodes, edges from and between them, other features at some old nodes."""
    generator = torch.Generator().manual_seed(seed)
    later = data.clone()
    later.x = torch.cat([data.x, torch.randn(NEW, data.x.shape[1], generator=generator)])
    later.x[[3, 77]] += 1.0
    ends = torch.randint(0, N, (2, 40), generator=generator)
    ends[0] = N + torch.arange(40) % NEW
    later.edge_index = torch.cat([data.edge_index, ends, ends.flip(0)], dim=1)
    later.y = torch.cat([data.y, torch.zeros(NEW, dtype=torch.long)])
    for name in ("train_mask", "val_mask", "test_mask"):
        later[name] = torch.cat([data[name], torch.zeros(NEW, dtype=torch.bool)])
    return later


def shrunk_graph(data, seed=0):
    """Edges taken away, the others in another order."""
    later = data.clone()
    later.edge_index = data.edge_index[:, 50:].flip(1).contiguous()
    return later


def fresh(rec, model, data):
    """The weights of one on a context made from nothing."""
    context = Context(FrozenModel(model), data.x, data.edge_index)
    known = known_from(rec.labels_, rec._validation, rec._trained_on)
    known, _ = held_away(known, Rule(holdout=rec.guard == "holdout"))
    decision = decide_again(context.scene, known, rec._rounds)
    return decision, *written(context, decision, Rule().steer)


@pytest.mark.parametrize("options", [{}, {"labels": "train"}, {"guard": "holdout"}])
@pytest.mark.parametrize("change", [grown_graph, shrunk_graph])
def test_it_equals_a_fresh_context_with_the_same_weights(model, data, change, options) -> None:
    rec = Reconstructor(model, **options).fit(data)
    weights = rec._rounds
    later = change(data)
    rec.update(later)
    decision, features, _ = fresh(rec, model, later)
    assert rec._rounds is weights
    assert np.array_equal(rec.posterior_.numpy(), decision.posterior)
    assert torch.equal(rec.features_, features)
    assert rec.predict(later).shape == (len(later.x),)
    assert rec.change_.shape == (len(later.x),)
    assert rec.guard_.reason.endswith("(judged before the graph was updated)")
    with pytest.raises(DataError, match="graph"):
        rec.predict(data)


@pytest.mark.parametrize("change", [grown_graph, shrunk_graph])
def test_a_large_graph_is_steered_on_from_the_features_in_use(
    model, data, change, monkeypatch
) -> None:
    few = SteerSettings(work=N * 20)  # as if the graph were large
    monkeypatch.setattr(Reconstructor, "_rule", lambda self: Rule(steer=few))
    rec = Reconstructor(model).fit(data)
    later = change(data)
    rec.update(later)
    decision, _, steered = fresh(rec, model, later)
    assert np.array_equal(rec.posterior_.numpy(), decision.posterior)
    answers = rec.predict(later)
    wanted = rec.posterior_.argmax(dim=1)
    assert (answers == wanted).float().mean() >= steered.agreement - 0.02
    assert torch.equal(relative_change(rec.features_, later.x), rec.change_)
    # V is about the features as they are now; the first step is the change there was
    assert rec.fall_[0] == pytest.approx(steered.fall[0])
    assert rec.fall_[1] < 0.2 * rec.fall_[0]
    assert list(rec.fall_) == sorted(rec.fall_, reverse=True)
    assert rec._passes <= few.again < steered.passes
    rec.feedback([1, 2], later.y[[1, 2]])
    assert rec.fall_[1] < 0.2 * rec.fall_[0]


def test_labels_stay_and_later_ones_are_taken_in(model, data) -> None:
    rec = Reconstructor(model).fit(data)
    before = rec.labels_
    later = grown_graph(data)
    rec.update(later)
    assert rec.labels_ is before
    nodes = torch.tensor([N, N + 1])
    rec.feedback(nodes, later.y[nodes])
    assert len(rec.labels_) == len(before) + 2
    assert "before the graph was updated" not in rec.guard_.reason
    assert rec.predict_sets(later).shape == (N + NEW, 3)
    alone = Reconstructor(model).fit(later, nodes=nodes, labels=later.y[nodes])
    assert torch.equal(rec.features_, alone.features_)
    rec.reset()
    assert torch.equal(rec.features_, Reconstructor(model).fit(later).features_)


def test_labels_and_masks_of_the_new_graph_are_not_looked_at(model, data) -> None:
    later = grown_graph(data)
    bare = later.clone()
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        bare[name] = None
    one, two = (Reconstructor(model).fit(data).update(graph) for graph in (later, bare))
    assert torch.equal(one.features_, two.features_)


def test_rechoose_is_a_fit_on_the_new_graph(model, data) -> None:
    later = grown_graph(data)
    rec = Reconstructor(model).fit(data).update(later, rechoose=True)
    again = Reconstructor(model).fit(later)
    assert rec.guard_ == again.guard_
    assert torch.equal(rec.features_, again.features_)


@pytest.mark.parametrize("method", ["replace", "diffuse"])
def test_methods_by_name_are_chosen_anew(model, data, method) -> None:
    later = grown_graph(data)
    rec = Reconstructor(model, method=method).fit(data).update(later)
    again = Reconstructor(model, method=method).fit(later)
    assert torch.equal(rec.features_, again.features_)


def test_nothing_changed_changes_nothing(model, data) -> None:
    rec = Reconstructor(model).fit(data)
    before = rec.features_.clone()
    rec.update(data).update(data)
    torch.testing.assert_close(rec.features_, before, atol=1e-4, rtol=1e-4)
    assert rec.guard_.reason.count("judged before the graph was updated") == 1


def test_what_was_refused_stays_refused(model, data) -> None:
    rec = Reconstructor(model, risk=1e-300).fit(data)
    later = grown_graph(data)
    rec.update(later)
    assert rec.guard_.left_alone
    assert torch.equal(rec.features_, later.x)
    assert rec.posterior_.shape == (N + NEW, 3)


def test_what_cannot_be_the_same_graph_is_refused_and_changes_nothing(model, data) -> None:
    rec = Reconstructor(model).fit(data)
    before = rec.predict(data)
    with pytest.raises(DataError, match="keeps the ids of all 600 nodes"):
        rec.update(data.subgraph(torch.arange(N - 1)))
    wider = data.clone()
    wider.x = torch.cat([data.x, data.x], dim=1)
    with pytest.raises(DataError, match="the 8 features"):
        rec.update(wider)
    assert torch.equal(rec.predict(data), before)


def test_edge_weights_are_asked_for_again(data) -> None:
    torch.manual_seed(0)
    conv = GCNConv(8, 3)
    weight = torch.rand(data.edge_index.shape[1])
    rec = Reconstructor(conv).fit(data, edge_weight=weight)
    later = grown_graph(data)
    with pytest.raises(DataError, match="fitted with edge_weight"):
        rec.update(later)
    rec.update(later, edge_weight=torch.cat([weight, torch.rand(80)]))
    assert rec.predict(later).shape == (N + NEW,)


# ---- a week later, in a new process


@pytest.mark.parametrize("options", [{}, {"labels": "train"}, {"guard": "holdout"}])
def test_a_loaded_one_follows_its_graph_without_the_graph_of_then(
    model, data, tmp_path, options
) -> None:
    stayed = Reconstructor(model, **options).fit(data)
    stayed.save(tmp_path)
    later = grown_graph(data)
    back = gk.load(tmp_path, model).update(later)
    stayed.update(later)
    for name in ("features_", "posterior_", "change_"):
        assert torch.equal(getattr(back, name), getattr(stayed, name)), name
    assert back.guard_ == stayed.guard_
    assert torch.equal(back.predict(later), stayed.predict(later))
    assert torch.equal(back.suggest(5), stayed.suggest(5))
    nodes = torch.tensor([N, N + 1])
    for rec in (back, stayed):
        rec.feedback(nodes, later.y[nodes])
    assert torch.equal(back.features_, stayed.features_)
    assert torch.equal(back.reset().features_, stayed.reset().features_)


def test_a_loaded_one_asks_for_what_belongs_to_a_graph(data, tmp_path) -> None:
    torch.manual_seed(0)
    conv = GCNConv(8, 3)
    weight = torch.rand(data.edge_index.shape[1])
    Reconstructor(conv).fit(data, edge_weight=weight).save(tmp_path)
    later = grown_graph(data)
    back = gk.load(tmp_path, conv)
    with pytest.raises(DataError, match="fitted with edge_weight"):
        back.update(later)
    back.update(later, edge_weight=torch.cat([weight, torch.rand(80)]))
    assert back.predict(later).shape == (N + NEW,)


def test_a_grown_graph_is_sent_to_update(model, data, tmp_path) -> None:
    rec = Reconstructor(model).fit(data)
    with pytest.raises(DataError, match=r"update\(data\)"):
        rec.predict(grown_graph(data))
    with pytest.raises(DataError, match="call update"):
        rec.predict(shrunk_graph(data))
    rec.save(tmp_path)
    with pytest.raises(ConfigError, match=r"update\(data\)"):
        gk.load(tmp_path, model).suggest(3)


def test_what_is_stored_is_as_large_as_it_says(model, data, tmp_path) -> None:
    Reconstructor(model).fit(data).save(tmp_path)
    size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    promised = 4 * N * (data.x.shape[1] + 3 + 1)
    assert promised <= size <= promised + 60_000  # labels, and JSON


def test_evidence_without_a_weight_is_not_computed_again(model, data) -> None:
    rec = Reconstructor(model).fit(data)
    used = {name for one in rec._rounds for name, weight in one.weights.items() if weight > 0}
    assert used < set(rec._rounds[-1].weights)
    rec.update(data)
    assert set(rec._decision.evidence) == used
