"""Rivals get the same labels as we do: their settings are chosen on the same validation nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.reconstruct.method import MethodResult

Setting = dict[str, Any]


def best_on_validation(
    tried: Iterable[tuple[Setting, Tensor]], task: GraphTask, validation: Tensor
) -> MethodResult:
    """The setting with most validation nodes right; the first, the published default, on ties or
    without any."""
    best: tuple[int, Setting, Tensor] | None = None
    for setting, scores in tried:
        right = int((scores[validation].argmax(dim=1) == task.y[validation]).sum())
        if best is None or right > best[0]:
            best = (right, setting, scores)
    if best is None:
        raise ValueError("a rival must try at least one setting")
    right, setting, scores = best
    decision = {"chosen": [str(setting)], "validation_right": right, "n_labels": len(validation)}
    return MethodResult(scores, None, decision)
