"""The rows of the tables (the paper's own, its readings, ours, the rivals) and the jobs that they
need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.runs.fingerprint import method_version
from graphkeel.store.job import Job
from graphkeel_paper.baselines.bases import TUNED
from graphkeel_paper.baselines.registry import AVERAGED
from graphkeel_paper.specs import RunSpec

WORDS = "rownorm"  # the words themselves, rows divided by their sums


@dataclass(frozen=True)
class TableRow:
    """One row: how it is called, what computes it, and which row of the paper it answers.

    Attributes:
        name: what --only calls it.
        label: what the table calls it.
        group: `base`, `paper`, `reading` (another reading of the paper's row), `protocol` (the
            paper's row under settings that fit it), `ours`, `control` (what of ours does not need
            the trained model), `rival`, `averaged` (rivals under our averaging rule) or `reference`
            (something is trained). p-values are corrected over the rows of a group.
        method: a name that `find_method` knows.
        model, labels, features, split: as in `RunSpec`.
        options: of the method.
        paper: name of the row in the paper's table, where it has one.
        base: name of the row that gains are over.
        datasets: the columns it has; all of them when None.
        frozen: whether the model's weights stay as they are.
        own_model: whether it keeps its model and features whatever the table's are.
        heavy: minutes a job on the larger graphs; computed last.
    """

    name: str
    label: str
    group: str
    method: str
    model: str = "sgc"
    labels: str = "train"
    features: str = "auto"
    split: str = "biased"
    options: dict[str, Any] = field(default_factory=dict)
    paper: str | None = None
    base: str = "sgc"
    datasets: tuple[str, ...] | None = None
    frozen: bool = True
    own_model: bool = False
    heavy: bool = False

    def spec(self, dataset: str) -> RunSpec:
        """What the row measures on a dataset."""
        return RunSpec(
            dataset=dataset,
            model=self.model,
            method=self.method,
            labels=self.labels,
            split=self.split,
            features=self.features,
            method_options=self.options,
        )

    def has(self, dataset: str) -> bool:
        """Whether the row has a column."""
        return self.datasets is None or dataset in self.datasets


def _controller(
    name: str, label: str, group: str = "paper", *, paper: str | None = None
) -> TableRow:
    return TableRow(name, label, group, "controller", options={"controller": name}, paper=paper)


def _averaged(name: str, label: str) -> TableRow:
    method = f"{name}{AVERAGED}"
    return TableRow(method, label, "averaged", method)


def _on_words(model: str) -> TableRow:
    """A network of its own on words; the SGC beside it is trained, on the same words, and not
    asked."""
    name = f"{model}-words"
    label = f"{model.upper()} on words, trained on the same labels"
    return TableRow(name, label, "reference", name, features=WORDS, frozen=False, own_model=True)


def _one_split(name: str, label: str, row: TableRow | None = None) -> TableRow:
    """A row of the paper on one random split, so that seeds differ in their initialisation alone:
    the protocol that fits the published spreads of Photo and Computers."""
    return TableRow(
        f"{name}-one-split",
        f"{label}, one random split",
        "protocol",
        "none" if row is None else row.method,
        split="random:0",
        options={} if row is None else row.options,
        paper=name,
        base="sgc-one-split",
        datasets=("photo", "computers"),
    )


def _slow(name: str, label: str, row: TableRow | None = None) -> TableRow:
    """A row of the paper on a base with lr 0.01, weight decay 5e-4, 200 epochs and components of
    the features as they are: the settings that fit its Pubmed column."""
    return TableRow(
        f"{name}-lr0.01",
        f"{label}, lr 0.01",
        "protocol",
        "none" if row is None else row.method,
        model="sgc-lr0.01",
        features="pca-raw",
        options={} if row is None else row.options,
        paper=name,
        base="sgc-lr0.01",
        datasets=("pubmed",),
    )


BASE = TableRow("sgc", "SGC, untouched", "base", "none", paper="sgc")
TUNED_BASE = TableRow(
    "sgc-tuned", "SGC tuned on validation, untouched", "base", "none", model=f"sgc{TUNED}"
)
FRGNN = TableRow("frgnn-sgc", "FRGNN on SGC, one class", "paper", "frgnn", paper="frgnn-sgc")
NEURAL = _controller("neural", "neural controller, one class", paper="neural")

TABLE_1 = (
    BASE,
    TUNED_BASE,
    TableRow(
        "mh-aug", "MH-AUG (retrains)", "paper", "mh-aug", paper="mh-aug", frozen=False, heavy=True
    ),
    TableRow("kdga", "KDGA (retrains)", "paper", "kdga", paper="kdga", frozen=False, heavy=True),
    FRGNN,
    TableRow("frgnn-gcn", "FRGNN on GCN, one class", "paper", "frgnn-gcn", paper="frgnn-gcn"),
    NEURAL,
    _controller("neural-paper", "· in the paper's free form", "reading", paper="neural"),
    TableRow(
        "neural-all",
        "· all classes",
        "reading",
        "controller",
        options={"controller": "neural", "classes": "all"},
        paper="neural",
    ),
    TableRow(
        "picked-class",
        "· class picked on validation",
        "reading",
        "replace-one-picked",
        paper="neural",
    ),
    TableRow(
        "validation-too",
        "· validation nodes replaced too",
        "reading",
        "replace-one-validation",
        paper="neural",
    ),
    TableRow("m10", "· larger anchor, m = 10", "reading", "replace-one-m10", paper="neural"),
    TableRow("m100", "· larger anchor, m = 100", "reading", "replace-one-m100", paper="neural"),
    TableRow(
        "picked-class-m",
        "· class and m picked on validation",
        "reading",
        "replace-one-picked-m",
        paper="neural",
    ),
    TableRow(
        "frgnn-sgc-all", "FRGNN on SGC, all classes", "reading", "frgnn-all", paper="frgnn-sgc"
    ),
    TableRow(
        "frgnn-gcn-all", "FRGNN on GCN, all classes", "reading", "frgnn-gcn-all", paper="frgnn-gcn"
    ),
    _one_split("sgc", "SGC"),
    _one_split("frgnn-sgc", "FRGNN on SGC", FRGNN),
    _one_split("neural", "neural controller", NEURAL),
    _slow("sgc", "SGC"),
    _slow("frgnn-sgc", "FRGNN on SGC", FRGNN),
    _slow("neural", "neural controller", NEURAL),
    TableRow("auto", "auto (ours)", "ours", "auto"),
    TableRow("auto-balanced", "auto, classes count alike", "ours", "auto-balanced"),
    TableRow(
        "auto-tuned", "auto on the tuned SGC", "ours", "auto", model=f"sgc{TUNED}", own_model=True
    ),
    TableRow("no-model", "auto without the model's evidence", "control", "no-model"),
    TableRow("random-weights", "auto on random weights", "control", "random-weights"),
    TableRow("t3a", "T3A", "rival", "t3a"),
    TableRow("cs", "Correct & Smooth", "rival", "cs"),
    TableRow("smooth", "smoothing, labels clamped", "rival", "smooth"),
    TableRow("lame", "LAME", "rival", "lame"),
    TableRow("lp", "label propagation (no model)", "rival", "lp"),
    TableRow("gtrans", "GTrans", "rival", "gtrans"),
    _averaged("t3a", "T3A, our averaging"),
    _averaged("cs", "Correct & Smooth, our averaging"),
    _averaged("smooth", "smoothing, our averaging"),
    _averaged("lame", "LAME, our averaging"),
    _averaged("lp", "label propagation, our averaging"),
    _averaged("gtrans", "GTrans, our averaging"),
    _averaged("rivals", "five rivals in one pool, our averaging"),
    TableRow("retrain", "SGC trained on the same labels", "reference", "retrain", frozen=False),
    _on_words("gcn"),
    _on_words("appnp"),
    TableRow("srgnn", "SR-GNN (retrains)", "reference", "srgnn", frozen=False),
)

TABLE_3 = (
    BASE,
    NEURAL,
    _controller("neural-paper", "neural, the paper's free form", "reading", paper="neural"),
    _controller("mfac-blind", "MFAC, blind start", paper="mfac"),
    _controller("mfac-probed", "MFAC, probed start", "reading", paper="mfac"),
    _controller("pid", "PID", "ours"),
    _controller("lqr", "LQR", "ours"),
    _controller("deadbeat", "dead-beat (closed form)", "ours"),
)

TABLES = {1: TABLE_1, 3: TABLE_3}


def select_rows(table: int, only: list[str] | None = None) -> list[TableRow]:
    """The rows asked for, and those that they are compared with."""
    rows = TABLES[table]
    names = [row.name for row in rows]
    unknown = sorted(set(only or ()) - set(names))
    if unknown:
        raise ConfigError(f"table {table} has the rows {', '.join(names)}", got=", ".join(unknown))
    if only is None:
        return list(rows)
    wanted = {row.name for row in rows if row.name in only or row.group == "base"}
    wanted |= {row.base for row in rows if row.name in wanted}
    return [row for row in rows if row.name in wanted]


def under(rows: Sequence[TableRow], *, labels: str, model: str, features: str) -> list[TableRow]:
    """The same rows with other labels or another frozen model: conditions for which the paper has
    no figures."""
    if (labels, model, features) == (BASE.labels, BASE.model, BASE.features):
        return list(rows)
    kept = [row for row in rows if row.group != "protocol"]
    return [_under(row, labels, model, features) for row in kept]


def _under(row: TableRow, labels: str, model: str, features: str) -> TableRow:
    if row.group == "base":  # the untouched model uses no labels
        tuned = f"{model.removesuffix(TUNED)}{TUNED}"
        used = tuned if row.name == TUNED_BASE.name else model
        kind = model.removesuffix(TUNED).upper()
        label = f"{kind} tuned on validation" if used.endswith(TUNED) else kind
        return replace(row, label=f"{label}, untouched", model=used, features=features, paper=None)
    if row.own_model:
        return replace(row, labels=labels)
    return replace(row, labels=labels, model=model, features=features, paper=None)


# ---- jobs


def needed_jobs(
    rows: Sequence[TableRow], datasets: Sequence[str], seeds: Sequence[int]
) -> list[Job]:
    """The jobs of a table in the order in which they are best computed: all rows of a dataset's
    seed together, as they share the base model; the heavy rows last, so that a run that is killed
    has the most to show, and seed by seed, so that the first one can say what the others cost."""
    light = [(dataset, seed) for dataset in datasets for seed in seeds]
    heavy = [(dataset, seed) for seed in seeds for dataset in datasets]
    return [
        _job(row, dataset, seed)
        for is_heavy, places in ((False, light), (True, heavy))
        for dataset, seed in places
        for row in rows
        if row.heavy is is_heavy and row.has(dataset)
    ]


def _job(row: TableRow, dataset: str, seed: int) -> Job:
    spec = row.spec(dataset)
    data = _data_hash(dataset, seed, row.features, row.split)
    return Job(row.name, spec, seed, data, method_version(spec))


@lru_cache(maxsize=4096)
def _data_hash(dataset: str, seed: int, features: str, split: str) -> str:
    """Of the split and its features, in which most rows of a table do not differ."""
    return RunSpec(dataset, features=features, split=split).task(seed).hash
