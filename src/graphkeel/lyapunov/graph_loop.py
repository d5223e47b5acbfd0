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


class GraphLoop:
    """The closed loop of a recognised model on a graph with given features (N, d) and edges (2, E).

    The controllers of the classes act at `nodes` (M,), each at those with its label (M,)."""

    def __init__(
        self,
        aggregation: Aggregation,
        x: Tensor,
        edge_index: Tensor,
        controls: Mapping[int, NeuralWeights],
        nodes: Tensor,
        labels: Tensor,
    ) -> None:
        self.aggregation = aggregation
        self.nodes = nodes
        matrix, self.scale = operator_of(aggregation.operator, edge_index, len(x))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            self.matrix = matrix.to_sparse_csr()  # products are several times as fast
        self.controls = [(labels == c, control) for c, control in controls.items()]
        self.given = [_projected(x, branch) for branch in aggregation.layers[0]]

    def answer(self) -> Tensor:
        """The model's answer to the given features, shape (N, n)."""
        return self._answer(self.given)

    def step(self, states: Tensor) -> Tensor:
        """Ŷ⁺ of states Ŷ, float64, shape (N, n)."""
        fed = [given.clone() for given in self.given]
        for own, control in self.controls:
            nodes = self.nodes[own]
            features = control(states[nodes])
            for branch, part in zip(self.aggregation.layers[0], fed, strict=True):
                part[nodes] = features @ branch.weight.T + branch.bias
        return self._answer(fed)

    def _answer(self, fed: list[Tensor]) -> Tensor:
        """The model's answer, given the first layer's values before they are spread."""
        value = torch.zeros_like(fed[0])
        for branch, part in zip(self.aggregation.layers[0], fed, strict=True):
            value = value + spread(part, self.matrix, branch.power)
        for layer in self.aggregation.layers[1:]:
            value = run_layer(layer, value.relu(), self.matrix)
        return value

    @torch.no_grad()
    def run(
        self, kappa: float, gauge: Tensor, *, steps: int = 500, least: float = 1e-12
    ) -> GraphRun:
        """From the answer to the given features to the equilibrium, as near as floats come: until a
        step changes less than `least`, relative. The gauge is r of V(z) = Σ rᵢ|zᵢ|, shape (n,)."""
        states = self.answer()
        residuals = []
        certain = []
        for _ in range(steps):
            following = self.step(states)
            moved = (following - states).abs()
            residuals.append(float(((moved @ gauge) / self.scale).max()))
            sure = self.certain(states, residuals[-1] / (1.0 - kappa), gauge)
            certain.append(int(sure.sum()))
            states = following
            if float(moved.max()) <= least * (1.0 + float(states.abs().max())):
                break
        return GraphRun(states, tuple(residuals), tuple(certain))

    def certain(self, states: Tensor, radius: float, gauge: Tensor) -> Tensor:
        """Where the margin exceeds the distance to the equilibrium, bool, shape (N,)."""
        best = states.argmax(dim=1, keepdim=True)
        margins = states.gather(1, best) - states
        needed = radius * self.scale.unsqueeze(1) / torch.minimum(gauge[best], gauge)
        return (margins > needed).scatter(1, best, True).all(dim=1)


def _projected(x: Tensor, branch: Branch, entries: int = 1 << 24) -> Tensor:
    """X·Wᵀ + b in float64, some rows at a time."""
    parts = x.split(max(1, entries // int(x.shape[1])))
    return torch.cat([part.double() @ branch.weight.T for part in parts]) + branch.bias
