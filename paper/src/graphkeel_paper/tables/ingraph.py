"""A frozen model on its own graph: `keel-paper table ingraph`, with every label, beside its
architecture retrained on the same labels, and `keel-paper table examination`, on nodes and graphs
that no choice was made on.

On Cora, Citeseer and Pubmed the examination scores the nodes in no public mask, and the training
sets are drawn anew (numbers 100 and up; the published lists end at 99). Its other graphs were never
used to choose a candidate or a rule of the method on its own graph; paper/docs/research.md says who
saw what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkeel.graph.datasets import PAPER_DATASETS
from graphkeel_paper.specs import RunSpec
from graphkeel_paper.tables.layout import COMPARISON
from graphkeel_paper.tables.plan import (
    BASE,
    CONTROLS,
    RIVALS,
    UNTOUCHED,
    WORDS,
    Plan,
    Request,
    Row,
    Table,
)

if TYPE_CHECKING:
    from graphkeel_paper.tables.filled import Filled

_DATASETS = (*PAPER_DATASETS, "digits", "cora_ml", "chameleon", "wisconsin")
_MODELS = ("sgc", "gcn")
_LABELS = "train+val"
_TOO_SMALL_TO_BIAS = ("wisconsin",)  # a class has ten nodes: a random split needs fewer

_ROWS = (
    UNTOUCHED,
    Row("auto", "auto", "ours", "auto"),
    *CONTROLS,
    Row("retrain", "retrained on the same labels", "trained", "retrain"),
    Row("gcn-words", "GCN trained on the same labels", "trained", "gcn-words"),
)


def _make_plan(plan: Plan, request: Request) -> Plan:
    wanted = (request.model,) if request.model else _MODELS
    models = {f"frozen {model.upper()}": model for model in wanted}
    return plan.with_jobs(
        lambda row, block, column: _spec(row, models[block], column),
        blocks=list(models),
        columns=list(request.datasets or _DATASETS),
        variant=request.model,
    )


def _spec(row: Row, model: str, dataset: str) -> RunSpec:
    return RunSpec(
        dataset,
        model,
        row.method,
        labels="train" if row.group == BASE else _LABELS,
        split="random" if dataset in _TOO_SMALL_TO_BIAS else "biased",
        features=features_for(model, dataset),
    )


def features_for(model: str, dataset: str) -> str:
    """SGC gets twenty components, as in the paper; deeper models get the words as they are."""
    if dataset == "digits":
        return "raw"
    return "pca" if model == "sgc" else WORDS


def _sentences(table: Filled) -> list[str]:
    """How `auto` compares with retraining, block by block."""
    said = []
    for block in table.plan.blocks:
        ours = table.at("auto", block)
        theirs = table.at("retrain", block)
        differences = {}
        for column in ours.keys() & theirs.keys():
            mine = ours[column].mean
            other = theirs[column].mean
            if mine is not None and other is not None:
                differences[column] = mine - other
        if not differences:
            continue
        above = sum(difference > 0 for difference in differences.values())
        worst = min(differences, key=differences.__getitem__)
        said.append(
            f"{block}: auto is above the same model retrained on the same labels on {above} of "
            f"{len(differences)} graphs; at worst {differences[worst]:+.2f} ({worst})."
        )
    return said


TABLE = Table(
    "ingraph",
    "Every label serves (training and validation): the frozen model on its own graph",
    _ROWS,
    _make_plan,
    COMPARISON,
    _sentences,
)


# ---- the examination

_FIRST_SPLIT = 100  # the published lists, all of which were looked at, are 0 to 99
_PUBLIC = ("cora", "citeseer", "pubmed")
_UNSEEN = (*_PUBLIC, "acmv9", "citationv1", "dblpv7", "twitch_ENGB")
_BUDGETS = ("train", "train+half-val")  # train+val is cross-fitted: six times the work
_COMPONENTS = "pca"  # twenty, as in the paper

_EXAMINED_ROWS = (
    UNTOUCHED,
    Row("sgc-tuned", "tuned on validation, untouched", BASE, "none", model="sgc-tuned"),
    Row("auto", "auto", "ours", "auto"),
    Row("auto-tuned", "auto on the tuned model", "ours", "auto", model="sgc-tuned"),
    *CONTROLS,
    *RIVALS,
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


def _examination_plan(plan: Plan, request: Request) -> Plan:
    columns = list(request.datasets or _UNSEEN)
    seeds = [_FIRST_SPLIT + seed for seed in request.seeds]
    return plan.with_jobs(_examined, blocks=list(_BUDGETS), columns=columns, seeds=seeds)


def _examined(row: Row, labels: str, dataset: str) -> RunSpec:
    return RunSpec(
        dataset,
        row.model,
        row.method,
        labels="train" if row.group == BASE else labels,
        split="outside" if dataset in _PUBLIC else "biased",
        features=_COMPONENTS if row.features == "auto" else row.features,
    )


def _examination_sentences(table: Filled) -> list[str]:
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


EXAMINATION = Table(
    "examination",
    "Examination: a frozen SGC on nodes and graphs that no choice was made on",
    _EXAMINED_ROWS,
    _examination_plan,
    COMPARISON,
    _examination_sentences,
)
