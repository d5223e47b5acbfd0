"""Anchors of the largest lead, by hand: W₁ = 1, b = 0, so that the answers are W₂·relu(x)."""

from __future__ import annotations

import pytest
import torch

import graphkeel as gk
from graphkeel.models.networks import GCN
from graphkeel.reconstruct.candidates.foremost import foremost_anchors, hidden_sizes, leads
from graphkeel.reconstruct.candidates.steer import LEAD, anchors_to_steer, steer
from graphkeel.reconstruct.context import Context

# Class 2 leads where x₁/2 < x₂ < 9/8·x₁ only: its least-squares anchor (0.9, 0.2)·r is answered
# with class 0.
NARROW = [[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]]
WIDE = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]
BURIED = [[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]]


def context_of(outer: list[list[float]]) -> Context:
    model = GCN(2, 3, hidden=2)
    with torch.no_grad():
        model.conv1.lin.weight.copy_(torch.eye(2))
        model.conv2.lin.weight.copy_(torch.tensor(outer))
    x = torch.tensor([[4.0, 0.0], [0.0, 4.0], [2.0, 2.0], [3.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    return Context(gk.FrozenModel(model), x, torch.empty(2, 0, dtype=torch.int64))


def test_the_largest_leads_by_hand():
    """With x₁ + x₂ ≤ 2: (2, 0) answers (2, 0, 1.2), and (1, 1) answers (1, 1, 1.2)."""
    anchors, largest = foremost_anchors(context_of(WIDE).plant, 2.0, 5.0)
    torch.testing.assert_close(anchors, torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
    torch.testing.assert_close(largest, torch.tensor([0.8, 0.8, 0.2]).double())
    torch.testing.assert_close(leads(context_of(WIDE).plant, anchors), largest)
    assert hidden_sizes(context_of(WIDE).plant, anchors).tolist() == pytest.approx([2.0, 2.0, 2.0])


def test_a_lead_that_is_too_large_gets_the_smallest_anchor_of_the_largest_allowed():
    """(1, 0) answers (1, 0, 0.6): a lead of 0.4."""
    anchors, largest = foremost_anchors(context_of(WIDE).plant, 2.0, 0.4)
    torch.testing.assert_close(anchors, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    torch.testing.assert_close(largest, torch.tensor([0.4, 0.4, 0.2]).double())


def test_a_class_that_no_feature_reaches_leads_nowhere():
    _, largest = foremost_anchors(context_of(BURIED).plant, 2.0, 5.0)
    assert largest[2] == pytest.approx(0.0, abs=1e-9)


def test_anchors_stay_where_the_head_answers_each_with_its_own_class():
    context = context_of(WIDE)
    anchors, lead = anchors_to_steer(context)
    assert torch.equal(anchors, context.anchors().features)
    assert lead == LEAD * context.typical_strength


def test_a_class_whose_anchor_is_answered_otherwise_is_reached():
    context = context_of(NARROW)
    assert leads(context.plant, context.anchors().features)[2] < 0
    anchors, lead = anchors_to_steer(context)
    assert (leads(context.plant, anchors) > 0).all()
    assert 0 < lead < LEAD * context.typical_strength
    classes = torch.tensor([0, 1, 2, 2, 2, 0])
    wanted = torch.nn.functional.one_hot(classes, 3).float()
    assert torch.equal(context.logits_for(steer(context, wanted)).argmax(dim=1), classes)
