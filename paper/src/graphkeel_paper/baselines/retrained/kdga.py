"""KDGA (Wu et al., NeurIPS 2022): a teacher on a learnt augmented graph, distilled into a student
on the original.

An edge predictor proposes the augmented graph; teacher and student share two GCN layers and have a
head each. As in the authors' code matrices are N × N: a graph on which they do not fit into memory
is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphkeel.core.memory import require_memory
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.retrained.sparse import Pattern
from graphkeel_paper.baselines.training import (
    BestOnValidation,
    descend,
    dropout,
    seeded,
    trained,
    unit_scale,
)

Multiply = Callable[[Tensor], Tensor]  # a normalised graph


@dataclass(frozen=True)
class KDGA(CheckedMethod):
    """The authors' best parameters for Cora (param/best_parameters.json, loss_mode 0)."""

    needs_labels = True
    name: str = "kdga"
    retrains: bool = True
    hidden: int = 256
    dropout: float = 0.6
    alpha: float = 0.3  # share of the predictor in the edge probabilities
    temperature_edges: float = 1.0
    temperature_distilling: float = 1.0
    weight_edges: float = 0.1
    weight_distilling: float = 20.0
    lr: float = 0.01
    weight_decay: float = 5e-4
    edge_epochs: int = 200  # of the predictor alone
    classifier_epochs: int = 50  # of teacher and student alone, on the original graph
    classifier_patience: int = 50
    epochs: int = 500  # of all together
    patience: int = 200
    matrices: int = 25  # N × N, float32, that an epoch holds at once (24 measured on Cora)

    def _fit_predict(self, given: Given) -> MethodResult:
        size = 4 * self.matrices * given.task.n_nodes**2
        require_memory(size, f"KDGA on {given.task.n_nodes} nodes", "Take a smaller graph.")
        config = replace(self, **PRESETS.get(given.task.name, {}))
        with seeded(given.seed):
            return _Training(given, config).run()


PRESETS: dict[str, dict[str, Any]] = {  # the authors give no others
    "citeseer": {
        "alpha": 0.5,
        "weight_edges": 1.0,
        "weight_distilling": 5.0,
        "edge_epochs": 300,
        "classifier_epochs": 300,
    },
}


class EdgePredictor(nn.Module):
    """h = relu(Â Â X W₁ W₂), and M = h hᵀ; Â Â X does not change, so it is computed once."""

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(n_features, hidden, bias=False)
        self.second = nn.Linear(hidden, hidden, bias=False)

    def forward(self, spread_twice: Tensor) -> Tensor:
        """M, shape (N, N), from features after two hops."""
        hidden = self.second(self.first(spread_twice)).relu()
        return hidden @ hidden.T


def edge_loss(logits: Tensor, adjacency: Tensor) -> Tensor:
    """norm · mean BCE(M, A), edges weighted up; the adjacency has a unit diagonal."""
    pairs, ones = adjacency.numel(), adjacency.sum()
    loss = F.binary_cross_entropy_with_logits(logits, adjacency, pos_weight=(pairs - ones) / ones)
    return pairs / (2 * (pairs - ones)) * loss


def sampled(logits: Tensor, adjacency: Tensor, noise: Tensor, config: KDGA) -> Tensor:
    """A draw of the augmented graph, 0/1: relaxed Bernoulli of P = α M / max M + (1 − α) A,
    rounded, with straight-through gradients; pairs above the diagonal mirrored, unit diagonal."""
    least = torch.finfo(torch.float32).eps  # where torch's distribution clamps, too
    mixed = config.alpha * logits / logits.max() + (1 - config.alpha) * adjacency
    odds = mixed.clamp(least, 1 - least).logit() + noise.clamp(least, 1 - least).logit()
    soft = (odds / config.temperature_edges).sigmoid()
    upper = (soft + (soft.round() - soft).detach()).triu(1)
    return upper + upper.T + torch.eye(len(logits), dtype=logits.dtype)


def normalised(graph: Tensor) -> Tensor:
    """D^-1/2 S D^-1/2."""
    scale = graph.sum(dim=1).rsqrt()
    return scale[:, None] * graph * scale


class _Classifier(nn.Module):
    """Two shared GCN layers, a teacher's head and a student's."""

    def __init__(self, n_features: int, hidden: int, n_classes: int, drop: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(n_features, hidden), nn.Linear(hidden, hidden)
        self.teacher_head = nn.Linear(hidden, n_classes)
        self.student_head = nn.Linear(hidden, n_classes)
        self.drop = drop

    def teacher(self, graph: Multiply, x: Tensor) -> Tensor:
        """Scores of the teacher, shape (N, n_classes)."""
        return self.teacher_head(self._trunk(graph, x))

    def student(self, graph: Multiply, x: Tensor) -> Tensor:
        """Scores of the student, shape (N, n_classes)."""
        return self.student_head(self._trunk(graph, x))

    def _trunk(self, graph: Multiply, x: Tensor) -> Tensor:
        for layer in (self.first, self.second):
            x = propagated(layer, graph, dropout(x, self.drop, self.training)).relu()
        return dropout(x, self.drop, self.training)


def propagated(layer: nn.Linear, graph: Multiply, x: Tensor) -> Tensor:
    """Ŝ (x W + b), on the narrower side: (Ŝ x) W + (Ŝ 1) b when x has fewer columns than the
    layer's output."""
    if layer.in_features >= layer.out_features:
        return graph(layer(x))
    moved = graph(torch.cat([x, torch.ones_like(x[:, :1])], dim=1))
    return F.linear(moved[:, :-1], layer.weight) + moved[:, -1:] * layer.bias


def distilling_loss(
    teacher: Tensor, student: Tensor, neighbours: Tensor, temperature: float
) -> Tensor:
    """T²·KL(teacher ‖ student) on every node, and across pairs: the student at i, the teacher at j.

    Averaged over nodes *and* classes, as the published code does; gradients reach the teacher,
    too."""
    beliefs = F.log_softmax(student / temperature, -1)
    wanted = F.log_softmax(teacher / temperature, -1)
    source, target = neighbours
    return temperature**2 * (_mean_kl(wanted, beliefs) + _mean_kl(wanted[target], beliefs[source]))


def _mean_kl(log_wanted: Tensor, log_beliefs: Tensor) -> Tensor:
    """In logarithms on both sides: a probability that underflows to zero would have an infinite
    gradient."""
    return F.kl_div(log_beliefs, log_wanted, reduction="sum", log_target=True) / log_wanted.numel()


class _Training:
    def __init__(self, given: Given, config: KDGA) -> None:
        task = given.task
        self.task, self.labelled, self.config = task, given.labelled, config
        self.x, self.labels = unit_scale(task.x), task.y[given.labelled]
        both_ways = torch.cat([task.edge_index, task.edge_index.flip(0)], dim=1)
        pattern = Pattern(both_ways, task.n_nodes)
        weights = pattern.gcn_weights()
        self.original: Multiply = lambda values: pattern.product(weights, values)
        self.spread_twice = self.original(self.original(self.x))
        self.adjacency = torch.eye(task.n_nodes)
        self.adjacency[both_ways[0], both_ways[1]] = 1.0
        self.predictor = EdgePredictor(task.n_features, config.hidden)
        self.classifier = _Classifier(
            task.n_features, config.hidden, task.n_classes, config.dropout
        )
        self.best = BestOnValidation(self.classifier, task, given.validation)
        self.warm_up = BestOnValidation(self.classifier, task, given.validation)
        self.drawn_edges = 0

    def run(self) -> MethodResult:
        self._train_predictor()
        warm_epochs = self._train_classifier()
        epochs = self._train_together()
        self.best.restore()
        decision = {
            "classifier_epochs": warm_epochs,
            "epochs": epochs,
            "best_epoch": self.best.epoch,
            "drawn_edges": self.drawn_edges,
        }
        return MethodResult(self._predict(self.classifier.student), None, decision)

    def _train_predictor(self) -> None:
        def loss() -> Tensor:
            return edge_loss(self.predictor(self.spread_twice), self.adjacency)

        trained(self.predictor, loss, self.config.edge_epochs, rate=self.config.lr)

    def _train_classifier(self) -> int:
        """Teacher and student on the original graph; ends early, but keeps its last weights."""
        optimiser = self._optimiser(self.classifier)
        for epoch in range(self.config.classifier_epochs):
            self.classifier.train()
            teacher = self.classifier.teacher(self.original, self.x)
            student = self.classifier.student(self.original, self.x)
            descend(optimiser, self._supervised(teacher) + self._supervised(student))
            self.warm_up.update(epoch, self._predict(self.classifier.teacher))
            if self.warm_up.waited >= self.config.classifier_patience:
                return epoch + 1
        return self.config.classifier_epochs

    def _train_together(self) -> int:
        optimiser = self._optimiser(self.predictor, self.classifier)
        for epoch in range(self.config.epochs):
            self.classifier.train()
            descend(optimiser, self._loss())
            self.best.update(epoch, self._predict(self.classifier.student))
            if self.best.waited >= self.config.patience:
                return epoch + 1
        return self.config.epochs

    def _loss(self) -> Tensor:
        c = self.config
        logits = self.predictor(self.spread_twice)
        graph = sampled(logits, self.adjacency, torch.rand_like(logits), c)
        self.drawn_edges = int(graph.detach().sum() - len(graph)) // 2
        teacher = self.classifier.teacher(normalised(graph).matmul, self.x)
        student = self.classifier.student(self.original, self.x)
        kept = (graph * self.adjacency).nonzero().T
        distilling = distilling_loss(teacher, student, kept, c.temperature_distilling)
        supervised = self._supervised(teacher) + self._supervised(student)
        edges = c.weight_edges * edge_loss(logits, self.adjacency)
        return edges + supervised + c.weight_distilling * distilling

    def _supervised(self, scores: Tensor) -> Tensor:
        return F.cross_entropy(scores[self.labelled], self.labels)

    def _optimiser(self, *modules: nn.Module) -> torch.optim.Optimizer:
        parameters = [parameter for module in modules for parameter in module.parameters()]
        return torch.optim.Adam(
            parameters, lr=self.config.lr, weight_decay=self.config.weight_decay
        )

    @torch.no_grad()
    def _predict(self, head: Callable[[Multiply, Tensor], Tensor]) -> Tensor:
        self.classifier.eval()
        return head(self.original, self.x)
