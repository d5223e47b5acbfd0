"""Known labels: which nodes, and what they are."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binomtest
from torch import Tensor
from torch_geometric.data import Data

from graphkeel.core.errors import DataError, KeelWarning
from graphkeel.graph.task import GraphTask

Ids = Tensor | NDArray[np.int64] | Sequence[int]  # of nodes or classes, shape (k,)
_MASKS = ("train", "val", "test")


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

    def equals(self, other: Labels) -> bool:
        """Whether nodes and classes are the same, in the same order.

        Args:
            other: labels of the same classes.
        """
        same = torch.equal(self.nodes, other.nodes)
        return same and torch.equal(self.classes, other.classes)

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


def warn_of_labels(data: Data, task: GraphTask, logits: Tensor, level: float = 0.001) -> None:
    """Warn of labels that no mask selects, and of some that the model has hardly been trained on.

    Training makes a model at least as often right on its own labels as it is sure of them; `level`
    is that of the test."""
    labelled = getattr(data, "y", None) is not None and bool((data.y >= 0).any())
    masked = any(getattr(data, f"{name}_mask", None) is not None for name in _MASKS)
    if labelled and not masked:
        warnings.warn(
            "data.y has labels, but no mask selects any of them, so none is used; set train_mask "
            "to the nodes that the model was trained on, and val_mask to others whose label is "
            "known",
            KeelWarning,
            stacklevel=2,
        )
    trained = task.train_mask.nonzero().flatten()
    if not len(trained):
        return
    sure = float(logits[trained].softmax(dim=1).amax(dim=1).mean())
    right = int((logits[trained].argmax(dim=1) == task.y[trained]).sum())
    if binomtest(right, len(trained), min(1.0, sure), "less").pvalue < level:
        warnings.warn(
            f"the model is right on {100 * right / len(trained):.0f} % of train_mask and is "
            f"{100 * sure:.0f} % sure there, so it was hardly trained on these labels; leave "
            "in train_mask what it was trained on, and hand over new labels in val_mask or "
            "with feedback",
            KeelWarning,
            stacklevel=2,
        )


def checked_labels(
    nodes: object, labels: object, n_nodes: int, n_classes: int
) -> tuple[Tensor, Tensor]:
    """Node ids and their classes as int64 tensors, shape (L,) both."""
    ids = _whole_numbers("nodes", nodes, n_nodes)
    classes = _whole_numbers("labels", labels, n_classes)
    if ids.shape != classes.shape:
        raise DataError(
            "feedback needs one label per node", got=f"{len(ids)} nodes, {len(classes)} labels"
        )
    _check_agreement(ids.tolist(), classes.tolist())
    return ids, classes


def checked_node(node: object, n_nodes: int) -> int:
    """The id of a node: a whole number of any library's, in range."""
    try:
        found = -1 if isinstance(node, bool) else operator.index(node)  # type: ignore[arg-type]
    except TypeError:
        found = -1
    if not 0 <= found < n_nodes:
        raise DataError(f"node must be in 0..{n_nodes - 1}", got=repr(node)[:80])
    return found


def _whole_numbers(what: str, values: object, limit: int) -> Tensor:
    wanted = f"{what} must be integers in 0..{limit - 1}"
    if _is_mask(values):
        raise DataError(
            wanted, got="true and false", fix="mask.nonzero().flatten() gives the ids of a mask."
        )
    try:
        found = torch.as_tensor(values).flatten()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(wanted, got=repr(values)[:80]) from error
    if not len(found):
        return found.long()
    is_whole = not (found.is_floating_point() or found.is_complex())
    if not is_whole or int(found.min()) < 0 or int(found.max()) >= limit:
        raise DataError(wanted, got=found.tolist()[:5])
    return found.long()


def _is_mask(values: object) -> bool:
    """Truth values, which Python would count as 0 and 1."""
    if isinstance(values, list | tuple):
        return any(isinstance(value, bool) for value in values)
    return isinstance(values, bool) or "bool" in str(getattr(values, "dtype", ""))


def _check_agreement(nodes: list[int], classes: list[int]) -> None:
    seen: dict[int, int] = {}
    for node, label in zip(nodes, classes, strict=True):
        if seen.setdefault(node, label) != label:
            raise DataError(
                f"node {node} has two labels in one call",
                got=f"{seen[node]} and {label}",
                fix="Decide for one; a later call may correct an earlier one.",
            )
