"""Data of the page about a fitted reconstructor: plain values and columns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphkeel.graph.labels import Labels
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.guard import GuardDecision

TRAIN, VALIDATION, TEST = 1, 2, 3  # codes of a node's part in the page's list


def report_data(
    context: Context,
    features: Tensor,
    decision: GuardDecision,
    known: Labels,
    trained_on: Tensor,
    judging: Labels,
    data: Any | None,
) -> dict[str, Any]:
    """Decision, sizes and a column per fact of every node.

    Args:
        features: the features in use, shape (N, d).
        trained_on: bool, shape (N,): labels the model has seen in training.
    """
    before = context.logits.argmax(dim=1)
    after = context.logits_for(features).argmax(dim=1)
    y, part = _labels_and_parts(len(before), known, trained_on, judging, data)
    model = context.frozen.model
    return {
        "model": type(model).__name__ if isinstance(model, torch.nn.Module) else "a function",
        "nodes": len(before),
        "edges": int(context.edge_index.shape[1]),
        "features": int(context.x.shape[1]),
        "classes": context.n_classes,
        "labels": len(known),
        "decision": decision.to_dict(),
        "weights": context.frozen.weights_hash,
        "columns": {
            "y": y.numpy(),
            "split": part.numpy(),
            "before": before.numpy(),
            "after": after.numpy(),
            "degree": torch.bincount(context.edge_index[1], minlength=len(before)).numpy(),
        },
    }


def _labels_and_parts(
    n_nodes: int, known: Labels, trained_on: Tensor, judging: Labels, data: Any | None
) -> tuple[Tensor, Tensor]:
    """The labels there are (-1: none), and what part each node has."""
    y = torch.full((n_nodes,), -1, dtype=torch.int64)
    part = torch.zeros(n_nodes, dtype=torch.int8)
    mask = getattr(data, "test_mask", None)
    if isinstance(mask, Tensor) and isinstance(getattr(data, "y", None), Tensor):
        scored = mask.cpu().nonzero().flatten()
        y[scored] = data.y.cpu().long()[scored]  # type: ignore[union-attr]
        part[scored] = TEST
    for labels in (known, judging):
        y[labels.nodes] = labels.classes
        part[labels.nodes] = VALIDATION
    part[known.nodes[trained_on[known.nodes]]] = TRAIN
    return y, part
