"""Anchors: exact for affine heads, and such that heads with a hidden layer are linear between
them."""

from __future__ import annotations

import pytest
import torch
from small_graphs import PATH, Linear, gcn, sgc

from graphkeel.control.anchors import blendable_anchors
from graphkeel.core.errors import ConfigError
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.head import extract_head
from graphkeel.reconstruct import Context, solve_anchors


def test_affine_anchors_by_hand():
    """C(h) = diag(2, 4) h + (1, 0): C(h) = 3·e₀ at (1, 0), C(h) = 3·e₁ at (−1/2, 3/4)."""
    model = Linear(torch.diag(torch.tensor([2.0, 4.0])), torch.tensor([1.0, 0.0]))
    found = solve_anchors(extract_head(model, 2), 3.0)
    torch.testing.assert_close(found.features, torch.tensor([[1.0, 0.0], [-0.5, 0.75]]))
    assert max(found.residuals) < 1e-6 * found.strength


@pytest.mark.parametrize("controller", ["deadbeat", "lqr", "pid"])
def test_every_affine_anchor_is_answered_with_its_class(controller):
    head = extract_head(sgc(), 6)
    found = solve_anchors(head, 2.0, controller)
    torch.testing.assert_close(
        head(found.features), 2.0 * torch.eye(3, dtype=torch.float64), atol=1e-2, rtol=0
    )
    assert found.controller == controller


def test_a_gcn_is_linear_between_its_anchors():
    head = extract_head(gcn(), 20)
    anchors = blendable_anchors(head, 5.0)
    torch.manual_seed(1)
    mixture = torch.rand(50, 3).softmax(dim=1)
    blended = head((mixture @ anchors.features).double())
    torch.testing.assert_close(
        blended, mixture.double() @ head(anchors.features.double()), atol=1e-4, rtol=0
    )


def test_the_residual_is_what_the_head_says():
    head = extract_head(gcn(), 20)
    anchors = solve_anchors(head, 5.0)
    gaps = (head(anchors.features.double()) - 5.0 * torch.eye(3, dtype=torch.float64)).norm(dim=1)
    assert anchors.residuals == pytest.approx(gaps.tolist())


def test_of_two_kinds_of_anchors_the_more_faithful_are_taken():
    torch.manual_seed(0)
    x, edges = torch.randn(30, 20), torch.randint(30, (2, 60))
    context = Context(FrozenModel(gcn()), x, edges)
    options = (blendable_anchors(context.plant, 2.0), solve_anchors(context.plant, 2.0))
    assert context._faithfulness(context.anchors(2.0)) == max(
        context._faithfulness(option) for option in options
    )


def test_a_callable_without_layers_still_has_anchors():
    model = sgc()
    frozen = FrozenModel(lambda x, edge_index: model(x, edge_index).tanh())
    plant = extract_head(frozen, 6)
    assert plant.layers == ()
    assert plant.n_out == 3
    assert max(solve_anchors(plant, 0.5).residuals) < 1e-3 * 0.5


def test_a_model_that_needs_more_arguments_falls_back_to_its_response():
    class Needy(torch.nn.Module):
        def forward(self, x, edge_index, *, scale):
            return x * scale

    context = Context(FrozenModel(Needy()), torch.eye(3), PATH, model_kwargs={"scale": 2.0})
    torch.testing.assert_close(context.logits, 2 * torch.eye(3))
    assert context.anchors(1.0).features.shape == (3, 3)


def test_unknown_controllers_are_refused():
    with pytest.raises(ConfigError, match="the controller must be one of deadbeat"):
        solve_anchors(extract_head(sgc(), 6), 1.0, "bangbang")
