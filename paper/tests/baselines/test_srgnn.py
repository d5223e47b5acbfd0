"""SR-GNN: CMD and kernel mean matching by hand and against references, and the training
contract."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from shifted_graph import check_contract, share_right, small_task

from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.retrained.srgnn import (
    SRGNN,
    _constrained_quadratic,
    _onto_simplex,
    central_moment_discrepancy,
    matching_weights,
    ppr_rows,
)


def test_cmd_by_hand():
    """{0, 2} and {1, 1}: equal means; second and fourth central moments 1 against 0; odd ones
    vanish."""
    a, b = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [1.0]])
    assert float(central_moment_discrepancy(a, b)) == pytest.approx(2.0)
    assert float(central_moment_discrepancy(a, b + 3)) == pytest.approx(5.0)
    assert float(central_moment_discrepancy(a, a)) == 0.0


def test_simplex_projection_by_hand():
    assert _onto_simplex(np.array([0.9, 0.8, 0.1]), 1.0) == pytest.approx([0.55, 0.45, 0.0])
    assert _onto_simplex(np.array([1.0, 2.0, 3.0]), 6.0) == pytest.approx([1.0, 2.0, 3.0])


def test_weights_solve_the_constrained_problem():
    """Against a general solver, with the constraints of the method."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9))
    gram, linear, labels = root @ root.T, 5 * rng.normal(size=9), np.repeat([0, 1, 2], 3)
    found = _constrained_quadratic(gram, linear, labels, 0.2)

    def cost(w: np.ndarray) -> float:
        return float(0.5 * w @ gram @ w + linear @ w)

    sums = [{"type": "eq", "fun": lambda w, c=c: w[labels == c].sum() - 3} for c in range(3)]
    reference = minimize(
        cost, np.ones(9), bounds=[(0.2, None)] * 9, constraints=sums, options={"maxiter": 1000}
    )
    assert cost(found) <= reference.fun + 1e-6
    assert found.min() >= 0.2 - 1e-12
    assert [found[labels == c].sum() for c in range(3)] == pytest.approx([3, 3, 3])


def test_matching_weighs_up_what_the_sample_looks_like():
    """Two training nodes a class; the sample sits on the first of each."""
    mine = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
    weights = matching_weights(mine, mine[[0, 2]], np.array([0, 0, 1, 1]), SRGNN())
    assert weights == pytest.approx([1.8, 0.2, 1.8, 0.2], abs=1e-3)


def test_ppr_rows_against_the_dense_inverse():
    task = small_task(60)
    pattern = Pattern(task.edge_index, 60)
    dense = pattern.matrix(pattern.gcn_weights()).to_dense().double()
    exact = 0.1 * torch.linalg.inv(torch.eye(60).double() - 0.9 * dense)
    nodes = torch.tensor([3, 50])
    assert np.allclose(ppr_rows(pattern, nodes, 0.1), exact[nodes].numpy(), atol=1e-5)


def test_the_training_keeps_the_contract_and_learns():
    task = small_task()
    result = check_contract(SRGNN(epochs=60), task)
    assert share_right(result, task) > 0.7
    assert result.decision["least"] >= 0.2 - 1e-9
