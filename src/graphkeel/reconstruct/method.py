"""The protocol of every method that leaves the weights alone, ours and the rivals'."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from graphkeel.data import GraphTask
from graphkeel.frozen import FrozenModel
from graphkeel.reconstruct.labels import Labels


@dataclass(frozen=True)
class MethodResult:
    """What a method makes of a frozen model.

    Attributes:
        scores: one row per node, the class is the largest entry; None when the model is left alone.
        features: the rewritten features, for methods that rewrite them.
        decision: what was chosen and why, ready for JSON.
    """

    scores: Tensor | None
    features: Tensor | None = None
    decision: dict[str, Any] = field(default_factory=dict)


class Method(Protocol):
    """Predicts with a frozen model, some labels to use and some to select on; test labels are not in the task."""

    @property
    def name(self) -> str: ...

    def fit_predict(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, validation: Tensor, seed: int = 0
    ) -> MethodResult: ...


def known_labels(task: GraphTask, nodes: Tensor) -> Labels:
    """The labels of these nodes."""
    return Labels(nodes, task.y[nodes], task.n_classes)
