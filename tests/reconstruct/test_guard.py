"""The guard: one test, by numbers worked out by hand; `risk` means what it says."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm
from torch_geometric.data import Data
from torch_geometric.nn import SGConv

import graphkeel as gk
from graphkeel.reconstruct import GuardDecision, mid_p
from graphkeel.reconstruct.guard import balanced, compare, weighted_p


@given(st.integers(0, 60), st.integers(0, 60))
def test_mid_p_is_the_binomial_tail_with_ties_counted_half(wins, losses) -> None:
    n = wins + losses
    expected = binom.sf(wins, n, 0.5) + 0.5 * binom.pmf(wins, n, 0.5)
    assert mid_p(wins, losses) == pytest.approx(expected)


def test_mid_p_by_hand() -> None:
    assert mid_p(0, 0) == 0.5
    assert mid_p(1, 0) == 0.25  # half of the chance of one in one
    assert mid_p(0, 1) == 0.75
    assert mid_p(2, 0) == 0.125
    assert mid_p(7, 3) + mid_p(3, 7) == pytest.approx(1.0)
    assert mid_p(3000, 2800) == pytest.approx(norm.sf(200 / 5800**0.5), abs=1e-4)


def test_weighted_p_by_hand() -> None:
    """Weights 3, 1, 1: won, lost, tied. Sum 2, spread √10."""
    assert weighted_p(np.array([3.0, -1.0, 0.0])) == pytest.approx(norm.sf(2 / 10**0.5))
    assert weighted_p(np.zeros(4)) == 0.5
    assert weighted_p(np.zeros(0)) == 0.5


def test_weights_decide_where_classes_count_alike() -> None:
    """Six of a class of ninety won, four of a class of ten lost: better, yet not if balanced."""
    classes = np.array([0] * 90 + [1] * 10)
    after = np.ones(100, bool)
    before = np.ones(100, bool)
    before[:6] = False
    after[90:94] = False
    wins, losses, p_value = compare(after, before, None)
    assert (wins, losses) == (6, 4)
    assert p_value == mid_p(6, 4) < 0.5
    weights = np.where(classes == 0, 100 / 180, 100 / 20)
    assert compare(after, before, weights)[2] > 0.9
    assert balanced(after, classes) == pytest.approx(80.0)
    assert balanced(before, classes) == pytest.approx((100 * 84 / 90 + 100) / 2)


def test_a_decision_survives_json(fitted) -> None:
    stored = json.loads(json.dumps(fitted.guard_.to_dict()))
    assert GuardDecision.from_dict(stored) == fitted.guard_
    bare = GuardDecision(True, "because")
    assert GuardDecision.from_dict(json.loads(json.dumps(bare.to_dict()))) == bare


# ---- risk, in fit and adapt alike


def judged(model, data, call: str, **options):
    if call == "fit":
        return gk.Reconstructor(model, **options).fit(data)
    nodes = data.val_mask.nonzero().flatten()[:30]
    return gk.Reconstructor(model, **options).adapt(data, nodes, data.y[nodes])


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("call", ["fit", "adapt"])
def test_a_change_is_kept_up_to_the_risk_and_not_beyond(model, data, call, class_weight) -> None:
    options = {"class_weight": class_weight}
    p_value = judged(model, data, call, risk=1.0, **options).guard_.p_value
    assert 0.0 < p_value < 1.0
    kept = judged(model, data, call, risk=p_value, **options)
    assert kept.guard_.kept and kept.guard_.p_value == p_value
    refused = judged(model, data, call, risk=p_value * (1 - 1e-9), **options)
    assert refused.guard_.left_alone and refused.guard_.p_value == p_value
    assert "left unchanged" in refused.guard_.reason
    assert refused.guard_.accuracy == refused.guard_.untouched
    assert refused.guard_.statement.gain == 0.0


@pytest.mark.parametrize("method", ["auto", "replace", "diffuse"])
def test_refusing_leaves_features_to_the_bit(model, data, method) -> None:
    rec = gk.Reconstructor(model, method=method, risk=1e-300).fit(data)
    assert rec.guard_.left_alone
    assert torch.equal(rec.features_, data.x)
    assert torch.equal(rec.transform(data).x, data.x)
    assert float(rec.change_.abs().max()) == 0.0
    assert rec.fall_ == ()
    untouched = gk.FrozenModel(model)(data.x, data.edge_index)
    assert torch.equal(rec.scores(data), untouched)
    data.x = data.x.double()
    assert torch.equal(rec.transform(data).x, data.x)


def test_a_model_that_is_always_right_is_not_made_worse(task, data) -> None:
    oracle = 5 * torch.nn.functional.one_hot(task.y, 3).float()
    rec = gk.Reconstructor(lambda x, edge_index: x[:, :1] * 0 + oracle).fit(data)
    assert rec.guard_.untouched == 100.0
    assert rec.guard_.losses == 0 or rec.guard_.left_alone
    assert rec.score(data, mask=data.test_mask) == 1.0


def test_counts_add_up(fitted, task) -> None:
    guard = fitted.guard_
    n = int(task.val_mask.sum())
    assert guard.n_labels == n
    assert guard.accuracy - guard.untouched == pytest.approx(100 * (guard.wins - guard.losses) / n)
    assert f"{guard.wins} won, {guard.losses} lost" in guard.reason
    assert 0.0 <= guard.expected <= 100.0


def test_without_a_label_that_judges_it_says_so(model, data) -> None:
    data.val_mask = torch.zeros_like(data.val_mask)
    rec = gk.Reconstructor(model).fit(data)
    assert rec.guard_.kept and rec.guard_.statement is None and rec.guard_.p_value is None
    assert "no label judges here" in rec.guard_.reason
    assert 0.0 < rec.guard_.expected <= 100.0


def test_where_nothing_is_changed_no_word_says_so() -> None:
    """An SGC on constant features and no edge answers every node alike, whatever was decided."""
    x = torch.ones(20, 3)
    data = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.int64))
    model = SGConv(3, 2, K=2).eval()
    rec = gk.Reconstructor(model).fit(data)
    assert torch.equal(rec.features_, x) and rec.guard_.left_alone
    assert rec.guard_.reason.startswith("left unchanged: the model answers as decided")
