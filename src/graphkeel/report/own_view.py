"""A fitted reconstructor as the page shows it: the decision, what it rests on, classes, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkeel.report.run_view import changes, class_rows, shares_view
from graphkeel.report.sources import PAGE, Nodes


def own_view(facts: dict[str, Any]) -> dict[str, Any]:
    """Everything the template needs, in plain values."""
    columns = facts["columns"]
    nodes = [] if columns is None else [columns]
    left_out = max(0, facts["nodes"] - PAGE.nodes)
    words = f"{left_out:,} further nodes are not in this page; those that changed come first."
    return {
        **{name: value for name, value in facts.items() if name not in ("columns", "decision")},
        **facts["decision"],
        "n_classes": facts["classes"],
        "change": 100.0 * facts["change"],
        "evidence": shares_view([facts["evidence"]]),
        "changed": None if columns is None else int(_changed(columns).sum()),
        "tested": changes(nodes),
        "classes": class_rows(nodes) or [row for one in nodes for row in _shares(one, facts)],
        "shown_seeds": [0],
        "left_out": words * (left_out > 0),
    }


def own_nodes(facts: dict[str, Any]) -> dict[str, Any]:
    """Columns for the page's search; of a large graph, nodes that changed come first."""
    columns = facts["columns"]
    if columns is None:
        return {}
    shown = np.sort(np.argsort(~_changed(columns), kind="stable")[: PAGE.nodes])
    found = {name: values[shown].tolist() for name, values in columns.items()}
    return {"0": {**found, "id": shown.tolist()}}


def _changed(columns: Nodes) -> np.ndarray:
    changed: np.ndarray = columns["before"] != columns["after"]
    return changed


def _shares(columns: Nodes, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Share of all nodes that each class is predicted for, in percent, and how many nodes."""
    counts = [
        np.bincount(columns[name], minlength=facts["classes"]) for name in ("before", "after")
    ]
    shares = [(100.0 * count / max(1, facts["nodes"])).tolist() for count in counts]
    rows = zip(*shares, counts[1].tolist(), strict=True)
    return [
        {"label": label, "count": count, "before": before, "after": after, "gain": after - before}
        for label, (before, after, count) in enumerate(rows)
    ]
