"""Data of the page about a fitted reconstructor: plain values and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphkeel.reconstruct.explain import shares_by_kind

if TYPE_CHECKING:
    from graphkeel.reconstruct.reconstructor import Reconstructor

TRAIN, VALIDATION, TEST = 1, 2, 3  # codes of a node's part in the page's list


def report_data(rec: Reconstructor, data: Any | None) -> dict[str, Any]:
    """Decision, sizes and a column per fact of every node; data has labels of test nodes."""
    context = rec._context
    before = context.logits.argmax(dim=1)
    after = context.logits_for(rec.features_).argmax(dim=1)
    y, part = _labels_and_parts(rec, data)
    model = context.frozen.model
    return {
        "model": type(model).__name__ if isinstance(model, torch.nn.Module) else "a function",
        "nodes": len(before),
        "edges": int(context.edge_index.shape[1]),
        "features": int(context.x.shape[1]),
        "classes": context.n_classes,
        "labels": len(rec.labels_),
        "decision": rec.guard_.to_dict(),
        "evidence": shares_by_kind(rec.evidence_),
        "change": float(rec.change_.median()),
        "weights": context.frozen.weights_hash,
        "columns": {
            "y": y.numpy(),
            "split": part.numpy(),
            "before": before.numpy(),
            "after": after.numpy(),
            "degree": torch.bincount(context.edge_index[1], minlength=len(before)).numpy(),
        },
    }


def _labels_and_parts(rec: Reconstructor, data: Any | None) -> tuple[Tensor, Tensor]:
    """The labels there are (-1: none), and what part each node has."""
    n_nodes = len(rec.features_)
    y = torch.full((n_nodes,), -1, dtype=torch.int64)
    part = torch.zeros(n_nodes, dtype=torch.int8)
    mask = getattr(data, "test_mask", None)
    if isinstance(mask, Tensor) and isinstance(getattr(data, "y", None), Tensor):
        scored = mask.cpu().nonzero().flatten()
        y[scored] = data.y.cpu().long()[scored]  # type: ignore[union-attr]
        part[scored] = TEST
    for labels in (rec.labels_, rec._validation):
        y[labels.nodes] = labels.classes
        part[labels.nodes] = VALIDATION
    served = rec.labels_.nodes
    part[served[rec._trained_on[served]]] = TRAIN
    return y, part
