"""A fitted reconstructor as the page shows it: the decision, its candidates, classes, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

TEST_NODE = 3
FEW_CANDIDATES = 12  # a longer list is shown when it is asked for
MOST_NAMES = 3  # candidates named in the sentence; the list marks all
MOST_NODES = 120_000  # rows in the page; beyond it the nodes that changed come first


def own_view(story: dict[str, Any]) -> dict[str, Any]:
    """Everything the template needs, in plain values.

    Args:
        story: what `Reconstructor.report` tells.
    """
    decision = story["decision"]
    columns = story["columns"]
    changed = columns["before"] != columns["after"]
    return {
        **{key: story[key] for key in ("model", "nodes", "edges", "features", "classes", "labels")},
        "weights": story["weights"],
        "reason": decision["reason"],
        "chosen": decision["chosen"],
        "named": _named(decision["chosen"]),
        "few": FEW_CANDIDATES,
        "source": decision["source"],
        "n_labels": decision["n_labels"],
        "untouched": decision["untouched"],
        "accuracy": decision["accuracy"],
        "statement": decision["statement"],
        "scores": sorted(decision["scores"], key=lambda score: -score["accuracy"]),
        "changed": int(changed.sum()),
        "tested": _tested(columns),
        "by_class": _by_class(columns, story["classes"]),
        "left_out": max(0, len(changed) - MOST_NODES),
    }


def _named(chosen: list[str]) -> list[str]:
    """All of a few, the first of many."""
    return chosen if len(chosen) <= MOST_NAMES + 1 else chosen[:MOST_NAMES]


def own_nodes(story: dict[str, Any]) -> dict[str, Any]:
    """Columns for the page's search.

    Args:
        story: what `Reconstructor.report` tells.
    """
    columns = story["columns"]
    changed = columns["before"] != columns["after"]
    order = np.argsort(~changed, kind="stable")[:MOST_NODES]
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
