"""The contract of everything that `keel run` and `keel table` compare: ours, the rivals, the
retraining references."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from graphkeel.core.errors import DataError
from graphkeel.graph.task import UNLABELLED, GraphTask
from graphkeel.models.frozen import FrozenModel


@dataclass(frozen=True)
class MethodResult:
    """The answers of a method, and how they were found.

    Attributes:
        scores: one row of class scores per node; None means "the untouched model's".
        features: the rewritten features, for methods that rewrite them; None otherwise, or where
            they were left alone.
        decision: plain values that say what was chosen and why (JSON-able).
    """

    scores: Tensor | None = None
    features: Tensor | None = None
    decision: dict[str, Any] = field(default_factory=dict)


class Method(Protocol):
    """One row of a table.

    `labelled` are the nodes whose label may be used, `validation` those that may be used to select;
    `task` has no other labels than theirs. Methods with `retrains = True` do not touch the frozen
    model but train one of their own."""

    name: str
    retrains: bool

    def fit_predict(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, validation: Tensor, seed: int
    ) -> MethodResult:
        """Class scores of every node, or the untouched model."""


class Given(NamedTuple):
    """All that a method gets; the labels of `labelled` may be used, those of `validation` may
    choose."""

    frozen: FrozenModel
    task: GraphTask
    labelled: Tensor
    validation: Tensor
    seed: int


class CheckedMethod(ABC):
    """A method that refuses nodes it must not learn from; a row of a table.

    Attributes:
        name: of the row.
        retrains: whether a model, or a changed copy of the given one, is trained.
        needs_labels: whether it can do nothing without a label.
    """

    name: str
    retrains: bool = False
    needs_labels: bool = False

    def fit_predict(
        self,
        frozen: FrozenModel,
        task: GraphTask,
        labelled: Tensor,
        validation: Tensor,
        seed: int = 0,
    ) -> MethodResult:
        """Scores of every node, by the labels of some nodes; those of others may choose."""
        check_nodes(task, labelled, validation, needs_labels=self.needs_labels)
        return self._fit_predict(Given(frozen, task, labelled, validation, seed))

    @abstractmethod
    def _fit_predict(self, given: Given) -> MethodResult: ...


def check_nodes(
    task: GraphTask, labelled: Tensor, validation: Tensor, *, needs_labels: bool = False
) -> None:
    """Refuse nodes that a method cannot learn from or must not select on."""
    for name, nodes in (("labelled", labelled), ("validation", validation)):
        if nodes.dtype != torch.int64 or nodes.dim() != 1:
            got = f"{nodes.dtype} of shape {tuple(nodes.shape)}"
            raise DataError(
                f"{name} must be a vector of node ids",
                got=got,
                fix="From a mask: mask.nonzero().flatten().",
            )
        if len(nodes) and not 0 <= int(nodes.min()) <= int(nodes.max()) < task.n_nodes:
            got = f"{int(nodes.min())} to {int(nodes.max())}"
            raise DataError(f"{name} must hold node ids in 0..{task.n_nodes - 1}", got=got)
        unknown = int((task.y[nodes] == UNLABELLED).sum())
        if unknown:
            raise DataError(f"{name} names nodes whose label is unknown", got=unknown)
    both = int(torch.isin(labelled, validation).sum())
    if both:
        raise DataError(
            "a node is either labelled or for validation, never both: that would leak", got=both
        )
    if needs_labels and len(labelled) == 0:
        raise DataError("this method needs labelled nodes", got="none")
