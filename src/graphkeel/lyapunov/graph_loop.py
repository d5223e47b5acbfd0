"""The loop on a real graph, run to its equilibrium: Ŷ⁺ = GNN(X(Ŷ), A).

The model's first layer is linear, so it is applied to controllers and given features once, not in
every step: a step costs the same for twenty features as for three thousand."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.control.neural import NeuralWeights
from graphkeel.models.aggregation import Aggregation, Branch, operator_of, run_layer, spread


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

    The controllers of the classes act at `nodes` (M,), with the shares p, float64, shape (M, n).
    """

    def __init__(
        self,
        aggregation: Aggregation,
        x: Tensor,
        edge_index: Tensor,
        controls: Mapping[int, NeuralWeights],
        nodes: Tensor,
        shares: Tensor,
    ) -> None:
        self.aggregation = aggregation
        self.nodes = nodes
        matrix, self.scale = operator_of(aggregation.operator, edge_index, len(x))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            self.matrix = matrix.to_sparse_csr()  # products are several times as fast
        self.parts = [_Part(control, nodes, shares[:, c]) for c, control in controls.items()]
        first = aggregation.layers[0]
        self.branches = [
            _FirstBranch(one, _projected(x, one), self.parts, len(nodes)) for one in first
        ]
        self.everywhere = torch.equal(nodes, torch.arange(len(x)))  # then no row has to be moved

    def answer(self) -> Tensor:
        """The model's answer to the given features, shape (N, n)."""
        return self._answer([branch.given for branch in self.branches])

    def step(self, states: Tensor) -> Tensor:
        """Ŷ⁺ of states Ŷ, float64, shape (N, n)."""
        own = states if self.everywhere else states[self.nodes]
        lifted = [part.lifted(own) for part in self.parts]
        fed = [branch.fed(lifted) for branch in self.branches]
        if not self.everywhere:
            pairs = zip(self.branches, fed, strict=True)
            fed = [branch.placed(self.nodes, one) for branch, one in pairs]
        return self._answer(fed)

    def _answer(self, fed: list[Tensor]) -> Tensor:
        """The model's answer, given the first layer's values before they are spread."""
        value = torch.zeros_like(fed[0])
        for branch, part in zip(self.branches, fed, strict=True):
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


class _Part:
    """One class's controller at the nodes that have a share of it: p_v·(h + B·t(ŷ_v))."""

    def __init__(self, control: NeuralWeights, nodes: Tensor, share: Tensor) -> None:
        self.rows = slice(None) if bool(share.all()) else share.nonzero().flatten()
        self.share = share[self.rows].double().unsqueeze(1)
        self.control = control

    def lifted(self, states: Tensor) -> Tensor:
        """p_v·t(ŷ_v) for the states of all controlled nodes (M, n), shape (rows, hidden)."""
        return self.share * self.control.lifted(states[self.rows])


class _FirstBranch:
    """A branch of the first layer, with all that no state changes computed once."""

    def __init__(self, branch: Branch, given: Tensor, parts: list[_Part], controlled: int) -> None:
        self.power = branch.power
        self.parts = parts
        self.given = given
        self.outers = [branch.weight @ part.control.outer.double() for part in parts]
        self.rest = [branch.weight @ part.control.offset.double() for part in parts]
        self.bias = branch.bias
        self.controlled = controlled

    def fed(self, lifted: list[Tensor]) -> Tensor:
        """x_v(ŷ_v)·Wᵀ + b of the controlled nodes, shape (M, out)."""
        own = self.bias.repeat(self.controlled, 1)
        for part, hidden, outer, rest in zip(
            self.parts, lifted, self.outers, self.rest, strict=True
        ):
            own[part.rows] += hidden @ outer.T + part.share * rest
        return own

    def placed(self, nodes: Tensor, own: Tensor) -> Tensor:
        """The values of all nodes, with given features where none is controlled, shape (N, out)."""
        fed = self.given.clone()
        fed[nodes] = own
        return fed


def _projected(x: Tensor, branch: Branch, entries: int = 1 << 24) -> Tensor:
    """X·Wᵀ + b in float64, some rows at a time."""
    parts = x.split(max(1, entries // int(x.shape[1])))
    return torch.cat([part.double() @ branch.weight.T for part in parts]) + branch.bias
