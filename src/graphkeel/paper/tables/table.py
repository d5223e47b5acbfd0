"""A table: its cells once the jobs are measured, each with the published number and a note, and
what is said below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphkeel.paper.tables.job import CPU_SECONDS, Job, Measurement
from graphkeel.paper.tables.published import (
    TABLE_1,
    TABLE_3,
    Published,
    base_note,
    gain_note,
    reading_note,
)
from graphkeel.paper.tables.rows import BASE, LARGE, TableRow
from graphkeel.paper.tables.statistics import gain_error, paired_p, summarise

PUBLISHED = {1: TABLE_1, 3: TABLE_3}

Find = Callable[[Job], Measurement | None]


@dataclass(frozen=True)
class TableCell:
    """One row's number on one dataset; `mean` is None where nothing is measured, and `note` then
    says why.

    Attributes:
        method, label, group: of the row.
        dataset: the column.
        frozen: whether the method leaves the model's weights alone.
        asked, seeds: how many seeds were asked for, and how many the mean is over.
        mean, std: accuracy in percent.
        paper, paper_std: the published figure.
        difference: of our mean from the paper's.
        gain, p_value: over the untouched SGC on the same seeds, and the test of it.
        residual: ‖C(h*) − Y‖ of the worst seed, for controllers.
        seconds, peak_mb: mean time of a job, and the largest memory of one.
        note: what is said beside it.
    """

    method: str
    label: str
    group: str
    dataset: str
    frozen: bool
    asked: int
    seeds: int = 0
    mean: float | None = None
    std: float | None = None
    paper: float | None = None
    paper_std: float | None = None
    difference: float | None = None
    gain: float | None = None
    p_value: float | None = None
    residual: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def fill_table(
    table: int,
    rows: Sequence[TableRow],
    datasets: Sequence[str],
    jobs: Sequence[Job],
    find: Find,
    *,
    asked: int,
) -> list[TableCell]:
    """The cells of a table, row by row.

    Args:
        table: 1 or 3, for the published figures.
        rows: of the table.
        datasets: its columns.
        jobs: what was to be measured.
        find: the measurement of a job, or None.
        asked: how many seeds were asked for.
    """
    found: dict[tuple[str, str], dict[int, Measurement]] = {}
    for job in jobs:
        measurement = find(job)
        if measurement is not None:
            found.setdefault((job.row, job.spec.dataset), {})[job.seed] = measurement
    cells = []
    for row in rows:
        for dataset in datasets:
            ours = found.get((row.name, dataset), {})
            base = found.get((BASE.name, dataset), {})
            cells.append(_table_cell(table, row, dataset, ours, base, asked))
    return cells


def _table_cell(
    table: int,
    row: TableRow,
    dataset: str,
    found: dict[int, Measurement],
    base: dict[int, Measurement],
    asked: int,
) -> TableCell:
    published = PUBLISHED[table].get(row.paper or "", {}).get(dataset)
    fixed: dict[str, Any] = {
        "method": row.name,
        "label": row.label,
        "group": row.group,
        "dataset": dataset,
        "frozen": row.frozen,
        "asked": asked,
        "paper": published.mean if published else None,
        "paper_std": published.std if published else None,
    }
    done = {seed: measurement.result for seed, measurement in found.items() if measurement.done}
    if not done:
        return TableCell(**fixed, note=_failures(found) or "not run")
    summary = summarise([result["accuracy"] for result in done.values()])
    paired = [seed for seed in done if seed in base and base[seed].done]
    pairs = [(done[seed]["accuracy"], base[seed].result["accuracy"]) for seed in paired]
    decisions = [result.get("decision", {}) for result in done.values()]
    residuals = [decision["residual"] for decision in decisions if "residual" in decision]
    notes = [_failures(found), _note(table, row, dataset, published, summary.mean, pairs)]
    return TableCell(
        **fixed,
        **_against_base(row, pairs),
        seeds=summary.n,
        mean=summary.mean,
        std=summary.std,
        difference=summary.mean - published.mean if published else None,
        residual=max(residuals) if residuals else None,
        seconds=float(np.mean([measurement.seconds for measurement in found.values()])),
        peak_mb=max(measurement.peak_mb for measurement in found.values()),
        note="; ".join(filter(None, notes)),
    )


def _against_base(row: TableRow, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    if row.name == BASE.name or not pairs:
        return {}
    ours, theirs = zip(*pairs, strict=True)
    return {"gain": float(np.mean(ours) - np.mean(theirs)), "p_value": paired_p(ours, theirs)}


def _failures(found: dict[int, Measurement]) -> str:
    messages = [one.message or "" for one in found.values() if not one.done]
    return f"{len(messages)} failed: {'; '.join(sorted(set(messages)))}" if messages else ""


def _note(
    table: int,
    row: TableRow,
    dataset: str,
    published: Published | None,
    mean: float,
    pairs: list[tuple[float, float]],
) -> str:
    base = PUBLISHED[table]["sgc"].get(dataset)
    if base is None or row.paper is None:
        return ""
    if published is None:
        return "out of memory in the paper" if row.paper == "kdga" else "no number in the paper"
    if row.name == BASE.name:
        return base_note(dataset, mean - published.mean)
    if not pairs:
        return ""
    ours, theirs = zip(*pairs, strict=True)
    gain = float(np.mean(ours) - np.mean(theirs))
    numbers = (gain, published.mean - base.mean, gain_error(ours, theirs))
    if row.group == "reading":
        return reading_note(row.name, *numbers)
    return gain_note(row.paper, *numbers)


# ---- sentences below the table


def verdicts(cells: Sequence[TableCell], datasets: Sequence[str]) -> list[str]:
    """A sentence a dataset: is `auto` above every row that leaves the model alone, and above the
    published best?

    Args:
        cells: of a table.
        datasets: its columns.
    """
    sentences = []
    for dataset in datasets:
        means = {
            cell: cell.mean for cell in cells if cell.dataset == dataset and cell.mean is not None
        }
        auto = next((mean for cell, mean in means.items() if cell.method == "auto"), None)
        rivals = {
            cell: mean
            for cell, mean in means.items()
            if cell.frozen and not cell.method.startswith("auto")
        }
        if auto is None or not rivals:
            continue
        best = max(rivals, key=rivals.__getitem__)
        whose = f"the best other row that leaves the model alone, {best.label}"
        parts = [_compared(auto, rivals[best], whose)]
        figures = [row[dataset].mean for row in TABLE_1.values() if dataset in row]
        if figures:
            parts.append(_compared(auto, max(figures), "the best number the paper published"))
        sentences.append(f"{dataset}: auto ({auto:.2f}) is {' and '.join(parts)}.")
    return sentences


def _compared(ours: float, theirs: float, whose: str) -> str:
    place = "above" if ours > theirs else "NOT above"
    return f"{place} {whose} ({theirs:.2f}, {ours - theirs:+.2f})"


def cost_remarks(rows: Iterable[TableRow], jobs: Iterable[Job], find: Find) -> list[str]:
    """A sentence on the cost of all stored jobs, and one on those of the heavy kind.

    Processor time, as other work on the same cores hardly changes it, unlike seconds on the wall.

    Args:
        rows: of the table.
        jobs: what was to be measured.
        find: the measurement of a job, or None.
    """
    heavy = {row.name for row in rows if row.heavy}
    light_jobs: list[Measurement] = []
    heavy_jobs: list[Measurement] = []
    for job in {job.key: job for job in jobs}.values():
        measurement = find(job)
        if measurement is not None:
            is_heavy = job.row in heavy and job.spec.dataset in LARGE
            (heavy_jobs if is_heavy else light_jobs).append(measurement)
    sentences = []
    if light_jobs:
        sentences.append(f"cost: {_cost(light_jobs)}")
    if heavy_jobs:
        where = ", ".join(LARGE)
        sentences.append(f"cost of the rows that run fewer seeds, on {where}: {_cost(heavy_jobs)}")
    return sentences


def _cost(jobs: list[Measurement]) -> str:
    cpu = [job.result[CPU_SECONDS] for job in jobs if CPU_SECONDS in job.result]
    known = f"{sum(cpu) / 60:.1f} min of one core's time" if cpu else "processor time not recorded"
    if cpu and len(cpu) < len(jobs):
        known += f" ({len(cpu)} of them recorded)"
    peak = max(job.peak_mb for job in jobs) / 1024
    return f"{len(jobs)} jobs, {known}, at most {peak:.1f} GB a worker."
