"""Selection that every rival shares: the same labels as ours, chosen on the same validation
nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.models import accuracy
from graphkeel.reconstruct.method import MethodResult

Setting = dict[str, Any]


def best_on_validation(
    candidates: Iterable[tuple[Setting, Tensor]], task: GraphTask, validation: Tensor
) -> MethodResult:
    """The setting with most validation nodes right; the first one, the published default, on ties
    or without validation nodes.

    Args:
        candidates: settings with their scores, shape (N, n_classes); at least one.
        task: the graph, for its labels.
        validation: node ids whose labels may be compared, shape (n,).
    """
    best: tuple[int, Setting, Tensor] | None = None
    for setting, scores in candidates:
        right = int((scores[validation].argmax(dim=1) == task.y[validation]).sum())
        if best is None or right > best[0]:
            best = (right, setting, scores)
    if best is None:
        raise ValueError("a rival must try at least one setting")
    right, setting, scores = best
    decision = {"chosen": [str(setting)], "validation_right": right, "n_labels": len(validation)}
    return MethodResult(scores, None, decision)


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
