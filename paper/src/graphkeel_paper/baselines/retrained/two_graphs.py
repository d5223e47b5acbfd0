"""Graph domain adaptation: one network is trained on a source with labels and on a target, whose
labels may be few or none. A2GNN and UDAGCN differ in the network and in its loss.

Without a source the graph is its own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.retrained.words import SparseRows
from graphkeel_paper.baselines.training import descend, seeded


@dataclass(frozen=True, eq=False)
class Domain:
    """A graph as these networks read it: its features as sparse rows, its normalised adjacency, and
    the labels that may be used."""

    task: GraphTask
    nodes: Tensor
    features: SparseRows
    pattern: Pattern
    weights: Tensor

    @classmethod
    def of(cls, task: GraphTask, nodes: Tensor) -> Domain:
        pattern = Pattern(task.edge_index, task.n_nodes)
        return cls(task, nodes, SparseRows(task.x), pattern, pattern.gcn_weights())

    def hop(self, values: Tensor) -> Tensor:
        """Values of shape (N, k) after one step along the edges."""
        return self.pattern.product(self.weights, values)

    def loss(self, scores: Tensor) -> Tensor:
        """Cross-entropy on the labels, 0 where there are none."""
        if not len(self.nodes):
            return scores.new_zeros(())
        return F.cross_entropy(scores[self.nodes], self.task.y[self.nodes])


class Network(nn.Module):
    """A network for both graphs."""

    @abstractmethod
    def loss(self, source: Domain, target: Domain, progress: float) -> Tensor:
        """Descended in an epoch; `progress` goes from 0 to 1 over the epochs."""

    @abstractmethod
    def scores(self, target: Domain) -> Tensor:
        """Of every node of the target, shape (N, n_classes)."""


@dataclass(frozen=True)
class TwoGraphs(CheckedMethod):
    """A method of the field; it learns from every label of the source, and from those of the target
    that it is given.

    Args:
        name: of the row.
        epochs, rate, weight_decay: of the training.
        source: None: the target itself.
    """

    name: str
    retrains: bool = True
    epochs: int = 200
    rate: float = 0.01
    weight_decay: float = 0.0
    source: GraphTask | None = None

    def with_source(self, source: GraphTask) -> TwoGraphs:
        """The method with a graph to learn from."""
        return replace(self, source=source)

    @abstractmethod
    def network(self, source: Domain, target: Domain) -> Network:
        """The network before its training."""

    def _fit_predict(self, given: Given) -> MethodResult:
        target = Domain.of(given.task, given.labelled)
        source = target if self.source is None else Domain.of(self.source, _labelled(self.source))
        with seeded(given.seed):
            network = self.network(source, target).train()
            optimiser = torch.optim.Adam(
                network.parameters(), lr=self.rate, weight_decay=self.weight_decay
            )
            for epoch in range(self.epochs):
                descend(optimiser, network.loss(source, target, epoch / self.epochs))
        with torch.no_grad():
            return MethodResult(network.eval().scores(target))


def _labelled(task: GraphTask) -> Tensor:
    return (task.train_mask | task.val_mask).nonzero().flatten()


def layer(n_inputs: int, n_outputs: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weights by Glorot and a bias of zeros: features stand to the left of the weights."""
    weights = nn.init.xavier_uniform_(torch.empty(n_inputs, n_outputs))
    return nn.Parameter(weights), nn.Parameter(torch.zeros(n_outputs))
