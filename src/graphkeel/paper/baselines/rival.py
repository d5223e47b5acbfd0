"""The contract of the methods we are compared with, and how labels choose among a rival's settings.

Every rival gets the labels that we get and chooses its settings by them, as we do: on validation
nodes in the paper's protocol, by cross-fitting where every label both serves and judges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.models import accuracy
from graphkeel.models.frozen import FrozenModel
from graphkeel.reconstruct.method import MethodResult, check_nodes

Setting = dict[str, Any]


class Baseline(ABC):
    """A method that is not ours, as a row of a table.

    Attributes:
        name: of the row.
        retrains: whether a model, or a changed copy of the given one, is trained.
        needs_labels: whether it can do nothing without a label.
    """

    name: str
    retrains: bool
    needs_labels: bool = False

    def fit_predict(
        self,
        frozen: FrozenModel,
        task: GraphTask,
        labelled: Tensor,
        validation: Tensor,
        seed: int = 0,
    ) -> MethodResult:
        """Scores of every node.

        Args:
            frozen: the model, which stays as it is.
            task: the graph; only labels of the nodes named below are in it.
            labelled: ids of the nodes whose labels may be used, shape (n,).
            validation: ids of the nodes whose labels may choose, shape (m,).
            seed: of everything random.
        """
        check_nodes(task, labelled, validation, needs_labels=self.needs_labels)
        return self._fit_predict(frozen, task, labelled, validation, seed)

    @abstractmethod
    def _fit_predict(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, validation: Tensor, seed: int
    ) -> MethodResult: ...


class Candidate(NamedTuple):
    """One setting of a rival, and what it comes to."""

    setting: Setting
    result: MethodResult


class Rival(Baseline):
    """A baseline with settings among which labels choose; the first one is the published default.

    Attributes:
        uses_labels: whether its scores depend on labels; if not, every label can judge them.
    """

    retrains: bool = False
    uses_labels: bool = True

    def candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]:
        """Every setting with its scores, the published default first.

        Args:
            frozen: the model, which stays as it is.
            task: the graph, with the labels of the labelled nodes.
            labelled: ids of the nodes whose labels may be used, shape (n,).
            seed: of everything random.
        """
        return self._candidates(frozen, task, labelled, seed)

    @abstractmethod
    def _candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]: ...

    def _fit_predict(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, validation: Tensor, seed: int
    ) -> MethodResult:
        return best_on_validation(self.candidates(frozen, task, labelled, seed), task, validation)


def scored(setting: Setting, scores: Tensor) -> Candidate:
    """A candidate that is nothing but its scores.

    Args:
        setting: plain values.
        scores: class scores, shape (N, n_classes).
    """
    return Candidate(setting, MethodResult(scores))


def best_on_validation(
    candidates: Iterable[Candidate], task: GraphTask, validation: Tensor
) -> MethodResult:
    """The candidate with most validation nodes right; the first one on ties or without validation
    nodes.

    Args:
        candidates: at least one.
        task: the graph, for its labels.
        validation: node ids whose labels may be compared, shape (n,).
    """
    best: tuple[int, Candidate] | None = None
    for candidate in candidates:
        right = _right(candidate.result.scores, task, validation)
        if best is None or right > best[0]:
            best = (right, candidate)
        if not len(validation):
            break  # nothing can choose
    if best is None:
        raise ValueError("a rival must try at least one setting")
    right, (setting, result) = best
    decision = {
        **result.decision,
        "chosen": [str(setting)],
        "validation_right": right,
        "n_labels": len(validation),
    }
    return MethodResult(result.scores, result.features, decision)


def _right(scores: Tensor | None, task: GraphTask, nodes: Tensor) -> int:
    if scores is None:
        return 0
    return int((scores[nodes].argmax(dim=1) == task.y[nodes]).sum())


def percent_right(scores: Tensor, task: GraphTask, nodes: Tensor) -> float:
    """Accuracy in percent on nodes whose labels may be compared; 0 when there are none.

    Args:
        scores: class scores, shape (N, n_classes).
        task: the graph, for its labels.
        nodes: node ids, shape (n,).
    """
    return accuracy(scores, task, nodes) if len(nodes) else 0.0


def drawn_class(task: GraphTask, labelled: Tensor, seed: int) -> int:
    """The class that one-class methods replace: that of a labelled node drawn uniformly.

    Args:
        task: the graph, for its labels.
        labelled: ids of the labelled nodes, shape (n,); at least one.
        seed: of the draw.
    """
    draw = torch.randint(len(labelled), (1,), generator=torch.Generator().manual_seed(seed))
    return int(task.y[labelled[draw]])
