"""`keel-paper table ingraph`: the frozen model on its own graph with every label, beside its
architecture retrained on the same labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkeel.graph.datasets import PAPER_DATASETS
from graphkeel_paper.specs import RunSpec
from graphkeel_paper.tables.layout import COMPARISON
from graphkeel_paper.tables.plan import BASE, CONTROLS, UNTOUCHED, WORDS, Plan, Request, Row, Table

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
    Row("t3a", "T3A", "frozen", "t3a"),
    Row("lame", "LAME", "frozen", "lame"),
    Row("cs", "Correct & Smooth", "frozen", "cs"),
    Row("smooth", "smoothing, labels clamped", "frozen", "smooth"),
    Row("lp", "label propagation", "frozen", "lp"),
    Row("finetune", "fine-tuned on the new labels", "trained", "finetune"),
    Row("retrain", "retrained on the same labels", "trained", "retrain"),
    Row("gcn-words", "GCN trained on the same labels", "trained", "gcn-words"),
    Row("pool", "plain pool, our averaging", "trained", "pool"),
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
