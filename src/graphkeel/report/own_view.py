"""A fitted reconstructor as the page shows it: the decision, what it rests on, classes, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkeel.report.run_view import TEST_NODE
from graphkeel.report.sources import PAGE


def own_view(facts: dict[str, Any]) -> dict[str, Any]:
    """Everything the template needs, in plain values."""
    decision = facts["decision"]
    columns = facts["columns"]
    changed = None if columns is None else columns["before"] != columns["after"]
    shares = facts["evidence"] if any(facts["evidence"].values()) else {}  # no sum decided
    return {
        **{key: facts[key] for key in ("model", "nodes", "edges", "features", "classes", "labels")},
        "weights": facts["weights"],
        "suggested": facts["suggested"],
        "steps": facts.get("steps", []),
        "folder": facts.get("folder"),
        "reason": decision["reason"],
        "kept": decision["kept"],
        "statement": decision["statement"],
        "expected": decision["expected"],
        "change": 100.0 * facts["change"],
        "evidence": [{"name": name, "share": 100.0 * share} for name, share in shares.items()],
        "changed": None if changed is None else int(changed.sum()),
        "tested": None if columns is None else _tested(columns),
        "by_class": [] if columns is None else _by_class(columns, facts["classes"]),
        "left_out": 0 if changed is None else max(0, len(changed) - PAGE.nodes),
    }


def own_nodes(facts: dict[str, Any]) -> dict[str, Any]:
    """Columns for the page's search."""
    columns = facts["columns"]
    if columns is None:
        return {}
    changed = columns["before"] != columns["after"]
    order = np.argsort(~changed, kind="stable")[: PAGE.nodes]
    shown = np.sort(order)
    found = {name: values[shown].tolist() for name, values in columns.items()}
    return {"0": {**found, "id": shown.tolist()}}


def _tested(columns: dict[str, Any], label: int | None = None) -> dict[str, Any] | None:
    """Accuracy on nodes whose label no choice has seen, of one class or all; None where there are
    none."""
    mine = (columns["split"] == TEST_NODE) & (columns["y"] >= 0)
    if label is not None:
        mine &= columns["y"] == label
    if not mine.any():
        return None
    y = columns["y"][mine]
    before, after = (
        100.0 * float((columns[name][mine] == y).mean()) for name in ("before", "after")
    )
    return {"nodes": int(mine.sum()), "before": before, "after": after, "gain": after - before}


def _by_class(columns: dict[str, Any], n_classes: int) -> list[dict[str, Any]]:
    """How many nodes each class is predicted for, and how many of its own are right."""
    before, after = (
        np.bincount(columns[name], minlength=n_classes) for name in ("before", "after")
    )
    n = max(1, len(columns["before"]))
    return [
        {
            "label": label,
            "before": 100.0 * int(before[label]) / n,
            "after": 100.0 * int(after[label]) / n,
            "before_nodes": int(before[label]),
            "after_nodes": int(after[label]),
            "tested": _tested(columns, label),
        }
        for label in range(n_classes)
    ]
