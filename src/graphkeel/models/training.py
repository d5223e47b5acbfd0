"""One small trainer: full batch, Adam, cross-entropy on the training nodes, optional early stopping
on validation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphkeel.core.errors import DataError
from graphkeel.core.statistics import percent
from graphkeel.graph.task import GraphTask
from graphkeel.models.networks import SGC, propagated


@dataclass(frozen=True)
class TrainingConfig:
    """Optimiser settings; `patience` epochs without a better validation loss end the training
    (None: never)."""

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    patience: int | None = None


def train(model: nn.Module, task: GraphTask, config: TrainingConfig) -> nn.Module:
    """Train in place, and return the model in eval mode.

    With early stopping the weights of the epoch with the lowest validation loss are kept. Random
    numbers (dropout) come from torch's global generator: seed it for a repeatable run.

    Args:
        model: the network.
        task: graph, features, labels and split.
        config: optimiser settings.
    """
    if not bool(task.train_mask.any()):
        raise DataError("training needs labelled nodes in train_mask", got="none")
    forward = _forward(model, task)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    best = _BestWeights(model, config.patience)
    wanted = task.y[task.train_mask]
    for _ in range(config.epochs):
        model.train()
        optimiser.zero_grad()
        F.cross_entropy(forward(task.train_mask), wanted).backward()
        optimiser.step()
        if config.patience is not None and best.stop(_validation_loss(model, forward, task)):
            break
    best.restore()
    return model.eval()


def accuracy(scores: Tensor, task: GraphTask, mask: Tensor) -> float:
    """Percent of the masked nodes whose highest score is their label.

    Args:
        scores: shape (N, n_classes).
        task: holds the labels.
        mask: bool, shape (N,); NaN where it selects no node.
    """
    return percent(scores[mask].argmax(dim=-1) == task.y[mask])


def _forward(model: nn.Module, task: GraphTask) -> Callable[[Tensor], Tensor]:
    """The scores of the nodes in a mask; SGC's propagation has no weights, so it is done once and
    not once an epoch."""
    if not isinstance(model, SGC):
        return lambda mask: model(task.x, task.edge_index)[mask]
    features = propagated(model, task.x, task.edge_index)
    if model.is_large(task.x, task.edge_index):
        return lambda mask: model.conv.lin(features[mask])  # type: ignore[no-any-return]
    return lambda mask: model.conv.lin(features)[mask]  # type: ignore[no-any-return]


@torch.no_grad()
def _validation_loss(
    model: nn.Module, forward: Callable[[Tensor], Tensor], task: GraphTask
) -> float:
    model.eval()
    mask = task.val_mask if task.val_mask.any() else task.train_mask
    return float(F.cross_entropy(forward(mask), task.y[mask]))


class _BestWeights:
    """Remembers the weights of the best epoch."""

    def __init__(self, model: nn.Module, patience: int | None) -> None:
        self.model = model
        self.patience = patience
        self.loss = float("inf")
        self.waited = 0
        self.weights: dict[str, Tensor] | None = None

    def stop(self, loss: float) -> bool:
        if loss < self.loss:
            self.loss = loss
            self.waited = 0
            self.weights = copy.deepcopy(self.model.state_dict())
            return False
        self.waited += 1
        return self.patience is not None and self.waited >= self.patience

    def restore(self) -> None:
        if self.weights is not None:
            self.model.load_state_dict(self.weights)
