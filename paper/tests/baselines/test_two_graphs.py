"""A2GNN and UDAGCN: their parts by hand, and both on a target that differs from its source."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from shifted_graph import check_contract, frozen_sgc, small_task

from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel_paper.baselines.retrained.two_graphs import (
    A2GNN,
    UDAGCN,
    Domain,
    _walked,
    mmd,
    ppmi,
    reversed_gradient,
    visits,
)
from graphkeel_paper.baselines.training import as_split

# Ten hops would mix the classes of so small a graph.
SHORT = [
    A2GNN(epochs=100, hidden=16, hops=2, weight=1.0, sample=100),
    UDAGCN(epochs=60, rate=3e-3, hidden=16, walks=5),
]


def path(n_nodes: int) -> GraphTask:
    """0 − 1 − … − n, without features or labels."""
    ends = torch.arange(n_nodes - 1)
    edges = torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])
    nobody = torch.zeros(n_nodes, dtype=torch.bool)
    return GraphTask(
        torch.ones(n_nodes, 1), edges, torch.zeros(n_nodes, dtype=torch.long), *[nobody] * 3, 2
    )


def test_mmd_of_two_points_by_hand():
    one, other = torch.tensor([[0.0]]), torch.tensor([[2.0]])
    # d² = 4, and so is its mean over the two ordered pairs: widths 1, 2, 4, 8, 16.
    across = sum(math.exp(-4 / width) for width in (1, 2, 4, 8, 16))
    assert float(mmd(one, other)) == pytest.approx(5 + 5 - 2 * across)
    assert float(mmd(one, one)) == pytest.approx(0.0)


def test_the_gradient_of_mmd_by_hand():
    one = torch.tensor([[0.0]], dtype=torch.float64, requires_grad=True)
    mmd(one, torch.tensor([[2.0]], dtype=torch.float64)).backward()
    # −2 Σ exp(−d² / w), whose slope in the first point is −2 · exp(−4 / w) · 4 / w.
    slope = -2 * sum(math.exp(-4 / width) * 4 / width for width in (1, 2, 4, 8, 16))
    assert one.grad is not None and float(one.grad) == pytest.approx(slope)


def test_a_reversed_gradient_is_negative_and_scaled():
    values = torch.tensor([1.0, -2.0], requires_grad=True)
    reversed_gradient(values, 0.5).square().sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [-1.0, 2.0]  # −0.5 · 2 · value


def test_mutual_information_by_hand():
    counts = sparse.csr_matrix(np.array([[1.0, 3.0, 0.0], [3.0, 0.0, 1.0], [0.0, 0.0, 2.0]]))
    # 10 visits; rows 4, 4, 2; columns 4, 3, 3: the first pair has 1 where 1.6 are expected.
    expected = [[0, 3 / 1.2, 0], [3 / 1.6, 0, 0], [0, 0, 2 / 0.6]]
    wanted = [[math.log(share) if share else 0.0 for share in row] for row in expected]
    np.testing.assert_allclose(ppmi(counts).toarray(), wanted, rtol=1e-6)


def test_walks_of_one_step_visit_the_neighbours_alone():
    counts = visits(path(3), walks=7, steps=1).toarray()
    assert counts[0].tolist() == [0, 7, 0] and counts[2].tolist() == [0, 7, 0]
    assert counts[1, 1] == 0 and counts[1].sum() == 7


def test_a_walked_graph_joins_what_walks_join():
    task = path(2)
    domain = _walked(Domain.of(task, torch.empty(0, dtype=torch.long)), UDAGCN(steps=1))
    # Each end visits the other alone: log 2 beside a self-loop of one, in rows of sum 1 + log 2.
    wanted = torch.tensor([1.0, math.log(2)]) / (1 + math.log(2))
    assert torch.allclose(domain.hop(torch.tensor([[1.0], [0.0]])).flatten(), wanted)


@pytest.mark.parametrize("method", SHORT, ids=lambda method: method.name)
def test_the_contract_of_a_method(method):
    check_contract(method, small_task())


@pytest.mark.parametrize("method", SHORT, ids=lambda method: method.name)
def test_the_source_teaches_a_target_without_labels(method):
    source = small_task()
    noise = torch.randn(source.x.shape, generator=torch.Generator().manual_seed(0))
    nobody = torch.empty(0, dtype=torch.long)
    unlabelled = torch.full_like(source.y, UNLABELLED)
    target = replace(as_split(source, nobody, nobody), x=source.x + 0.3 * noise, y=unlabelled)
    taught = method.with_source(source)
    result = taught.fit_predict(frozen_sgc(source), target, nobody, nobody)
    assert result.scores is not None
    right = (result.scores.argmax(dim=1) == source.y)[source.test_mask].float().mean()
    assert right > 0.7  # of three classes
