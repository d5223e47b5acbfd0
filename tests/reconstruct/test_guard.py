"""The guard: one test, by numbers worked out by hand; `risk` means what it says."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from torch_geometric.data import Data
from torch_geometric.nn import SGConv

import graphkeel as gk
from graphkeel.reconstruct import GuardDecision, probability_of_harm
from graphkeel.reconstruct.guard import (
    GuardSettings,
    balanced,
    believed_share,
    class_weights,
    contests,
)


@given(st.floats(0, 60), st.floats(0, 60), st.floats(0, 1), st.floats(0, 10))
def test_harm_is_the_lower_half_of_a_beta_distribution(wins, losses, believed, trust) -> None:
    after = beta(0.5 + wins + trust * believed, 0.5 + losses + trust * (1 - believed))
    assert probability_of_harm(wins, losses, believed, trust) == pytest.approx(after.cdf(0.5))


def test_harm_by_hand() -> None:
    """With trust 1 in one half the distribution before labels is Beta(1, 1), the uniform one; after
    w wins and l losses, q < 1/2 is as probable as w + 1 heads or more in w + l + 1 fair tosses."""
    assert probability_of_harm(0, 0) == 0.5
    assert probability_of_harm(7, 7, 0.5, 3.0) == 0.5
    assert probability_of_harm(1, 0, 0.5, 1.0) == pytest.approx(1 / 4)
    assert probability_of_harm(0, 1, 0.5, 1.0) == pytest.approx(3 / 4)
    assert probability_of_harm(2, 0, 0.5, 1.0) == pytest.approx(1 / 8)
    assert probability_of_harm(2, 1, 0.5, 1.0) == pytest.approx(5 / 16)
    without = probability_of_harm(3, 1)
    assert probability_of_harm(3, 1, 0.9, 4.0) < without < probability_of_harm(3, 1, 0.1, 4.0)


def test_weighted_contests_count_for_as_many_as_have_their_variance() -> None:
    """Weights 3 won, 1 lost, 5 tied: Kish's size of the first two is (3 + 1)² / (9 + 1) = 1.6."""
    after = np.array([True, False, True])
    before = np.array([False, True, True])
    assert contests(after, before) == (1.0, 1.0)
    assert contests(after, before, np.array([3.0, 1.0, 5.0])) == pytest.approx((1.2, 0.4))
    assert contests(after, before, np.full(3, 7.0)) == pytest.approx((1.0, 1.0))
    assert contests(after, after, np.ones(3)) == (0.0, 0.0)


def test_believed_share_by_hand() -> None:
    """The first node is answered as before; the others would be right with 0.8 + 0.6 + 0.5, the
    untouched model with 0.2 + 0.4 + 0.3."""
    posterior = np.array(
        [[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.5, 0.2, 0.3]], np.float32
    )
    untouched = np.array([0, 0, 1, 2])
    assert believed_share(posterior, untouched) == pytest.approx(1.9 / 2.8)
    assert believed_share(posterior, posterior.argmax(axis=1)) == 0.5


def test_class_weights_count_classes_alike() -> None:
    classes = np.array([0] * 6 + [1] * 2 + [3])
    each = class_weights(classes, 4)
    assert each.sum() == pytest.approx(9)
    sums = [each[classes == label].sum() for label in (0, 1, 3)]
    assert sums == pytest.approx([3.0, 3.0, 3.0])


def test_weights_decide_where_classes_count_alike() -> None:
    """Six of a class of ninety won, four of a class of ten lost: better, yet not if balanced."""
    classes = np.array([0] * 90 + [1] * 10)
    after = np.ones(100, bool)
    before = np.ones(100, bool)
    before[:6] = False
    after[90:94] = False
    assert contests(after, before) == (6.0, 4.0)
    assert probability_of_harm(6, 4) < 0.5
    wins, losses = contests(after, before, class_weights(classes, 2))
    assert wins / losses == pytest.approx((6 / 90) / (4 / 10))
    assert probability_of_harm(wins, losses) > 0.9
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
    harm = judged(model, data, call, risk=1.0, **options).guard_.harm
    assert 0.0 < harm < 1.0
    kept = judged(model, data, call, risk=harm, **options)
    assert kept.guard_.kept and kept.guard_.harm == harm
    refused = judged(model, data, call, risk=harm * (1 - 1e-9), **options)
    assert refused.guard_.left_alone and refused.guard_.harm == harm
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


def test_without_a_label_that_judges_the_posterior_alone_speaks(model, data) -> None:
    data.val_mask = torch.zeros_like(data.val_mask)
    rec = gk.Reconstructor(model).fit(data)
    untouched = gk.FrozenModel(model)(data.x, data.edge_index).argmax(dim=1)
    believed = believed_share(rec.posterior_.numpy(), untouched.numpy())
    harm = probability_of_harm(0, 0, believed, GuardSettings().trust)
    assert rec.guard_.harm == pytest.approx(harm) and harm < 0.5
    assert rec.guard_.kept and rec.guard_.statement is None and rec.guard_.n_labels == 0
    assert "no label judges here" in rec.guard_.reason
    assert f"probability of harm {harm:.2g}" in rec.guard_.reason
    assert 0.0 < rec.guard_.expected <= 100.0
    data.val_mask[untouched.eq(data.y).nonzero()[:2]] = True
    data.val_mask &= ~data.train_mask
    few = gk.Reconstructor(model).fit(data)
    assert few.guard_.wins + few.guard_.losses < GuardSettings().trust
    assert few.guard_.reason.endswith(", mostly by the answers' own account")
    data.val_mask = torch.zeros_like(data.val_mask)
    careful = gk.Reconstructor(model, risk=0.9 * harm).fit(data)
    assert careful.guard_.left_alone and torch.equal(careful.features_, data.x)


def test_where_nothing_is_changed_no_word_says_so() -> None:
    """An SGC on constant features and no edge answers every node alike, whatever was decided."""
    x = torch.ones(20, 3)
    data = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.int64))
    model = SGConv(3, 2, K=2).eval()
    rec = gk.Reconstructor(model).fit(data)
    assert torch.equal(rec.features_, x) and rec.guard_.left_alone
    assert rec.guard_.reason.startswith("left unchanged: the model answers as decided")


def test_how_many_lost_labels_a_sure_posterior_outvotes() -> None:
    """Said in docs/pitfalls.md."""
    trust = GuardSettings().trust
    harm = [probability_of_harm(0, losses, believed=0.8, trust=trust) for losses in range(6)]
    assert harm[4] < 0.5 < harm[5]
