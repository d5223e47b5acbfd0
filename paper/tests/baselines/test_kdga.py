"""KDGA: its edge predictor and losses by hand, and the training contract."""

from __future__ import annotations

import pytest
import torch
from shifted_graph import check_contract, share_right, small_task
from torch import nn

from graphkeel.core.errors import MemoryLimitError
from graphkeel_paper.baselines.retrained.kdga import (
    KDGA,
    PRESETS,
    distilling_loss,
    edge_loss,
    normalised,
    propagated,
    sampled,
)
from graphkeel_paper.baselines.retrained.sparse import Pattern

ADJACENCY = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_the_edge_loss_by_hand():
    """Five ones and four zeros: ones weigh 4/5, and the mean is scaled by 9/8."""
    logits = torch.tensor([[2.0, 1.0, 3.0], [1.0, 2.0, 0.5], [3.0, 0.5, 4.0]])
    belief = logits.sigmoid()
    terms = torch.where(ADJACENCY > 0, -0.8 * belief.log(), -(1 - belief).log())
    assert torch.allclose(edge_loss(logits, ADJACENCY), 9 / 8 * terms.mean())


def test_a_draw_is_an_undirected_graph_with_loops_as_likely_as_said():
    """P of the pairs (0, 1), (0, 2), (1, 2) is 0.5·M/4 + 0.5·A."""
    logits = torch.tensor([[2.0, 2.0, 4.0], [2.0, 2.0, 1.0], [4.0, 1.0, 4.0]])
    config = KDGA(alpha=0.5)
    torch.manual_seed(0)
    draws = [sampled(logits, ADJACENCY, torch.rand(3, 3), config) for _ in range(2000)]
    for graph in draws[:20]:
        assert torch.equal(graph, graph.T) and set(graph.unique().tolist()) <= {0.0, 1.0}
        assert torch.equal(graph.diagonal(), torch.ones(3))
    shares = torch.stack(draws).mean(dim=0)
    wanted = {(0, 1): 0.75, (0, 2): 0.5, (1, 2): 0.125}
    assert all(abs(float(shares[pair]) - share) < 0.04 for pair, share in wanted.items())


def test_a_rounded_draw_has_the_relaxed_draw_s_gradient():
    logits = torch.tensor([[4.0, 1.0], [1.0, 4.0]], requires_grad=True)
    noise = torch.tensor([[0.5, 0.6], [0.5, 0.5]])
    sampled(logits, torch.eye(2), noise, KDGA(alpha=1.0))[0, 1].backward()
    share = torch.tensor(0.25, requires_grad=True)  # M / max M
    (noise[0, 1].logit() + share.logit()).sigmoid().backward()
    assert logits.grad[0, 1] == pytest.approx(float(share.grad) / 4)


def test_a_graph_is_normalised_by_its_degrees():
    halves = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    assert torch.allclose(normalised(ADJACENCY), halves)


def test_a_graph_whose_matrices_do_not_fit_is_refused(monkeypatch):
    monkeypatch.setenv("GRAPHKEEL_MEMORY", "1MB")
    with pytest.raises(MemoryLimitError, match="KDGA on 200 nodes needs about 4 MB"):
        check_contract(KDGA(), small_task(200))


def test_a_teacher_that_is_quite_sure_has_finite_gradients():
    """Its other probabilities underflow to zero, whose logarithm is not finite: it happens on
    Amazon Photo."""
    teacher = torch.tensor([[200.0, 0.0], [0.0, 1.0]], requires_grad=True)
    student = torch.zeros(2, 2, requires_grad=True)
    distilling_loss(teacher, student, torch.tensor([[0, 1], [1, 0]]), 1.0).backward()
    assert torch.isfinite(teacher.grad).all() and torch.isfinite(student.grad).all()


def test_the_distilling_loss_by_hand():
    """Teacher (3/4, 1/4) and (1/2, 1/2), student (1/2, 1/2) twice; one pair: the student at 1, the
    teacher at 0."""
    teacher = torch.tensor([[0.75, 0.25], [0.5, 0.5]]).log()
    student = torch.zeros(2, 2)
    gap = 0.75 * torch.tensor(1.5).log() + 0.25 * torch.tensor(0.5).log()
    pair = torch.tensor([[1], [0]])
    assert torch.allclose(distilling_loss(teacher, student, pair, 1.0), gap / 4 + gap / 2)
    assert torch.allclose(
        distilling_loss(2 * teacher, 2 * student, pair, 2.0), 4 * (gap / 4 + gap / 2)
    )  # halved again by the temperature, weighted by its square


@pytest.mark.parametrize("wide", [2, 9])
def test_layers_propagate_on_their_narrow_side(wide):
    edges, x = torch.randint(70, (2, 140)), torch.randn(70, 3)
    pattern = Pattern(edges, len(x))
    matrix = pattern.matrix(pattern.gcn_weights()).to_dense()
    layer = nn.Linear(3, wide)
    assert torch.allclose(propagated(layer, lambda z: matrix @ z, x), matrix @ layer(x), atol=1e-5)


def test_presets_are_the_published_ones():
    assert (KDGA().alpha, KDGA().weight_distilling, KDGA().epochs) == (0.3, 20.0, 500)
    assert (PRESETS["citeseer"]["alpha"], PRESETS["citeseer"]["weight_edges"]) == (0.5, 1.0)


def test_the_training_keeps_the_contract_and_learns():
    task = small_task(200)
    method = KDGA(hidden=32, edge_epochs=5, classifier_epochs=10, epochs=15)
    result = check_contract(method, task)
    assert share_right(result, task) > 0.7
    assert result.decision["epochs"] == 15 and result.decision["drawn_edges"] > 0


def test_patience_ends_both_phases():
    method = KDGA(
        hidden=8, edge_epochs=0, classifier_epochs=50, classifier_patience=2, epochs=50, patience=3
    )
    decision = check_contract(method, small_task(100)).decision
    assert decision["classifier_epochs"] < 50 and decision["epochs"] < 50
