"""The labels a method may use: which nodes, and what they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.graph import GraphTask


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

    def clamp(self, posterior: Tensor, weight: float = 1.0) -> Tensor:
        """A copy whose labelled rows say what is known.

        Args:
            posterior: class probabilities, shape (N, n_classes).
            weight: what a labelled row sums to.
        """
        clamped = posterior.clone()
        clamped[self.nodes] = weight * self.one_hot()
        return clamped

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

    def with_confident(self, posterior: Tensor, share: float) -> Labels:
        """The nodes that are surest of their class added as if they were labelled.

        Args:
            posterior: class probabilities, shape (N, n_classes).
            share: of the nodes of each class, by their largest probability, in (0, 1].
        """
        sureness, classes = posterior.max(dim=1)
        sureness = sureness.clone()
        sureness[self.nodes] = -1.0
        nodes = [self.nodes]
        for c in range(self.n_classes):
            mine = ((classes == c) & (sureness >= 0.0)).nonzero().flatten()
            count = int(share * len(mine))
            nodes.append(mine[sureness[mine].topk(count).indices])
        joined = torch.cat(nodes)
        values = torch.cat([self.classes, classes[joined[len(self) :]]])
        return Labels(joined, values, self.n_classes)


def balanced_gain(after: Tensor, before: Tensor, classes: Tensor, borrowed: float = 0.0) -> float:
    """Points of class-balanced accuracy gained: every class counts the same, however large.

    Args:
        after: which labels are predicted rightly, bool, shape (k,).
        before: the same for the untouched model.
        classes: the labels, int64, shape (k,).
        borrowed: every class is counted with so many labels more that gain as all do on average:
            of a class with two labels, one of them lost says little.
    """
    if not len(classes):
        return 0.0
    gains = after.double() - before.double()
    counts = torch.bincount(classes)
    sums = torch.zeros(len(counts), dtype=torch.float64).index_add_(0, classes, gains)
    present = counts > 0
    means = (sums + borrowed * gains.mean()) / (counts + borrowed).clamp_min(1.0)
    return 100.0 * float(means[present].mean())


def balanced_error(after: Tensor, before: Tensor, classes: Tensor) -> float:
    """The standard error of `balanced_gain`, in points.

    Args:
        after: which labels are predicted rightly, bool, shape (k,).
        before: the same for the untouched model.
        classes: the labels, int64, shape (k,).
    """
    gains = after.double() - before.double()
    of_classes = [gains[classes == one] for one in classes.unique()]
    variances = [float(gain.var(correction=0)) / len(gain) for gain in of_classes]
    return 100.0 * sum(variances) ** 0.5 / max(1, len(of_classes))


def known_labels(task: GraphTask, nodes: Tensor) -> Labels:
    """The labels of these nodes.

    Args:
        task: graph, features, labels and split.
        nodes: node ids, int64, shape (k,).
    """
    return Labels(nodes, task.y[nodes], task.n_classes)
