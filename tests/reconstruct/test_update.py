"""`update`: a graph that has grown or changed gives what a fresh fit with the same choice gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import GCNConv

from graphkeel.core.errors import DataError
from graphkeel.graph.fingerprint import Fingerprint
from graphkeel.graph.propagate import normalise, normalise_as_given
from graphkeel.graph.propagate.adjacency import grown, grown_as_given, near_ends
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct import chooser as chooser_module
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.large.linear import LinearModel
from graphkeel.reconstruct.large.local import LocalBuilder, LocalContext
from graphkeel.reconstruct.reconstructor import Reconstructor

pytestmark = pytest.mark.usefixtures("small_pool")


N = 600
NEW = 12


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    if request.param == "large":
        monkeypatch.setattr(chooser_module, "LARGE", 10)
    return request.param


@pytest.fixture(scope="module")
def large_fit(task, model, small_pool):
    """A fit by the candidates of large graphs, and its graph."""
    data = task.to_data()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chooser_module, "LARGE", 10)
        yield Reconstructor(model).fit(data), data


def grown_graph(data, generator):
    """New nodes, edges from and between them, other features at some old nodes."""
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


def fresh(rec, model, data):
    """A fit on the new graph that is made to use the choice and the anchors of another."""
    other = Reconstructor(model, **{k: v for k, v in rec.get_params().items() if k != "model"})
    other.fit(data)
    other._context.typical_strength = rec._context.typical_strength
    other._context.use_anchors(rec.anchors_)
    other._chooser.reset()
    other._choose(rec.labels_, rec._validation)
    other._chooser.members = rec._chooser.members
    return other._chooser.features()


def test_growth_equals_a_fresh_fit(task, model, size) -> None:
    data = task.to_data()
    rec = Reconstructor(model).fit(data)
    assert (rec._chooser.local_state is not None) == (size == "large")
    later = grown_graph(data, torch.Generator().manual_seed(0))
    rec.update(later)
    assert rec.features_.shape == (N + NEW, 8)
    torch.testing.assert_close(rec.features_, fresh(rec, model, later), rtol=1e-5, atol=1e-5)
    assert rec.predict(later).shape == (N + NEW,)
    with pytest.raises(DataError, match="made for a graph"):
        rec.predict(data)
    nodes = later.test_mask.nonzero().flatten()[:40]
    rec.feedback(nodes, later.y[nodes])
    assert rec.predict_sets(later).shape == (N + NEW, 3)


@pytest.mark.parametrize("method", ["replace", "diffuse", "prototype"])
def test_every_method(task, model, method) -> None:
    data = task.to_data()
    rec = Reconstructor(model, method=method).fit(data)
    later = grown_graph(data, torch.Generator().manual_seed(1))
    rec.update(later)
    torch.testing.assert_close(rec.features_, fresh(rec, model, later), rtol=1e-5, atol=1e-5)


def test_every_local_candidate(task, model, monkeypatch) -> None:
    monkeypatch.setattr(chooser_module, "LARGE", 10)
    data = task.to_data()
    later = grown_graph(data, torch.Generator().manual_seed(2))
    for candidate in chooser_module.LOCAL:
        rec = Reconstructor(model).fit(data)
        rec._chooser.members = (candidate,)
        rec.update(later)
        torch.testing.assert_close(rec.features_, fresh(rec, model, later), rtol=1e-4, atol=1e-4)


def changed_at_random(data, generator):
    """Some of: new nodes, new edges (repeated ones and loops among them), other features, edges
    taken away."""
    later = data.clone()
    n = data.num_nodes

    def drawn(most: int) -> int:
        return int(torch.randint(0, most + 1, (1,), generator=generator))

    n_new = drawn(4)
    later.x = torch.cat([data.x, torch.randn(n_new, data.x.shape[1], generator=generator)])
    later.x[torch.randint(0, n + n_new, (drawn(3),), generator=generator)] += 0.5
    if drawn(2) == 0:
        kept = torch.rand(data.edge_index.shape[1], generator=generator) > 0.02
        later.edge_index = data.edge_index[:, kept]
    added = torch.randint(0, n + n_new, (2, drawn(6)), generator=generator)
    both_ways = torch.cat([added, added.flip(0)], dim=1) if drawn(1) else added
    later.edge_index = torch.cat([later.edge_index, both_ways], dim=1)
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        later[name] = None
    return later


def from_nothing(rec, model, data):
    """The builder of the same choice on the graph as it is now."""
    context = Context(FrozenModel(model), data.x, data.edge_index)
    context.typical_strength = rec._context.typical_strength
    context.use_anchors(rec.anchors_)
    linear = LinearModel.of(context.frozen, data.edge_index, data.num_nodes)
    return LocalBuilder(LocalContext(context, linear), rec.labels_)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=25)
def test_any_changes_one_after_the_other(large_fit, model, seed) -> None:
    generator = torch.Generator().manual_seed(seed)
    fitted, data = large_fit
    rec = copy.deepcopy(fitted)
    choices = [(), *((one,) for one in chooser_module.LOCAL)]
    rec._chooser.members = choices[seed % len(choices)]
    for _ in range(3):
        data = changed_at_random(data, generator)
        rec.update(data)
        expected = from_nothing(rec, model, data)
        assert torch.equal(rec._context.x, data.x)
        assert torch.equal(rec._context.edge_index, data.edge_index)
        logits = expected.context.logits
        torch.testing.assert_close(rec._context.logits, logits, rtol=1e-5, atol=1e-5)
        features = expected.features(rec._chooser.members)
        torch.testing.assert_close(rec.features_, features, rtol=1e-5, atol=1e-5)
        assert rec._fingerprint == Fingerprint.of(data.x, data.edge_index)


def test_rechoose_judges_on_the_new_graph(large_fit, model) -> None:
    fitted, data = large_fit
    rec = copy.deepcopy(fitted)
    later = grown_graph(data, torch.Generator().manual_seed(0))
    rec.update(later, rechoose=True)
    assert "before the graph was updated" not in rec.guard_.reason
    again = Reconstructor(model).fit(later)
    assert [one.name for one in rec.guard_.scores] == [one.name for one in again.guard_.scores]
    torch.testing.assert_close(rec._context.logits, again._context.logits, rtol=1e-4, atol=1e-4)


def test_edges_taken_away_and_reordered(task, model, size) -> None:
    data = task.to_data()
    rec = Reconstructor(model).fit(data)
    later = data.clone()
    later.edge_index = data.edge_index[:, 50:].flip(1).contiguous()
    rec.update(later)
    torch.testing.assert_close(rec.features_, fresh(rec, model, later), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        rec._context.logits, model.eval()(later.x, later.edge_index), rtol=1e-4, atol=1e-4
    )


def test_a_local_change_is_computed_locally(task, model, monkeypatch) -> None:
    monkeypatch.setattr(chooser_module, "LARGE", 10)
    data = task.to_data()
    rec = Reconstructor(model).fit(data)
    before = rec._context.logits.clone()
    later = data.clone()
    later.x[5] += 1.0
    rec.update(later)
    moved = (rec._context.logits != before).any(dim=1)
    assert 0 < int(moved.sum()) < N / 2
    torch.testing.assert_close(
        rec._context.logits, model.eval()(later.x, later.edge_index), rtol=1e-4, atol=1e-4
    )


def test_nothing_changed_changes_nothing(task, model, size) -> None:
    data = task.to_data()
    rec = Reconstructor(model).fit(data)
    before = rec.features_.clone()
    rec.update(data)
    assert torch.equal(rec.features_, before)
    assert "judged before the graph was updated" in rec.guard_.reason


def test_grown_matrices_are_those_of_all_edges() -> None:
    generator = torch.Generator().manual_seed(0)
    old = torch.randint(0, 50, (2, 60), generator=generator)
    added = torch.randint(0, 60, (2, 12), generator=generator)
    together = torch.cat([old, added], dim=1).numpy()
    near = near_ends(normalise(old.numpy(), 50), added.numpy(), 60)
    for make, grow in ((normalise, grown), (normalise_as_given, grown_as_given)):
        before = make(old.numpy(), 50)
        was = np.zeros((60, 60), dtype=np.float32)
        was[:50, :50] = before.toarray()
        growth = grow(before, added.numpy(), 60, near)
        growth.write()
        found, changed = growth.matrix, growth.changed
        expected = make(together, 60)
        assert (changed >= (expected.toarray() != was).any(axis=1)).all()
        assert changed[50:].all() and not changed.all()
        for name in ("indptr", "indices", "data"):
            assert (getattr(found, name) == getattr(expected, name)).all()


def test_matrices_grow_again_and_again_in_their_memory() -> None:
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(0, 300, (2, 2000), generator=generator)
    matrices = [normalise(edges.numpy(), 300), normalise_as_given(edges.numpy(), 300)]
    places = [matrix.data.ctypes.data for matrix in matrices]
    for n in (300, 303, 310, 311):
        # few ends, so that rows without a change lie between; some edges are there already
        added = torch.cat([torch.randint(0, n, (2, 6), generator=generator), edges[:, :2]], dim=1)
        near = near_ends(matrices[0], added.numpy(), n)
        edges = torch.cat([edges, added], dim=1)
        for i, (make, grow) in enumerate(
            ((normalise, grown), (normalise_as_given, grown_as_given))
        ):
            growth = grow(matrices[i], added.numpy(), n, near)
            growth.write()
            matrices[i] = growth.matrix
            assert matrices[i].data.ctypes.data == places[i]
            expected = make(edges.numpy(), n)
            for name in ("indptr", "indices", "data"):
                assert (getattr(matrices[i], name) == getattr(expected, name)).all()


def test_a_grown_fingerprint_is_that_of_the_graph(monkeypatch) -> None:
    monkeypatch.setattr("graphkeel.graph.fingerprint.ROWS", 7)
    monkeypatch.setattr("graphkeel.graph.fingerprint.EDGES", 11)
    x = torch.randn(40, 3)
    edges = torch.randint(0, 40, (2, 90))
    before = Fingerprint.of(x, edges)
    later = torch.cat([x, torch.randn(5, 3)])
    later[20] += 1
    more = torch.cat([edges, torch.randint(0, 45, (2, 11))], dim=1)
    same = torch.ones(40, dtype=torch.bool)
    same[20] = False
    found = Fingerprint.of(later, more, before=before, same_nodes=same, same_edges=90)
    assert found == Fingerprint.of(later, more)
    assert found.difference(before) == "40 nodes instead of 45"


def test_what_cannot_be_the_same_graph_is_refused(task, model) -> None:
    data = task.to_data()
    rec = Reconstructor(model).fit(data)
    fewer = data.subgraph(torch.arange(N - 1))
    with pytest.raises(DataError, match="keeps the ids of all 600 nodes"):
        rec.update(fewer)
    wider = data.clone()
    wider.x = torch.cat([data.x, data.x], dim=1)
    with pytest.raises(DataError, match="the 8 features"):
        rec.update(wider)


def test_edge_weights_are_asked_for_again(task) -> None:
    torch.manual_seed(0)
    conv = GCNConv(8, 3)
    data = task.to_data()
    weight = torch.rand(data.edge_index.shape[1])
    rec = Reconstructor(conv).fit(data, edge_weight=weight)
    later = grown_graph(data, torch.Generator().manual_seed(0))
    with pytest.raises(DataError, match="fitted with edge_weight"):
        rec.update(later)
    more = torch.cat([weight, torch.rand(80)])
    rec.update(later, edge_weight=more)
    assert rec.predict(later).shape == (N + NEW,)
