"""A run of several seeds and a single fit as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from graphkeel.report.sources import PAGE, Nodes, RunFiles
from graphkeel.store.statistics import TEST, paired_p, summarise

KEEL = "keel"  # the library's program
TEST_NODE = 3  # code of a test node in `split`; 1 is training, 2 validation, 0 none of them


def run_view(run: RunFiles) -> dict[str, Any]:
    """Everything the template needs, in plain values."""
    base = [row["base"] for row in run.rows]
    after = [row["accuracy"] for row in run.rows]
    seeds = _shown_seeds(run)
    rows = [_seed_row(row) for row in run.rows]
    largest = [one[name].max() for one in run.nodes.values() for name in _CLASSES]
    return {
        "spec": run.spec,
        "verdict": _verdict(run),
        **_written(run.rows),
        "lead": _lead(run.spec, len(run.rows)),
        "program": _program(run.manifest),
        "versions": {
            k: v for k, v in run.manifest.items() if k != "program" and isinstance(v, str)
        },
        "base": asdict(summarise(base)),
        "after": asdict(summarise(after)),
        "gain": float(np.mean(after) - np.mean(base)),
        "p_value": paired_p(after, base),
        "test": TEST,
        "seeds": rows,
        "reasons": any(row["reason"] or row["chosen"] for row in rows),
        "paper": run.manifest.get("published", {}),
        "n_classes": 1 + max(map(int, largest), default=-1),
        "classes": class_rows(list(run.nodes.values())),
        "tested": changes(list(run.nodes.values())),
        "shown_seeds": seeds,
        "left_out": _left_out(len(run.nodes) - len(seeds)),
        "data": run.rows[0].get("data", ""),
        "weights": run.rows[0].get("weights", ""),
    }


def _verdict(run: RunFiles) -> dict[str, str]:
    """In three words, how it went; the untouched model is not judged against itself."""
    gains = [row["accuracy"] - row["base"] for row in run.rows]
    better = sum(gain > 0 for gain in gains)
    if run.spec.get("method") == "none":
        return {"kind": "mild", "words": "the untouched model"}
    if not any(gains):
        return {"kind": "mild", "words": "left unchanged"}
    kind = "good" if min(gains) >= 0 else "bad" if better == 0 else "mild"
    words = "better" if len(gains) == 1 and better else f"better on {better} of {len(gains)} seeds"
    return {"kind": kind, "words": words}


def _written(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Change and evidence of the seeds in which features were written; None where nobody noted
    them."""
    told = [row.get("decision") or {} for row in rows if not row["kept"]]
    told = [one for one in told if "change" in one and "evidence" in one]
    change = 100.0 * float(np.mean([one["change"] for one in told])) if told else None
    return {"change": change, "evidence": shares_view([one["evidence"] for one in told])}


def shares_view(found: Sequence[dict[str, float]]) -> list[dict[str, Any]]:
    """Shares of the evidence in percent, largest first, over several fits; nothing where no sum of
    evidence decided."""
    sums = {name: sum(one[name] for one in found) for name in (found[0] if found else ())}
    shares = {name: 100.0 * total / len(found) for name, total in sums.items()}
    rows = [{"name": name, "share": share} for name, share in shares.items()]
    return sorted(rows, key=lambda row: -row["share"]) if any(shares.values()) else []


def _program(manifest: dict[str, Any]) -> str:
    """Whose run it is; those that do not say were made when one program had all options."""
    return KEEL if manifest.get("program") == KEEL else "keel-paper"


def is_adaptation(spec: dict[str, Any]) -> bool:
    """Whether a run took a model to another graph."""
    return "source" in spec and "target" in spec


def _lead(spec: dict[str, Any], n_seeds: int) -> str:
    """The subject of the accuracies."""
    seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds"
    if is_adaptation(spec):
        return (
            f"The model was trained on {spec['source']} and met {spec['target']}, where the labels "
            f"“{spec['target_labels']}” were known. "
            f"Accuracies are percent of the target's other nodes, over {seeds}."
        )
    return (
        f"Accuracies are percent of the test nodes, over {seeds} of the {spec['split']} split; the "
        f"method may use the labels “{spec['labels']}” and never saw a test label."
    )


def run_nodes(run: RunFiles | None) -> dict[str, Any]:
    """Columns of every node for the page's search, seed by seed."""
    if run is None:
        return {}
    return {
        str(seed): {name: run.nodes[seed][name].tolist() for name in _COLUMNS}
        for seed in _shown_seeds(run)
    }


_CLASSES = ("y", "before", "after")
_COLUMNS = (*_CLASSES, "split", "degree")


def _shown_seeds(run: RunFiles) -> list[int]:
    shown: list[int] = []
    rows = 0
    for seed in sorted(run.nodes):
        rows += len(run.nodes[seed]["y"])
        if shown and rows > PAGE.nodes:
            break
        shown.append(seed)
    return shown


def _left_out(seeds: int) -> str:
    return f"Nodes of {seeds} further seeds are in the run folder, not in this page." * (seeds > 0)


def _seed_row(row: dict[str, Any]) -> dict[str, Any]:
    decision = row.get("decision") or {}
    chosen = decision.get("chosen")
    return {
        "seed": row["seed"],
        "before": row["base"],
        "after": row["accuracy"],
        "gain": row["accuracy"] - row["base"],
        "kept": row["kept"],
        "seconds": row.get("seconds"),
        "reason": str(decision.get("reason", "")),
        "chosen": ", ".join(map(str, chosen)) if isinstance(chosen, list) else str(chosen or ""),
    }


def class_rows(nodes: Sequence[Nodes]) -> list[dict[str, Any]]:
    """Test accuracy class by class, all seeds together; nothing where no node is tested."""
    y, before, after = _tested(nodes)
    rows = []
    for label in np.unique(y):
        mine = y == label
        right = [100.0 * float((part[mine] == label).mean()) for part in (before, after)]
        row = {"label": int(label), "count": int(mine.sum()) / len(nodes)}
        rows.append({**row, "before": right[0], "after": right[1], "gain": right[1] - right[0]})
    return rows


def _tested(nodes: Sequence[Nodes]) -> list[np.ndarray]:
    """Label, and class before and after, of the test nodes of all seeds."""
    masks = [(one["split"] == TEST_NODE) & (one["y"] >= 0) for one in nodes]
    return [
        np.concatenate([[], *(one[name][mask] for one, mask in zip(nodes, masks, strict=True))])
        for name in ("y", "before", "after")
    ]


def changes(nodes: Sequence[Nodes]) -> dict[str, float] | None:
    """Test nodes a seed that are right before and after, and those set right and made wrong; None
    where no node is tested."""
    y, before, after = _tested(nodes)
    if not len(y):
        return None
    right = {"before": before == y, "after": after == y}
    moved = before != after
    counts = {**right, "gained": moved & right["after"], "lost": moved & right["before"]}
    shares = {name: float(mask.sum()) / len(nodes) for name, mask in counts.items()}
    return {**shares, "nodes": len(y) / len(nodes)}


# ---- a single fit


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
        "classes": class_rows(nodes) or [row for one in nodes for row in _class_shares(one, facts)],
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


def _class_shares(columns: Nodes, facts: dict[str, Any]) -> list[dict[str, Any]]:
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
