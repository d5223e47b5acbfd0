"""The loop on a real graph, run to its equilibrium: Ŷ⁺ = GNN(X(Ŷ), A).

The model's first layer is linear, so the given features go through it once; in each step only those
of the controlled nodes do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.neural import NeuralWeights
from graphkeel.models.aggregation import Aggregation, operator_of, run_layer, spread
from graphkeel.models.head import Branch


@dataclass(frozen=True)
class GraphRun:
    """A run of the loop.

    Attributes:
        states: where it ended, float64, shape (N, n).
        residuals: ‖loop(Ŷ) − Ŷ‖ of every state met, the answer to the given features first, in the
            norm max_v V(z_v)/s_v: a Lyapunov function, which falls by κ or more in each step.
        certain: at every state met how many nodes have a class that the remaining way to the
            equilibrium cannot change; in floats, for a drawing.
    """

    states: Tensor
    residuals: tuple[float, ...]
    certain: tuple[int, ...]


@torch.no_grad()
def run_loop(
    aggregation: Aggregation,
    x: Tensor,
    edge_index: Tensor,
    controls: Mapping[int, NeuralWeights],
    nodes: Tensor,
    labels: Tensor,
    *,
    kappa: float,
    gauge: Tensor,
    steps: int = 500,
    least: float = 1e-12,
) -> GraphRun:
    """The loop of a recognised model on a graph, features (N, d) and edges (2, E), from its answer
    to the given features until a step changes less than `least`, relative: as near to the
    equilibrium as floats come.

    The controllers of the classes act at `nodes` (M,), each at those with its label (M,). The
    gauge is r of V(z) = Σ rᵢ|zᵢ|, shape (n,), in which the loop falls by `kappa`."""
    matrix, scale = operator_of(aggregation.operator, edge_index, len(x))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        matrix = matrix.to_sparse_csr()  # products are several times as fast
    first, *rest = aggregation.layers
    given = [_projected(x, branch) for branch in first]
    places = [(nodes[labels == label], control) for label, control in controls.items()]

    def fed(states: Tensor) -> list[Tensor]:
        """The first layer's values, before they are spread, with controllers at these states."""
        values = [value.clone() for value in given]
        for own, control in places:
            features = control(states[own])
            for branch, value in zip(first, values, strict=True):
                value[own] = features @ branch.weight.T + branch.bias
        return values

    def answer(values: list[Tensor]) -> Tensor:
        parts = zip(first, values, strict=True)
        state = torch.stack([spread(value, matrix, one.power) for one, value in parts]).sum(dim=0)
        for layer in rest:
            state = run_layer(layer, state.relu(), matrix)
        return state

    states = answer(given)
    residuals = []
    certain = []
    for _ in range(steps):
        following = answer(fed(states))
        moved = (following - states).abs()
        residuals.append(float(((moved @ gauge) / scale).max()))
        certain.append(_certain(states, scale * (residuals[-1] / (1.0 - kappa)), gauge))
        states = following
        if float(moved.max()) <= least * (1.0 + float(states.abs().max())):
            break
    return GraphRun(states, tuple(residuals), tuple(certain))


def _certain(states: Tensor, radius: Tensor, gauge: Tensor) -> int:
    """How many nodes' margins exceed their distance to the equilibrium in V, shape (N,)."""
    best = states.argmax(dim=1, keepdim=True)
    margins = states.gather(1, best) - states
    needed = radius.unsqueeze(1) / torch.minimum(gauge[best], gauge)
    return int((margins > needed).scatter(1, best, True).all(dim=1).sum())


def _projected(x: Tensor, branch: Branch, entries: int = 1 << 24) -> Tensor:
    """X·Wᵀ + b in float64, some rows at a time."""
    parts = x.split(max(1, entries // int(x.shape[1])))
    return torch.cat([part.double() @ branch.weight.T for part in parts]) + branch.bias
