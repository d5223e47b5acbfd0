"""The loop on a real graph, run to its equilibrium: Ŷ⁺ = GNN(X(Ŷ), A)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch
from torch import Tensor

from graphkeel.control.neural import NeuralWeights
from graphkeel.models.aggregation import Aggregation, operator_of

STEPS = 500
STILL = 1e-12  # relative change of a step below which margins no longer notice


@torch.no_grad()
def run_to_equilibrium(
    aggregation: Aggregation,
    x: Tensor,
    edge_index: Tensor,
    controls: Mapping[int, NeuralWeights],
    nodes: Tensor,
    labels: Tensor,
) -> Tensor:
    """States near the equilibrium, float64, shape (N, n).

    Args:
        aggregation: the model, recognised.
        x: given features, shape (N, d).
        edge_index: shape (2, E).
        controls: the controller of each class.
        nodes: controlled nodes, int64, shape (L,).
        labels: the class of each, int64, shape (L,).
    """
    features = x.double().clone()
    matrix, _ = operator_of(aggregation.operator, edge_index, len(x))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        matrix = matrix.to_sparse_csr()  # products are several times as fast
    states = aggregation.run(features, matrix)
    for _ in range(STEPS):
        for label, control in controls.items():
            own = nodes[labels == label]
            features[own] = control(states[own])
        following = aggregation.run(features, matrix)
        change = float((following - states).abs().max())
        states = following
        if change <= STILL * (1.0 + float(states.abs().max())):
            break
    return states
