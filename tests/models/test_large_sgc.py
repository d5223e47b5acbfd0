"""SGC on graphs too large for one message per edge: the same answers, gradients and weights by
sparse products."""

from __future__ import annotations

import pytest
import torch

from graphkeel.graph import make_sbm, make_task
from graphkeel.models import networks, train_model
from graphkeel.models.networks import SGC, convolution


@pytest.fixture(scope="module")
def task():
    return make_task(make_sbm(400, 1600, n_classes=3, n_features=6, signal=1.0), split="random")


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(networks.SGC, "is_large", lambda *_: True)


# loops, a repeated edge, a one-way edge and a node alone: all that PyG's normalisation treats in
# its own way
MESSY = torch.tensor([[0, 1, 1, 2, 2, 0, 0], [1, 0, 0, 2, 1, 0, 2]])


@pytest.mark.parametrize("edges", [MESSY, torch.zeros(2, 0, dtype=torch.int64)])
def test_the_answers_are_those_of_the_layer(edges, large):
    model, x = SGC(4, 3).eval(), torch.randn(5, 4)
    torch.testing.assert_close(model(x, edges), model.conv(x, edges))


def test_gradients_reach_the_features(large):
    model, x = SGC(4, 3).eval(), torch.randn(5, 4)
    slopes = []
    for forward in (model, model.conv):
        point = x.clone().requires_grad_(True)
        (forward(point, MESSY) ** 2).sum().backward()
        slopes.append(point.grad)
    torch.testing.assert_close(*slopes)


def test_training_gives_the_same_weights(task, monkeypatch):
    small = train_model("sgc", task, seed=1)
    monkeypatch.setattr(networks.SGC, "is_large", lambda *_: True)
    large = train_model("sgc", task, seed=1)
    torch.testing.assert_close(large.conv.lin.weight, small.conv.lin.weight, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(
        large(task.x, task.edge_index), small.conv(task.x, task.edge_index), rtol=1e-2, atol=1e-2
    )


def test_the_matrix_is_kept_until_the_edges_change():
    edges = MESSY.clone()
    first = convolution(edges, 5)
    assert convolution(edges, 5) is first
    edges[0, 0] = 4
    assert convolution(edges, 5) is not first
