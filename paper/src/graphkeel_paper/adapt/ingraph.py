"""`keel table ingraph`: on the graph the model was trained on, with every label serving, beside the
same architecture retrained on the same labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from graphkeel.graph.datasets.names import PAPER_DATASETS
from graphkeel.store.job import Job
from graphkeel_paper.adapt.comparison import (
    BASE,
    CONTROLS,
    Filled,
    PlacedJob,
    Plan,
    Row,
    pick_rows,
)
from graphkeel_paper.specs import RunSpec

NAME = "ingraph"
DATASETS = (*PAPER_DATASETS, "digits", "cora_ml", "chameleon", "wisconsin")
MODELS = ("sgc", "gcn")
LABELS = "train+val"
TOO_SMALL_TO_BIAS = ("wisconsin",)  # a class has ten nodes: a random split needs fewer

ROWS = (
    BASE,
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


def plan_ingraph_table(
    seeds: Sequence[int],
    *,
    only: list[str] | None = None,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] = MODELS,
    row_budget: float | None = None,
) -> Plan:
    """What has to be measured."""
    rows = pick_rows(ROWS, only)
    columns = list(datasets or DATASETS)
    places = [(_block(model), dataset, model) for model in models for dataset in columns]
    return Plan(
        name=NAME,
        title="Every label serves (training and validation): the frozen model on its own graph",
        rows=rows,
        blocks=[_block(model) for model in models],
        columns=columns,
        seeds=list(seeds),
        placed=[
            PlacedJob(graph_job(row, _spec(model, dataset, row), seed), block, dataset)
            for block, dataset, model in places
            for seed in seeds
            for row in rows
        ],
        sentences=sentences,
        row_budget=row_budget,
        variant=models[0] if len(models) == 1 else None,
    )


def graph_job(row: Row, spec: RunSpec, seed: int) -> Job:
    """The job of a row on a graph of its own."""
    data = _data_hash(spec.dataset, spec.features, spec.split, seed)
    return Job(row.name, spec, seed, data, spec.code_version())


@lru_cache(maxsize=4096)
def _data_hash(dataset: str, features: str, split: str, seed: int) -> str:
    """Of the split and its features, in which most rows of a table do not differ."""
    return RunSpec(dataset, features=features, split=split).data_hash(seed)


def _spec(model: str, dataset: str, row: Row) -> RunSpec:
    labels = "train" if row is BASE else LABELS
    features = features_for(model, dataset)
    split = "random" if dataset in TOO_SMALL_TO_BIAS else "biased"
    return RunSpec(dataset, model, row.method, labels=labels, split=split, features=features)


def features_for(model: str, dataset: str) -> str:
    """SGC gets twenty components, as in the paper; deeper models get the words as they are."""
    if dataset == "digits":
        return "raw"
    return "pca" if model == "sgc" else "rownorm"


def _block(model: str) -> str:
    return f"frozen {model.upper()}"


def sentences(table: Filled) -> list[str]:
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
