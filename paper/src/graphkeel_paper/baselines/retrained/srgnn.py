"""SR-GNN (Zhu et al., NeurIPS 2021): APPNP retrained so that its training nodes look like the rest
of the graph.

Two terms fight the shift: the central moment discrepancy (CMD) between hidden features of the
training nodes and of a random sample, added to the loss; and kernel-mean-matching weights on the
training nodes. The original draws its sample class by class, which takes labels of nodes that have
none here; ours is drawn uniformly, as the method's text says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.training import dropout, seeded, trained, unit_scale

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SRGNN(CheckedMethod):
    """The published settings (the authors' main_gnn.py with the README's options)."""

    needs_labels = True
    name: str = "srgnn"
    retrains: bool = True
    hidden: int = 32
    dropout: float = 0.5
    rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 200  # fixed: nothing is selected on validation
    steps: int = 10  # of APPNP
    teleport: float = 0.1
    moments: int = 5  # of CMD
    cmd_weight: float = 1.0
    kernels: tuple[float, ...] = (1.0, 0.1, 0.001)  # γ of the RBF kernels, averaged
    least_weight: float = 0.2

    def _fit_predict(self, given: Given) -> MethodResult:
        task, labelled = given.task, given.labelled
        pattern = Pattern(task.edge_index, task.n_nodes)
        sample = _random_sample(task, labelled, given.seed)
        rows = ppr_rows(pattern, torch.cat([labelled, sample]), self.teleport)
        mine, theirs = rows[: len(labelled)], rows[len(labelled) :]
        found = matching_weights(mine, theirs, task.y[labelled].numpy(), self)
        weights = torch.from_numpy(found).float()
        x, labels = unit_scale(task.x), task.y[labelled]
        with seeded(given.seed):
            model = _Appnp(task.n_features, task.n_classes, pattern, self).train()

            def loss() -> Tensor:
                scores, hidden = model(x)
                wrong = F.cross_entropy(scores[labelled], labels, reduction="none")
                shift = central_moment_discrepancy(hidden[labelled], hidden[sample], self.moments)
                return (weights * wrong).mean() + self.cmd_weight * shift

            trained(model, loss, self.epochs, rate=self.rate, weight_decay=self.weight_decay)
        with torch.no_grad():
            scores, _ = model.eval()(x)
        return MethodResult(scores, None, {"least": float(weights.min())})


def _random_sample(task: GraphTask, labelled: Tensor, seed: int) -> Tensor:
    """As many other nodes as there are labelled ones."""
    others = torch.ones(task.n_nodes, dtype=torch.bool)
    others[labelled] = False
    candidates = others.nonzero().flatten()
    order = torch.randperm(len(candidates), generator=torch.Generator().manual_seed(seed))
    return candidates[order[: len(labelled)]]


class _Appnp(nn.Module):
    """tanh MLP, then ten steps of personalised PageRank whose edges are dropped out as well."""

    def __init__(self, n_features: int, n_classes: int, pattern: Pattern, config: SRGNN) -> None:
        super().__init__()
        self.first = nn.Linear(n_features, config.hidden, bias=False)
        self.second = nn.Linear(config.hidden, n_classes, bias=False)
        self.pattern, self.config = pattern, config
        self.weights = (1 - config.teleport) * pattern.gcn_weights()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the hidden features that CMD compares."""
        drop = self.config.dropout
        hidden = dropout(x, drop, self.training)
        hidden = dropout(torch.tanh(self.first(hidden)), drop, self.training)
        local = self.second(hidden)
        scores = local
        for _ in range(self.config.steps):
            weights = dropout(self.weights, drop, self.training)
            scores = self.pattern.product(weights, scores) + self.config.teleport * local
        return scores, hidden


def central_moment_discrepancy(a: Tensor, b: Tensor, moments: int = 5) -> Tensor:
    """‖E a − E b‖ + Σ_k ‖E(a − E a)^k − E(b − E b)^k‖, k = 2 … moments."""
    mean_a, mean_b = a.mean(dim=0), b.mean(dim=0)
    total = (mean_a - mean_b).norm()
    for k in range(2, moments + 1):
        total = total + (((a - mean_a) ** k).mean(dim=0) - ((b - mean_b) ** k).mean(dim=0)).norm()
    return total


def ppr_rows(pattern: Pattern, nodes: Tensor, teleport: float, *, tolerance: float = 1e-7) -> Array:
    """Rows of α (I − (1−α) Ã)^-1; Ã is symmetric, so its columns by iteration. Shape (len(nodes),
    N)."""
    matrix = pattern.matrix((1 - teleport) * pattern.gcn_weights())
    start = torch.zeros(pattern.n_nodes, len(nodes))
    start[nodes, torch.arange(len(nodes))] = teleport
    rows = start
    for _ in range(int(np.ceil(np.log(tolerance) / np.log(1 - teleport)))):
        rows = torch.add(start, matrix @ rows)
    return rows.T.double().numpy()


def matching_weights(mine: Array, theirs: Array, labels: NDArray[np.int64], config: SRGNN) -> Array:
    """Kernel mean matching: weights under which `mine` (n, N) has the kernel mean of `theirs` (m,
    N).

    min ½ wᵀHw + fᵀw with every w at least `least_weight` and the weights of a class summing to its
    size."""
    gram = _mean_kernel(mine, mine, config.kernels)
    linear = -len(mine) / len(theirs) * _mean_kernel(mine, theirs, config.kernels).sum(axis=1)
    return _constrained_quadratic(gram, linear, labels, config.least_weight)


def _mean_kernel(a: Array, b: Array, gammas: tuple[float, ...]) -> Array:
    distances = np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T, 0.0)
    return np.asarray(np.mean([np.exp(-gamma * distances) for gamma in gammas], axis=0))


def _constrained_quadratic(
    gram: Array, linear: Array, labels: NDArray[np.int64], least: float
) -> Array:
    """Accelerated projected gradient; the constraint set is a product of shifted simplices, so
    projecting is exact."""
    step = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-12)
    weights = momentum = np.ones(len(labels))
    pace = 1.0
    for _ in range(5000):
        moved = _project(momentum - step * (gram @ momentum + linear), labels, least)
        pace_next = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        momentum = moved + (pace - 1) / pace_next * (moved - weights)
        if np.abs(moved - weights).max() < 1e-9:
            return moved
        weights, pace = moved, pace_next
    return weights


def _project(point: Array, labels: NDArray[np.int64], least: float) -> Array:
    projected = np.empty_like(point)
    for label in np.unique(labels):
        here = labels == label
        total = here.sum() * (1.0 - least)
        projected[here] = least + _onto_simplex(point[here] - least, total)
    return projected


def _onto_simplex(point: Array, total: float) -> Array:
    """The nearest non-negative vector with this sum."""
    order = np.sort(point)[::-1]
    excess = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    threshold = excess[np.flatnonzero(order > excess)[-1]]
    return np.maximum(point - threshold, 0.0)
