"""Large graphs: a label changes its neighbourhood alone, and the state after it is that of a fresh
start."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models import GCN, networks, sparse_hops
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct import chooser as chooser_module
from graphkeel.reconstruct.candidates.evidence import FLOOR
from graphkeel.reconstruct.chooser import Chooser
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.labels import Labels, known_labels
from graphkeel.reconstruct.large import spread as spread_module
from graphkeel.reconstruct.large.blends import beliefs_of, posterior_of, write_blend, write_shares
from graphkeel.reconstruct.large.linear import LinearModel, PropagatedRows
from graphkeel.reconstruct.large.local import LOCAL, LocalBuilder, LocalContext
from graphkeel.reconstruct.large.spread import spread
from graphkeel.reconstruct.reconstructor import Reconstructor


@pytest.fixture(scope="module")
def fixed(task, model):
    context = Context(FrozenModel(model), task.x, task.edge_index)
    return LocalContext(context, LinearModel.of(context.frozen, task.edge_index, task.n_nodes))


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(chooser_module, "LARGE", 10)


def labels_from(draw, n_nodes: int) -> Labels:
    chosen = draw(
        st.dictionaries(st.integers(0, n_nodes - 1), st.integers(0, 2), min_size=1, max_size=40)
    )
    return Labels(torch.tensor(list(chosen)), torch.tensor(list(chosen.values())), 3)


@given(st.data())
@settings(deadline=None, max_examples=25)
def test_any_way_to_the_same_labels_leads_to_the_same_candidates(fixed, data):
    first, second, last = (labels_from(data.draw, 600) for _ in range(3))
    moved = LocalBuilder(fixed, first)
    moved.update_labels(second)
    moved.update_labels(last)
    fresh = LocalBuilder(fixed, last)
    for candidate in LOCAL:
        torch.testing.assert_close(
            moved.carried((candidate,)), fresh.carried((candidate,)), rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(
            moved.features((candidate,)), fresh.features((candidate,)), rtol=1e-4, atol=1e-4
        )


@given(st.data())
@settings(deadline=None, max_examples=10)
def test_feedback_equals_a_fit_on_all_labels(task, model, data):
    pool = task.test_mask.nonzero().flatten()
    new = pool[
        torch.tensor(
            data.draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=60, unique=True))
        )
    ]
    together = task.to_data()
    together.train_mask[new], together.test_mask[new] = True, False
    before, chooser_module.LARGE = chooser_module.LARGE, 10
    try:
        rec = Reconstructor(model, labels="train").fit(task.to_data())
        for part in new.chunk(3):
            rec.feedback(part, task.y[part])
        fresh = Reconstructor(model, labels="train").fit(together)
    finally:
        chooser_module.LARGE = before
    assert rec.guard_.chosen == fresh.guard_.chosen
    assert [s.accuracy for s in rec.guard_.scores] == [s.accuracy for s in fresh.guard_.scores]
    torch.testing.assert_close(rec.features_, fresh.features_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("candidate", LOCAL, ids=lambda one: one.name)
def test_what_the_hops_carry_is_what_the_model_says_of_the_features(fixed, task, candidate):
    builder = LocalBuilder(fixed, known_labels(task, task.train_mask.nonzero().flatten()))
    asked = fixed.context.logits_for(builder.features((candidate,)))
    carried = fixed.model.everywhere(builder.carried((candidate,)))
    # diffusion stops within a thousandth of its fixed point, in either space
    tolerance = 1e-4 if candidate.name.startswith("diffuse") is False else 5e-3
    assert (asked - carried).abs().max() <= tolerance * asked.abs().max()
    assert torch.equal(builder.predict((candidate,)), carried.argmax(dim=1))


def test_propagated_rows_see_what_all_nodes_see(fixed, task, monkeypatch):
    nodes = task.val_mask.nonzero().flatten()
    rows, carried = fixed.model.rows_at(nodes), fixed.projected
    expected = fixed.context.logits[nodes]
    torch.testing.assert_close(rows(carried[rows.looked_at]), expected, rtol=1e-4, atol=1e-5)
    few = rows.at(nodes[3:7])
    torch.testing.assert_close(few(carried[few.looked_at]), expected[3:7], rtol=1e-4, atol=1e-5)
    one = PropagatedRows(fixed.model, nodes[:1])
    assert len(one.looked_at) < len(carried)
    torch.testing.assert_close(one(carried[one.looked_at]), expected[:1], rtol=1e-4, atol=1e-5)
    monkeypatch.setattr("graphkeel.reconstruct.large.linear.MOST_ROWS", 2)
    new = PropagatedRows(fixed.model, nodes)
    torch.testing.assert_close(new(carried[new.looked_at]), expected, rtol=1e-4, atol=1e-5)


def spread_from(propagator: Propagator, nodes, amounts) -> tuple[np.ndarray, np.ndarray]:
    out = np.zeros((propagator.n_nodes, 2))
    touched = spread(propagator.arrays(), np.asarray(nodes), amounts, 0.1, out)
    return out, touched


@pytest.mark.parametrize("many", [1, 10**9])  # sums for all rows, or from the frontier alone
def test_labels_spread_by_the_first_terms_of_personalised_pagerank(task, monkeypatch, many):
    monkeypatch.setattr(spread_module, "MANY", many)
    propagator = Propagator(task.edge_index, task.n_nodes)
    amounts = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.3, -2.0]])
    start = torch.zeros(task.n_nodes, 2)
    start[[7, 300, 8]] = amounts
    steps = spread_module.steps_for(task.n_nodes, propagator.matrix.nnz)
    found, touched = spread_from(propagator, [7, 300, 8], amounts.numpy())
    term = 0.1 * start
    expected = term
    for _ in range(steps):
        term = 0.9 * propagator(term)
        expected = expected + term
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)
    assert not found[~touched].any()


def test_a_label_reaches_its_neighbourhood_alone():
    n = 5000  # a ring: whoever is k steps away has received less than 0.9^k
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    _, touched = spread_from(Propagator(ring, n), [2500], np.ones((1, 2)))
    assert 10 < touched.sum() < 200
    assert np.abs(np.flatnonzero(touched) - 2500).max() < 100


def test_auto_goes_local_on_large_graphs_only_and_for_linear_models_only(
    task, model, everything_is_large
):
    def candidates(network, method="auto"):
        context = Context(FrozenModel(network), task.x, task.edge_index)
        return Chooser(context, method, 0.05, task.train_mask, 0).candidates

    assert candidates(model) == LOCAL
    assert candidates(model, "prototype") != LOCAL
    assert candidates(GCN(8, 3)) != LOCAL


def test_without_validation_known_labels_judge_by_cross_fitting(task, model, everything_is_large):
    data = task.to_data()
    data.val_mask[:] = False
    rec = Reconstructor(model).fit(data)
    assert "cross-fitted" in rec.guard_.source and len(rec.guard_.scores) == 1 + len(LOCAL)


def test_a_fit_asks_the_model_once_and_makes_one_matrix(
    task, model, everything_is_large, monkeypatch
):
    made = []
    make = sparse_hops.normalise_as_given
    monkeypatch.setattr(
        sparse_hops, "normalise_as_given", lambda edges, n: made.append(n) or make(edges, n)
    )
    monkeypatch.setattr(networks, "MOST_MESSAGES", 0)
    rec = Reconstructor(model).fit(task.to_data())
    assert made.count(task.n_nodes) == 1  # the others are those of the head's single nodes
    assert torch.equal(rec._context.logits, FrozenModel(model)(task.x, task.edge_index))


@pytest.mark.parametrize("with_beliefs", [True, False])
def test_blends_are_those_of_the_formulas(with_beliefs) -> None:
    generator = torch.Generator().manual_seed(0)
    near = torch.rand(500, 4, generator=generator, dtype=torch.float64) - 0.1
    logits = torch.randn(500, 4, generator=generator)
    beliefs = beliefs_of(logits)
    torch.testing.assert_close(beliefs, logits.softmax(dim=1).clamp_min(FLOOR))
    known = torch.randint(-1, 4, (500,), generator=generator)
    shares = torch.empty(500, 4)
    write_shares(near, shares)
    wanted = near.float().clamp_min(0.0) + 1e-6
    torch.testing.assert_close(shares, (wanted / wanted.sum(1, keepdim=True)).clamp_min(FLOOR))
    posterior = posterior_of(shares, beliefs if with_beliefs else None, known)
    wanted = (shares * beliefs).sqrt() if with_beliefs else shares
    wanted = wanted / wanted.sum(1, keepdim=True)
    named = known >= 0
    wanted[named] = torch.nn.functional.one_hot(known[named], 4).float()
    torch.testing.assert_close(posterior, wanted)
    anchors = torch.randn(4, 30, generator=generator)
    features = torch.empty(500, 30)
    write_blend(posterior, anchors, features)
    torch.testing.assert_close(features, posterior @ anchors)


def test_some_rows_are_blended_as_all_are() -> None:
    generator = torch.Generator().manual_seed(0)
    posterior = torch.rand(500, 4, generator=generator)
    anchors = torch.randn(4, 30, generator=generator)
    rows = torch.randint(0, 500, (37,), generator=generator)
    features = torch.empty(500, 30)
    write_blend(posterior, anchors, features)
    some = torch.empty(37, 30)
    write_blend(posterior[rows], anchors, some)
    assert torch.equal(some, features[rows])
