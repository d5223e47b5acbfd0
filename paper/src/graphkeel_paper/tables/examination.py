"""`keel-paper table examination`: nodes and graphs that no choice was made on.

On Cora, Citeseer and Pubmed the scored nodes are those in no public mask, and the training sets are
drawn anew (numbers 100 and up; the published lists end at 99). The other graphs were never used to
choose a candidate or a rule of the method on its own graph; paper/docs/research.md says who saw
what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkeel_paper.specs import RunSpec
from graphkeel_paper.tables.layout import COMPARISON
from graphkeel_paper.tables.plan import BASE, CONTROLS, UNTOUCHED, WORDS, Plan, Request, Row, Table

if TYPE_CHECKING:
    from graphkeel_paper.tables.filled import Filled

_FIRST_SPLIT = 100  # the published lists, all of which were looked at, are 0 to 99
_PUBLIC = ("cora", "citeseer", "pubmed")
_DATASETS = (*_PUBLIC, "acmv9", "citationv1", "dblpv7", "twitch_ENGB")
_LABELS = ("train", "train+half-val")  # train+val is cross-fitted: six times the work
_COMPONENTS = "pca"  # twenty, as in the paper

_ROWS = (
    UNTOUCHED,
    Row("sgc-tuned", "tuned on validation, untouched", BASE, "none", model="sgc-tuned"),
    Row("auto", "auto", "ours", "auto"),
    Row("auto-tuned", "auto on the tuned model", "ours", "auto", model="sgc-tuned"),
    *CONTROLS,
    Row("t3a", "T3A", "frozen", "t3a"),
    Row("cs", "Correct & Smooth", "frozen", "cs"),
    Row("smooth", "smoothing, labels clamped", "frozen", "smooth"),
    Row("lame", "LAME", "frozen", "lame"),
    Row("lp", "label propagation", "frozen", "lp"),
    Row("rivals+avg", "these five in one pool, our averaging", "frozen", "rivals+avg"),
    Row("t3a+self", "T3A, a round of self-training", "frozen", "t3a+self"),
    Row("cs+self", "Correct & Smooth, a round of self-training", "frozen", "cs+self"),
    Row("smooth+self", "smoothing, a round of self-training", "frozen", "smooth+self"),
    Row("lp+self", "label propagation, a round of self-training", "frozen", "lp+self"),
    Row("retrain", "SGC trained on the same labels", "trained", "retrain"),
    Row("retrain+self", "the same, a round of self-training", "trained", "retrain+self"),
    Row("gcn-words", "GCN on words, the same labels", "trained", "gcn-words", features=WORDS),
    Row("appnp-words", "APPNP on words, the same labels", "trained", "appnp-words", features=WORDS),
)


def _make_plan(plan: Plan, request: Request) -> Plan:
    columns = list(request.datasets or _DATASETS)
    seeds = [_FIRST_SPLIT + seed for seed in request.seeds]
    return plan.with_jobs(_spec, blocks=list(_LABELS), columns=columns, seeds=seeds)


def _spec(row: Row, labels: str, dataset: str) -> RunSpec:
    return RunSpec(
        dataset,
        row.model,
        row.method,
        labels="train" if row.group == BASE else labels,
        split="outside" if dataset in _PUBLIC else "biased",
        features=_COMPONENTS if row.features == "auto" else row.features,
    )


def _sentences(table: Filled) -> list[str]:
    """Where `auto` stands, block by block."""
    said = []
    for block in table.plan.blocks:
        mine = [cell for cell in table.at("auto", block).values() if cell.mean is not None]
        if not mine:
            continue
        frozen = sum(table.is_above(cell, ("frozen", "base")) for cell in mine)
        trained = sum(table.is_above(cell, ("trained",)) for cell in mine)
        said.append(
            f"{block}: of {len(mine)} graphs auto is above every row that leaves the model alone "
            f"on {frozen}, and above every row that trains one on {trained}."
        )
    return said


TABLE = Table(
    "examination",
    "Examination: a frozen SGC on nodes and graphs that no choice was made on",
    _ROWS,
    _make_plan,
    COMPARISON,
    _sentences,
)
