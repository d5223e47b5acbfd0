"""MH-Aug (Park et al., NeurIPS 2021): a GCN trained along a Metropolis–Hastings chain of augmented
graphs.

A state of the chain is the original graph with some edges and some nodes' features dropped. A
proposal changes both shares a little and draws the drops anew; it is accepted by how near every
node's ego-graph is to a wished-for change, nodes the model is unsure of being judged mildly. Each
accepted move is one optimiser step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import ndtr, ndtri
from torch import Tensor, nn

from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.training import (
    BestOnValidation,
    descend,
    dropout,
    entropy,
    seeded,
    unit_scale,
)


@dataclass(frozen=True)
class MHAug(CheckedMethod):
    """The published defaults (argument defaults of the authors' main.py), where λ2, the weight of
    the count of equal drops, is 0."""

    needs_labels = True
    name: str = "mh-aug"
    retrains: bool = True
    proposals: int = 7000  # at most
    accepted: int = 2000  # training ends after as many
    hidden: int = 64
    dropout: float = 0.5
    lr: float = 0.005
    weight_decay: float = 5e-4
    sigma_edges: float = 0.03  # of the proposed shares
    sigma_nodes: float = 0.03
    mu_edges: float = 0.6  # the wished-for ego-graph change
    mu_nodes: float = 0.2
    slope_edges: float = 100.0  # a: how much a node's entropy widens its target
    slope_nodes: float = 100.0
    width_edges: float = 1.0  # b: the width at zero entropy
    width_nodes: float = 1.0
    weight_edges: float = 1.0  # λ1
    weight_nodes: float = 1.0
    consistency: float = 2.0  # weight of the KL term
    entropy: float = 0.2  # weight of the entropy term

    def _fit_predict(self, given: Given) -> MethodResult:
        with seeded(given.seed):
            return _Training(given, self).run()


@dataclass(frozen=True)
class State:
    """An augmented graph."""

    edge_share: float  # dropped
    node_share: float
    entries: Tensor  # which of the pattern's are left, bool
    nodes: Tensor  # 1 where a node keeps its features, else 0, shape (N, 1)


class Chain:
    """Proposals and their acceptance."""

    def __init__(self, pattern: Pattern, config: MHAug, seed: int) -> None:
        self.pattern, self.config = pattern, config
        self.rng = np.random.default_rng(seed)
        self.full = torch.ones(pattern.rows.shape[0], dtype=torch.bool)
        self.original = self._ego_size(self.full, torch.ones(pattern.n_nodes, 1))
        self.state = State(0.0, 0.0, self.full, torch.ones(pattern.n_nodes, 1))

    def propose(self) -> State:
        """New shares near the old ones; the drops themselves are drawn from the original graph."""
        now, c, pattern = self.state, self.config, self.pattern
        edge_share = truncated_draw(now.edge_share, c.sigma_edges, self.rng.random())
        node_share = truncated_draw(now.node_share, c.sigma_nodes, self.rng.random())
        edges = self._choose(pattern.n_edges, edge_share)
        nodes = torch.ones(pattern.n_nodes, 1)
        nodes[self._choose(pattern.n_nodes, node_share)] = 0.0
        return State(edge_share, node_share, pattern.without_edges(edges), nodes)

    def _choose(self, count: int, share: float) -> Tensor:
        drop = int(count * share)
        if drop == 0:
            return torch.empty(0, dtype=torch.long)
        return torch.from_numpy(self.rng.choice(count, drop, replace=False))

    def step(self, uncertainty: Tensor) -> tuple[State, State] | None:
        """Propose; returns (old, new) when accepted, None otherwise. `uncertainty` is the entropy
        of each node's prediction, in [0, 1]."""
        old, new = self.state, self.propose()
        if math.log(self.rng.random()) >= self.log_acceptance(old, new, uncertainty):
            return None
        # The shares that count are those really dropped, which int() rounds down.
        self.state = State(
            1.0 - self._left(new),
            1.0 - float(new.nodes.sum()) / self.pattern.n_nodes,
            new.entries,
            new.nodes,
        )
        return old, new

    def log_acceptance(self, old: State, new: State, uncertainty: Tensor) -> float:
        """log of π(new) q(old | new) / π(old) q(new | old)."""
        gain = float((self.target(new, uncertainty) - self.target(old, uncertainty)).sum())
        return gain - (self._proposal(old, new) - self._proposal(new, old))

    def _left(self, state: State) -> float:
        edges = self.pattern.edges
        return float(state.entries[edges].float().mean()) if len(edges) else 1.0

    def target(self, state: State, uncertainty: Tensor) -> Tensor:
        """Log-density of every node's ego-graph change, up to a constant."""
        c = self.config
        edges, nodes = self.ego_change(state)
        wide_edges = c.slope_edges * uncertainty + c.width_edges
        wide_nodes = c.slope_nodes * uncertainty + c.width_nodes
        of_edges = c.weight_edges * _log_normal(edges, c.mu_edges, wide_edges)
        return of_edges + c.weight_nodes * _log_normal(nodes, c.mu_nodes, wide_nodes)

    def ego_change(self, state: State) -> tuple[Tensor, Tensor]:
        """Share of each node's two-hop walks that the dropped edges, and the dropped nodes, take
        away."""
        ones = torch.ones_like(state.nodes)
        edges = 1.0 - self._ego_size(state.entries, ones) / self.original
        nodes = 1.0 - self._ego_size(self.full, state.nodes) / self.original
        return edges.squeeze(1), nodes.squeeze(1)

    def _ego_size(self, entries: Tensor, indicator: Tensor) -> Tensor:
        matrix = self.pattern.matrix(entries.float())
        return matrix @ (matrix @ indicator)

    def _proposal(self, start: State, end: State) -> float:
        """log q(end | start)."""
        edges = truncated_log_density(end.edge_share, start.edge_share, self.config.sigma_edges)
        nodes = truncated_log_density(end.node_share, start.node_share, self.config.sigma_nodes)
        return edges + nodes


def _log_normal(value: Tensor, mean: float, width: Tensor) -> Tensor:
    return -((value - mean) ** 2) / (2 * width**2)


def truncated_draw(mean: float, sigma: float, uniform: float) -> float:
    """A normal draw cut to [0, 1], by inverting its distribution function at `uniform`."""
    low, high = ndtr(-mean / sigma), ndtr((1 - mean) / sigma)
    return float(np.clip(mean + sigma * ndtri(low + uniform * (high - low)), 0.0, 1.0))


def truncated_log_density(value: float, mean: float, sigma: float) -> float:
    """Log-density of a normal cut to [0, 1]."""
    inside = ndtr((1 - mean) / sigma) - ndtr(-mean / sigma)
    return float(
        -0.5 * ((value - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi) * inside)
    )


class _Gcn(nn.Module):
    """Two layers with dropout between them, on the weights of a pattern's entries."""

    def __init__(self, n_features: int, hidden: int, n_classes: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(n_features, hidden, bias=False)
        self.second = nn.Linear(hidden, n_classes, bias=False)
        self.first_bias = nn.Parameter(torch.zeros(hidden))
        self.second_bias = nn.Parameter(torch.zeros(n_classes))
        nn.init.xavier_uniform_(self.first.weight)
        nn.init.xavier_uniform_(self.second.weight)
        self.dropout = dropout

    def forward(self, pattern: Pattern, weights: Tensor, spread: Tensor) -> Tensor:
        """`spread` are the features after one propagation: (Â X) W costs less than Â (X W) when X
        is narrow."""
        hidden = dropout((self.first(spread) + self.first_bias).relu(), self.dropout, self.training)
        return pattern.product(weights, self.second(hidden)) + self.second_bias


class _Training:
    def __init__(self, given: Given, config: MHAug) -> None:
        task = given.task
        self.task, self.labelled, self.config = task, given.labelled, config
        self.x, self.labels = unit_scale(task.x), task.y[given.labelled]
        self.pattern = Pattern(task.edge_index, task.n_nodes)
        self.chain = Chain(self.pattern, config, given.seed)
        self.clean = self.pattern.gcn_weights()
        self.clean_spread = self.pattern.product(self.clean, self.x)
        self.model = _Gcn(task.n_features, config.hidden, task.n_classes, config.dropout)
        self.optimiser = torch.optim.Adam(
            self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        self.best = BestOnValidation(self.model, task, given.validation)

    def run(self) -> MethodResult:
        accepted = proposals = 0
        while proposals < self.config.proposals and accepted < self.config.accepted:
            proposals += 1
            accepted += self._propose(accepted)
        self.best.restore()
        decision = {"proposed": proposals, "steps": accepted, "best_step": self.best.epoch}
        return MethodResult(self._predict(), None, decision)

    def _propose(self, step: int) -> bool:
        """One proposal and, if it is accepted, one optimiser step."""
        self.model.train()
        scores = self.model(self.pattern, self.clean, self.clean_spread)
        uncertainty = entropy(scores.detach()) / math.log(self.task.n_classes)
        moved = self.chain.step(uncertainty)
        if moved is None:
            return False
        descend(self.optimiser, self._loss(scores, *moved))
        self.best.update(step, self._predict())
        return True

    def _loss(self, clean_scores: Tensor, old: State, new: State) -> Tensor:
        before, after = self._augmented(old), self._augmented(new)
        supervised = F.cross_entropy(before[self.labelled], self.labels)
        # KL(before || after); gradients go into both, as in the published code
        consistent = F.kl_div(
            after.log_softmax(-1), before.log_softmax(-1), reduction="batchmean", log_target=True
        )
        return (
            supervised
            + self.config.consistency * consistent
            + self.config.entropy * entropy(clean_scores).mean()
        )

    def _augmented(self, state: State) -> Tensor:
        weights = self.pattern.gcn_weights(state.entries)
        kept = state.nodes.mean().clamp_min(1.0 / self.task.n_nodes)
        return self.model(
            self.pattern, weights, self.pattern.product(weights, self.x * state.nodes / kept)
        )

    @torch.no_grad()
    def _predict(self) -> Tensor:
        self.model.eval()
        return self.model(self.pattern, self.clean, self.clean_spread)
