"""The one small trainer of the methods that train: seeds, steps, dropout, scaled features, and the
weights that validation liked best."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from graphkeel.graph import GraphTask
from graphkeel_paper.baselines.rival import percent_right


def unit_scale(x: Tensor) -> Tensor:
    """Features divided by one number, their mean row length.

    Twenty principal components of row-normalised words have rows of length 0.05 to 0.1, on which a
    GCN with the published learning rates and weight decay hardly moves; the published codes feed
    rows of about unit size. Chosen on validation nodes (paper/docs/reproducing.md has the
    figures)."""
    return x / x.norm(dim=1).mean().clamp_min(1e-12)


def dropout(x: Tensor, p: float, training: bool, *, alike: int | None = None) -> Tensor:
    """As torch's; its Bernoulli draws take four times as long on a CPU as these uniform ones."""
    if not training or p == 0.0:
        return x
    shape = [1 if place == alike else size for place, size in enumerate(x.shape)]
    return x * ((torch.rand(shape) >= p) * (1.0 / (1.0 - p)))


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


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the block torch draws from this seed; what it draws afterwards does not change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def trained(
    network: nn.Module,
    loss: Callable[[], Tensor],
    epochs: int,
    *,
    rate: float,
    weight_decay: float = 0.0,
) -> None:
    """Adam down a loss, the same at every epoch."""
    optimiser = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=weight_decay)
    for _ in range(epochs):
        descend(optimiser, loss())


def descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step of an optimiser down a loss."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def entropy(scores: Tensor) -> Tensor:
    """Of every node's class distribution, in nats."""
    logs = scores.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1)


class BestOnValidation:
    """The weights of the first epoch with the highest validation accuracy; without validation
    nodes, of the last. `restore` writes them."""

    def __init__(self, model: nn.Module, task: GraphTask, validation: Tensor) -> None:
        self.model, self.task, self.validation = model, task, validation
        self.accuracy, self.epoch, self.waited = -1.0, -1, 0
        self._weights: dict[str, Tensor] | None = None

    def update(self, epoch: int, scores: Tensor) -> None:
        """Take in an epoch."""
        if len(self.validation) == 0:
            self.epoch = epoch
            return
        accuracy = percent_right(scores, self.task, self.validation)
        self.waited += 1
        if accuracy > self.accuracy:
            self.accuracy, self.epoch, self.waited = accuracy, epoch, 0
            self._weights = copy.deepcopy(self.model.state_dict())

    def restore(self) -> None:
        if self._weights is not None:
            self.model.load_state_dict(self._weights)
