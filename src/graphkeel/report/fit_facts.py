"""Facts of a fit, for its page: decision, sizes, nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from graphkeel.reconstruct.explain import Source
    from graphkeel.reconstruct.reconstructor import Reconstructor

KINDS = {
    "model": "the frozen model",
    "labels": "labels spread over the graph",
    "features": "features like those of labelled nodes",
    "self-training": "self-training",
}
_TRAIN, _VALIDATION, _TEST = 1, 2, 3  # codes of a node's part in the page's list


def fit_facts(rec: Reconstructor, data: Any | None) -> dict[str, Any]:
    """Data of the report: decision, sizes and a column per fact of every node; `data` may have the
    labels of test nodes."""
    context = rec._context
    before = context.answers
    after = context.logits_for(rec.features_).argmax(dim=1)
    y, part = _labels_and_parts(rec, data)
    model = context.frozen.model
    return {
        **stored_facts(rec),
        "model": type(model).__name__ if isinstance(model, torch.nn.Module) else "a function",
        "weights": context.frozen.weights_hash,
        "suggested": suggested(rec, before),
        "columns": {
            "y": y,
            "split": part,
            "before": before,
            "after": after.numpy(),
            "degree": torch.bincount(context.edge_index[1], minlength=len(before)).numpy(),
        },
    }


def stored_facts(rec: Reconstructor) -> dict[str, Any]:
    """Decision and sizes, which a reconstruction has without its graph."""
    n_nodes, n_features = rec.features_.shape
    return {
        "nodes": int(n_nodes),
        "edges": rec._fingerprint.edges,
        "features": int(n_features),
        "classes": len(rec.classes_),
        "labels": len(rec.labels_),
        "decision": rec.guard_.to_dict(),
        "evidence": shares_by_kind(rec.evidence_),
        "change": float(rec.change_.median()),
        "weights": "",
        "suggested": [],
        "steps": [],
        "folder": None,
    }


def suggested(
    rec: Reconstructor, before: NDArray[np.int64], most: int = 20
) -> list[dict[str, Any]]:
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


def _labels_and_parts(rec: Reconstructor, data: Any | None) -> tuple[Any, Any]:
    """The labels there are (-1: none), and what part each node has."""
    y = np.full(len(rec.features_), -1)
    part = np.zeros(len(y), np.int8)
    mask = getattr(data, "test_mask", None)
    if isinstance(mask, Tensor) and isinstance(getattr(data, "y", None), Tensor):
        scored = mask.cpu().nonzero().flatten().numpy()
        y[scored] = data.y.cpu().long().numpy()[scored]  # type: ignore[union-attr]
        part[scored] = _TEST
    known = rec._known()
    y[known.nodes] = known.classes
    part[known.nodes] = np.where(rec._trained_on[known.nodes], _TRAIN, _VALIDATION)
    return y, part


def shares_by_kind(sources: tuple[Source, ...]) -> dict[str, float]:
    """The share of each group, in the words of `KINDS`, largest first."""
    sums = dict.fromkeys(KINDS.values(), 0.0)
    for source in sources:
        sums[KINDS[source.kind]] += source.share
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
