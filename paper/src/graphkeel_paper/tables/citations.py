"""`keel-paper table citations`: the benchmark of graph domain adaptation, all words as features.

Published rows are quoted; A2GNN, UDAGCN and SOGA are run here on the same files beside ours, which
leaves the weights of an SGC, a GCN and an MLP as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphkeel_paper.specs import AdaptSpec
from graphkeel_paper.tables.adapt import CITATION_PAIRS
from graphkeel_paper.tables.layout import COMPARISON
from graphkeel_paper.tables.plan import BASE, Plan, Request, Row, Table
from graphkeel_paper.tables.published import CITATIONS

if TYPE_CHECKING:
    from graphkeel_paper.tables.filled import Filled

_LABEL_COUNTS = (0, 100)
_RIVAL = "a2gnn"
# The frozen models: APPNP without hops is an MLP.
_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgc": ("sgc", {"k": 2}),
    "gcn": ("gcn", {}),
    "mlp": ("appnp", {"k": 0}),
}
_LEGEND = (
    COMPARISON.legend[0],
    "Rows that are quoted: published figures at second hand, without a target label.",
    "The labels and the scored nodes are the same in all other rows of a column.",
)


def _untouched(model: str) -> Row:
    return Row(f"none-{model}", f"{model.upper()}, untouched", BASE, "none", model=model)


def _ours(model: str) -> Row:
    label = f"auto on the frozen {model.upper()}"
    return Row(f"auto-{model}", label, "ours", "auto", model=model, base=f"none-{model}")


_ROWS = (
    *map(_untouched, _MODELS),
    *map(_ours, _MODELS),
    Row("soga", "SOGA on the SGC, without the source", "trained", "soga"),
    Row("udagcn", "UDAGCN, run here", "trained", "udagcn", keep="graph"),
    Row(_RIVAL, "A2GNN, run here", "trained", _RIVAL, keep="graph"),
    *(Row(name, f"{name}, quoted", "published", "none", paper=name) for name in CITATIONS),
)


def _make_plan(plan: Plan, request: Request) -> Plan:
    pairs = {AdaptSpec(*pair).dataset: pair for pair in request.pairs or CITATION_PAIRS}
    counts = {f"{count} target labels": count for count in request.counts or _LABEL_COUNTS}

    def spec_of(row: Row, block: str, column: str) -> AdaptSpec | None:
        if row.group == "published":
            return None
        model, options = _MODELS[row.model]
        return AdaptSpec(
            *pairs[column],
            model=model,
            method=row.method,
            keep=row.keep,
            target_labels=counts[block],
            reserve=max(_LABEL_COUNTS),
            features="raw",
            model_options=options,
        )

    return plan.with_jobs(spec_of, blocks=list(counts), columns=list(pairs))


def _sentences(table: Filled) -> list[str]:
    """The gap of each of our rows to A2GNN, pair by pair."""
    said = []
    for block in table.plan.blocks:
        theirs = table.at(_RIVAL, block)
        for row in table.plan.rows:
            mine = table.at(row.name, block) if row.group == "ours" else {}
            gaps = {
                column: cell.mean - other
                for column, cell in mine.items()
                if cell.mean is not None
                and column in theirs
                and (other := theirs[column].mean) is not None
            }
            if gaps:
                near = sum(gap >= -1.0 for gap in gaps.values())
                each = ", ".join(f"{column} {gap:+.2f}" for column, gap in gaps.items())
                said.append(
                    f"{row.label}, {block}, minus A2GNN run here: {each}; within a point or above "
                    f"on {near} of {len(gaps)}."
                )
    return said


TABLE = Table(
    "citations",
    "Graph domain adaptation's own pairs, all 6,775 words: accuracy (micro-F1) on the target",
    _ROWS,
    _make_plan,
    replace(COMPARISON, legend=_LEGEND),
    _sentences,
    CITATIONS,
)
