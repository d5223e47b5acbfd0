"""`keel table examination`: what was found elsewhere, on nodes and graphs that no choice was made
on.

On Cora, Citeseer and Pubmed the scored nodes are those in no public mask, and the training sets are
drawn anew (numbers 100 and up; the published lists end at 99). The other graphs were never used to
choose a candidate or a rule of the method on its own graph; paper/docs/research.md says who saw
what."""

from __future__ import annotations

from collections.abc import Sequence

from graphkeel_paper.adapt.comparison import (
    BASE,
    CONTROLS,
    Filled,
    PlacedJob,
    Plan,
    Row,
    pick_rows,
)
from graphkeel_paper.adapt.ingraph import graph_job
from graphkeel_paper.specs import RunSpec

NAME = "examination"
FIRST_SPLIT = 100  # the published lists, all of which were looked at, are 0 to 99
PUBLIC = ("cora", "citeseer", "pubmed")
DATASETS = (*PUBLIC, "acmv9", "citationv1", "dblpv7", "twitch_ENGB")
LABELS = ("train", "train+half-val")  # train+val is cross-fitted: six times the work
COMPONENTS = "pca"  # twenty, as in the paper
WORDS = "rownorm"

ROWS = (
    BASE,
    Row("sgc-tuned", "tuned on validation, untouched", "base", "none", model="sgc-tuned"),
    Row("auto", "auto", "ours", "auto"),
    Row("auto-tuned", "auto on the tuned model", "ours", "auto", model="sgc-tuned"),
    *CONTROLS,
    Row("t3a", "T3A", "frozen", "t3a"),
    Row("cs", "Correct & Smooth", "frozen", "cs"),
    Row("smooth", "smoothing, labels clamped", "frozen", "smooth"),
    Row("lame", "LAME", "frozen", "lame"),
    Row("lp", "label propagation", "frozen", "lp"),
    Row("rivals+avg", "these five in one pool, our averaging", "frozen", "rivals+avg"),
    Row("retrain", "SGC trained on the same labels", "trained", "retrain"),
    Row("gcn-words", "GCN on words, the same labels", "trained", "gcn-words", features=WORDS),
    Row("appnp-words", "APPNP on words, the same labels", "trained", "appnp-words", features=WORDS),
)


def plan_examination(
    seeds: Sequence[int],
    *,
    only: list[str] | None = None,
    datasets: Sequence[str] | None = None,
    row_budget: float | None = None,
) -> Plan:
    """What has to be measured."""
    rows = pick_rows(ROWS, only)
    columns = list(datasets or DATASETS)
    numbers = [FIRST_SPLIT + seed for seed in seeds]
    return Plan(
        name=NAME,
        title="Examination: a frozen SGC on nodes and graphs that no choice was made on",
        rows=rows,
        blocks=list(LABELS),
        columns=columns,
        seeds=numbers,
        placed=[
            PlacedJob(graph_job(row, _spec(dataset, row, labels), number), labels, dataset)
            for dataset in columns
            for number in numbers
            for labels in LABELS
            for row in rows
        ],
        sentences=sentences,
        row_budget=row_budget,
    )


def _spec(dataset: str, row: Row, labels: str) -> RunSpec:
    return RunSpec(
        dataset,
        row.model or "sgc",
        row.method,
        labels="train" if row.group == BASE.group else labels,
        split="outside" if dataset in PUBLIC else "biased",
        features=row.features or COMPONENTS,
    )


def sentences(table: Filled) -> list[str]:
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
