"""The rows of the tables (the paper's own, its readings, ours, the rivals) and the jobs that they
need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.paper.tables.fingerprint import method_version
from graphkeel.paper.tables.job import Job, RunSpec

LARGE = ("pubmed", "photo", "computers")  # where the methods that retrain at length run fewer seeds


@dataclass(frozen=True)
class TableRow:
    """One row: how it is called, what computes it, and which row of the paper it answers.

    Attributes:
        name: what --only calls it.
        label: what the table calls it.
        group: `base`, `paper`, `reading` (another reading of the paper's row), `ours`, `rival` or
            `reference`.
        method: a name that `find_method` knows.
        model, labels, features: as in `RunSpec`.
        options: of the method.
        paper: name of the row in the paper's table, where it has one.
        frozen: whether the model's weights stay as they are.
        heavy: minutes a job on the larger graphs.
    """

    name: str
    label: str
    group: str
    method: str
    model: str = "sgc"
    labels: str = "train"
    features: str = "auto"
    options: dict[str, Any] = field(default_factory=dict)
    paper: str | None = None
    frozen: bool = True
    heavy: bool = False

    def spec(self, dataset: str) -> RunSpec:
        """What the row measures on a dataset.

        Args:
            dataset: its name or file.
        """
        return RunSpec(
            dataset=dataset,
            model=self.model,
            method=self.method,
            labels=self.labels,
            features=self.features,
            method_options=self.options,
        )

    def seeds(self, dataset: str, asked: int, heavy_seeds: int) -> int:
        """How many seeds the row runs.

        Args:
            dataset: its name or file.
            asked: how many were asked for.
            heavy_seeds: how many a heavy row runs at most on the larger graphs.
        """
        return min(asked, heavy_seeds) if self.heavy and dataset in LARGE else asked


def _controller(
    name: str, label: str, group: str = "paper", *, paper: str | None = None
) -> TableRow:
    return TableRow(name, label, group, "controller", options={"controller": name}, paper=paper)


BASE = TableRow("sgc", "SGC, untouched", "base", "none", paper="sgc")

TABLE_1 = (
    BASE,
    TableRow(
        "mh-aug", "MH-AUG (retrains)", "paper", "mh-aug", paper="mh-aug", frozen=False, heavy=True
    ),
    TableRow("kdga", "KDGA (retrains)", "paper", "kdga", paper="kdga", frozen=False, heavy=True),
    TableRow("frgnn-sgc", "FRGNN on SGC, one class", "paper", "frgnn", paper="frgnn-sgc"),
    TableRow("frgnn-gcn", "FRGNN on GCN, one class", "paper", "frgnn-gcn", paper="frgnn-gcn"),
    _controller("neural", "neural controller, one class", paper="neural"),
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
    TableRow("auto", "auto (ours)", "ours", "auto"),
    TableRow("auto-shares", "auto, class shares of validation", "ours", "auto-shares"),
    TableRow("t3a", "T3A", "rival", "t3a"),
    TableRow("cs", "Correct & Smooth", "rival", "cs"),
    TableRow("smooth", "smoothing, labels clamped", "rival", "smooth"),
    TableRow("lame", "LAME", "rival", "lame"),
    TableRow("lp", "label propagation (no model)", "rival", "lp"),
    TableRow("gtrans", "GTrans", "rival", "gtrans"),
    TableRow("srgnn", "SR-GNN (retrains)", "reference", "srgnn", frozen=False),
)

TABLE_3 = (
    BASE,
    _controller("neural", "neural", paper="neural"),
    _controller("neural-paper", "neural, the paper's free form", "reading", paper="neural"),
    _controller("mfac-blind", "MFAC, blind start", paper="mfac"),
    _controller("mfac-probed", "MFAC, probed start", "reading", paper="mfac"),
    _controller("pid", "PID", "ours"),
    _controller("lqr", "LQR", "ours"),
    _controller("deadbeat", "dead-beat (closed form)", "ours"),
)

TABLES = {1: TABLE_1, 3: TABLE_3}


def select_rows(table: int, only: list[str] | None = None) -> list[TableRow]:
    """The rows asked for; the base is always among them, since every row is compared with it.

    Args:
        table: 1 or 3.
        only: names of rows; all of them when None.
    """
    rows = TABLES[table]
    names = [row.name for row in rows]
    unknown = sorted(set(only or ()) - set(names))
    if unknown:
        raise ConfigError(f"table {table} has the rows {', '.join(names)}", got=", ".join(unknown))
    return [row for row in rows if only is None or row.name in only or row is BASE]


def under(rows: Sequence[TableRow], *, labels: str, model: str, features: str) -> list[TableRow]:
    """The same rows with other labels or another frozen model: conditions for which the paper has
    no figures.

    Args:
        rows: of a table.
        labels, model, features: as in `RunSpec`.
    """
    if (labels, model, features) == (BASE.labels, BASE.model, BASE.features):
        return list(rows)
    changed = []
    for row in rows:
        untouched = row.name == BASE.name
        label = f"{model.upper()}, untouched" if untouched else row.label
        used = BASE.labels if untouched else labels  # the untouched model uses no labels
        changed.append(
            replace(row, label=label, labels=used, model=model, features=features, paper=None)
        )
    return changed


# ---- jobs


def needed_jobs(
    rows: Sequence[TableRow], datasets: Sequence[str], seeds: Sequence[int], *, heavy_seeds: int = 1
) -> list[Job]:
    """The jobs of a table in the order in which they are best computed: all rows of a dataset's
    seed together, as they share the base model; the heavy rows last, so that a run that is killed
    has the most to show.

    Args:
        rows: of a table.
        datasets: its columns.
        seeds: of every row.
        heavy_seeds: how many of them a heavy row runs at most on the larger graphs.
    """
    jobs = []
    for heavy in (False, True):
        for dataset in datasets:
            for number, seed in enumerate(seeds):
                for row in rows:
                    limit = row.seeds(dataset, len(seeds), heavy_seeds)
                    if row.heavy is heavy and number < limit:
                        jobs.append(_job(row, dataset, seed))
    return jobs


def _job(row: TableRow, dataset: str, seed: int) -> Job:
    spec = row.spec(dataset)
    return Job(row.name, spec, seed, _data_hash(dataset, seed, row.features), method_version(spec))


@lru_cache(maxsize=4096)
def _data_hash(dataset: str, seed: int, features: str) -> str:
    """Of the split and its features, in which the rows of a table do not differ."""
    return TableRow("", "", "", "none", features=features).spec(dataset).task(seed).hash
