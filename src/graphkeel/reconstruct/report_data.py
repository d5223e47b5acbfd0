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
        **stored_data(rec),
        "model": type(model).__name__ if isinstance(model, torch.nn.Module) else "a function",
        "weights": context.frozen.weights_hash,
        "suggested": _suggested(rec, before),
        "columns": {
            "y": y.numpy(),
            "split": part.numpy(),
            "before": before.numpy(),
            "after": after.numpy(),
            "degree": torch.bincount(context.edge_index[1], minlength=len(before)).numpy(),
        },
    }


def stored_data(rec: Reconstructor) -> dict[str, Any]:
    """Decision and sizes, which a reconstruction has without its graph."""
    n_nodes, n_features = rec.features_.shape
    return {
        "nodes": int(n_nodes),
        "edges": None if rec._fingerprint is None else rec._fingerprint.edges,
        "features": int(n_features),
        "classes": len(rec.classes_),
        "labels": len(rec.labels_),
        "decision": rec.guard_.to_dict(),
        "evidence": shares_by_kind(rec.evidence_),
        "change": float(rec.change_.median()),
    }


def _suggested(rec: Reconstructor, before: Tensor, most: int = 20) -> list[dict[str, Any]]:
    """Nodes whose labels would help most, with their likely classes; none where all are known."""
    if len(rec.labels_) + len(rec._validation) >= len(before):
        return []
    nodes = rec.suggest(most)
    sure, classes = rec._probabilities()[nodes].topk(min(2, len(rec.classes_)), dim=1)
    return [
        {"node": node, "untouched": int(before[node]), "likely": likely, "percent": percent}
        for node, likely, percent in zip(
            nodes.tolist(), classes.tolist(), (100.0 * sure).tolist(), strict=True
        )
    ]


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
