"""What the methods that train a model of their own share: scaled features, and the weights
validation liked best."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from graphkeel.core.statistics import percent
from graphkeel.graph import GraphTask


def unit_scale(x: Tensor) -> Tensor:
    """Features divided by one number, their mean row length.

    Twenty principal components of row-normalised words have rows of length 0.05 to 0.1, on which a
    GCN with the published learning rates and weight decay hardly moves; the published codes feed
    rows of about unit size. Chosen on validation nodes (docs/reproducing.md has the figures)."""
    return x / x.norm(dim=1).mean().clamp_min(1e-12)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """As torch's; its Bernoulli draws take four times as long on a CPU as these uniform ones."""
    if not training or p == 0.0:
        return x
    return x * (torch.rand(x.shape) >= p) * (1.0 / (1.0 - p))


def as_split(task: GraphTask, labelled: Tensor, validation: Tensor) -> GraphTask:
    """The task with these nodes as its training and validation sets, and no test set."""
    return replace(
        task,
        train_mask=_mask(labelled, task.n_nodes),
        val_mask=_mask(validation, task.n_nodes),
        test_mask=torch.zeros(task.n_nodes, dtype=torch.bool),
    )


def _mask(nodes: Tensor, n_nodes: int) -> Tensor:
    mask = torch.zeros(n_nodes, dtype=torch.bool)
    mask[nodes] = True
    return mask


def one_of_the_labelled(labelled: Tensor, seed: int) -> int:
    """A node drawn uniformly from the labelled ones; its class is the one that one-class methods
    replace."""
    drawn = torch.randint(len(labelled), (1,), generator=torch.Generator().manual_seed(seed))
    return int(labelled[drawn])


def share_right(scores: Tensor, task: GraphTask, nodes: Tensor) -> float:
    """Accuracy in percent on nodes whose labels may be looked at; 0 when there are none."""
    if len(nodes) == 0:
        return 0.0
    return percent(scores[nodes].argmax(dim=1) == task.y[nodes])


class BestOnValidation:
    """Keeps the weights of the first epoch with the highest validation accuracy; without
    validation, the last."""

    def __init__(self, model: nn.Module, task: GraphTask, validation: Tensor) -> None:
        self.model, self.task, self.validation = model, task, validation
        self.accuracy, self.epoch, self.waited = -1.0, -1, 0
        self._weights: dict[str, Tensor] | None = None

    def look(self, epoch: int, scores: Tensor) -> None:
        """Hand over the clean scores of an epoch."""
        if len(self.validation) == 0:
            self.epoch = epoch
            return
        accuracy = share_right(scores, self.task, self.validation)
        self.waited += 1
        if accuracy > self.accuracy:
            self.accuracy, self.epoch, self.waited = accuracy, epoch, 0
            self._weights = copy.deepcopy(self.model.state_dict())

    def restore(self) -> None:
        if self._weights is not None:
            self.model.load_state_dict(self._weights)
