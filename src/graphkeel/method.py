"""The contract of everything that `keel run` and `keel table` compare: ours, the rivals, the retraining references."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from graphkeel.data.task import GraphTask
from graphkeel.frozen import FrozenModel


@dataclass(frozen=True)
class MethodResult:
    """What a method hands back.

    Attributes:
        scores: one row of class scores per node; None means "the untouched model's".
        features: the rewritten features, for methods that rewrite them; None otherwise, or where they were left alone.
        decision: plain values that say what was chosen and why (JSON-able).
    """

    scores: Tensor | None = None
    features: Tensor | None = None
    decision: dict[str, Any] = field(default_factory=dict)


class Method(Protocol):
    """One row of a table.

    `labelled` are the nodes whose label may be used, `validation` those that may be used to select; `task` has no
    other labels than theirs. Methods with `retrains = True` do not touch the frozen model but train one of their own.
    """

    name: str
    retrains: bool

    def fit_predict(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, validation: Tensor, seed: int
    ) -> MethodResult: ...
