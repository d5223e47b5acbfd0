"""Known labels: which nodes, and what they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.graph.task import GraphTask


@dataclass(frozen=True)
class Labels:
    """Known labels, in the order of their nodes.

    Attributes:
        nodes: node ids, int64, shape (L,).
        classes: their classes, int64, shape (L,).
        n_classes: how many classes there are.
    """

    nodes: Tensor
    classes: Tensor
    n_classes: int

    def __len__(self) -> int:
        return int(self.nodes.numel())

    def none(self) -> Labels:
        """No labels of the same classes."""
        return Labels(self.nodes[:0], self.classes[:0], self.n_classes)

    def one_hot(self) -> Tensor:
        return torch.nn.functional.one_hot(self.classes, self.n_classes).float()

    def without(self, positions: Tensor) -> Labels:
        """All but the labels at these positions.

        Args:
            positions: which entries to leave out, int64, shape (k,).
        """
        kept = torch.ones(len(self), dtype=torch.bool)
        kept[positions] = False
        return Labels(self.nodes[kept], self.classes[kept], self.n_classes)

    def with_more(self, nodes: Tensor, classes: Tensor) -> Labels:
        """New labels added; a node named again takes its newer label.

        Args:
            nodes: ids of the newly labelled nodes, shape (k,).
            classes: class of each node, int64, shape (k,).

        >>> known = Labels(torch.tensor([4, 7]), torch.tensor([0, 1]), n_classes=3)
        >>> known.with_more(torch.tensor([7, 9]), torch.tensor([2, 2])).classes
        tensor([0, 2, 2])
        """
        merged = dict(zip(self.nodes.tolist(), self.classes.tolist(), strict=True))
        merged.update(zip(nodes.tolist(), classes.tolist(), strict=True))
        known = torch.tensor(list(merged), dtype=torch.int64)
        values = torch.tensor(list(merged.values()), dtype=torch.int64)
        return Labels(known, values, self.n_classes)


def known_labels(task: GraphTask, nodes: Tensor) -> Labels:
    """The labels of these nodes.

    Args:
        task: graph, features, labels and split.
        nodes: node ids, int64, shape (k,).
    """
    return Labels(nodes, task.y[nodes], task.n_classes)
