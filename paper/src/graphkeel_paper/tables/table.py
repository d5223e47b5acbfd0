"""A table: its cells once the jobs are measured, each with the published number and a note, and
what is said below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from graphkeel.store.job import CPU_SECONDS, Measurement
from graphkeel.store.statistics import paired_p, summarise
from graphkeel_paper.results.records import UNKNOWN, Record
from graphkeel_paper.tables.published import (
    TABLE_1,
    TABLE_3,
    Published,
    base_note,
    gain_note,
    protocol_note,
    reading_note,
)
from graphkeel_paper.tables.rows import BASE, TUNED_BASE, TableRow
from graphkeel_paper.tables.statistics import gain_error, gain_interval, holm_by

PUBLISHED = {1: TABLE_1, 3: TABLE_3}
OURS = "auto"

Found = dict[int, Measurement]  # by seed


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
        gain, gain_low, gain_high: over the row's base on the same seeds, and its interval.
        p_value, p_holm: the test of that gain, alone and corrected over the rows of its group.
        gain_tuned: over the base that is tuned on validation, on the same seeds.
        behind_auto, p_auto: what `auto` has more on the same seeds, and the corrected test of it.
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
    gain_low: float | None = None
    gain_high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    gain_tuned: float | None = None
    behind_auto: float | None = None
    p_auto: float | None = None
    residual: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Limits:
    """What a table may cost.

    Attributes:
        asked: how many seeds were asked for.
        row_budget: processor seconds a job; a cell whose first seed takes longer stays empty.
    """

    asked: int
    row_budget: float | None = None


def fill_table(
    table: int,
    rows: Sequence[TableRow],
    datasets: Sequence[str],
    records: Iterable[Record],
    limits: Limits,
) -> list[TableCell]:
    """The cells of a table, row by row."""
    found: dict[tuple[str, str], Found] = {}
    for record in records:
        found.setdefault((record.row, record.column), {})[record.seed] = record.measurement
    cells = []
    for row in rows:
        for dataset in datasets:
            others = {
                name: found.get((name, dataset), {}) for name in (row.base, TUNED_BASE.name, OURS)
            }
            ours = found.get((row.name, dataset), {})
            cells.append(_table_cell(table, row, dataset, ours, others, limits))
    return corrected(cells)


def corrected(cells: Sequence[TableCell]) -> list[TableCell]:
    """The cells with Holm's correction: a family is a column's rows of one group."""
    families = [(cell.dataset, cell.group) for cell in cells]
    over_base = holm_by(families, [cell.p_value for cell in cells])
    below_auto = holm_by(families, [cell.p_auto for cell in cells])
    tests = zip(cells, over_base, below_auto, strict=True)
    return [replace(cell, p_holm=base, p_auto=auto) for cell, base, auto in tests]


def _table_cell(
    table: int,
    row: TableRow,
    dataset: str,
    found: Found,
    others: dict[str, Found],
    limits: Limits,
) -> TableCell:
    published = PUBLISHED[table].get(row.paper or "", {}).get(dataset)
    fixed: dict[str, Any] = {
        "method": row.name,
        "label": row.label,
        "group": row.group,
        "dataset": dataset,
        "frozen": row.frozen,
        "asked": limits.asked,
    }
    if not row.has(dataset):
        return TableCell(**fixed)
    fixed["paper"] = published.mean if published else None
    fixed["paper_std"] = published.std if published else None
    done = {seed: measurement.result for seed, measurement in found.items() if measurement.done}
    costs: dict[str, Any] = {
        "seconds": float(np.mean([one.seconds for one in found.values()])) if found else None,
        "peak_mb": max((one.peak_mb for one in found.values()), default=None),
    }
    too_long = over_budget(found, limits)
    if too_long or not done:
        return TableCell(**fixed, **costs, note=too_long or _failures(found) or "not run")
    summary = summarise([result["accuracy"] for result in done.values()])
    pairs = _pairs(found, others[row.base])
    decisions = [result.get("decision", {}) for result in done.values()]
    residuals = [decision["residual"] for decision in decisions if "residual" in decision]
    notes = [_failures(found), _note(table, row, dataset, published, summary.mean, pairs)]
    return TableCell(
        **fixed,
        **_against_base(row, pairs),
        **_against_others(row, found, others),
        **costs,
        seeds=summary.n,
        mean=summary.mean,
        std=summary.std,
        difference=summary.mean - published.mean if published else None,
        residual=max(residuals) if residuals else None,
        note="; ".join(filter(None, notes)),
    )


def over_budget(found: Found, limits: Limits) -> str:
    """Why a cell stays empty though a seed is measured: the others would take too long; else ""."""
    if limits.row_budget is None or not 0 < len(found) < limits.asked:
        return ""
    first = min(found)
    seconds = found[first].processor_seconds
    if seconds <= limits.row_budget:
        return ""
    limit = f"over {limits.row_budget:.0f} s a seed"
    what = "stopped after" if found[first].stopped else "measured"
    return f"{limit}: {what} {seconds:.0f} s on seed {first}"


def _pairs(ours: Found, theirs: Found) -> list[tuple[float, float]]:
    """The accuracies of both on the seeds that both have."""
    seeds = [seed for seed, one in ours.items() if one.done and seed in theirs]
    both = [(ours[seed], theirs[seed]) for seed in seeds if theirs[seed].done]
    return [(one.result["accuracy"], other.result["accuracy"]) for one, other in both]


def _against_base(row: TableRow, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    if row.name == row.base or not pairs:
        return {}
    ours, theirs = zip(*pairs, strict=True)
    low, high = gain_interval(ours, theirs)
    gain = float(np.mean(ours) - np.mean(theirs))
    interval = {"gain_low": low, "gain_high": high}
    return {"gain": gain, "p_value": paired_p(ours, theirs), **interval}


def _against_others(row: TableRow, found: Found, others: dict[str, Found]) -> dict[str, Any]:
    """Beside the tuned base, and beside `auto`; rows of another protocol are compared with
    neither."""
    against: dict[str, Any] = {}
    if row.group == "protocol":
        return against
    tuned = _pairs(found, others[TUNED_BASE.name])
    if tuned and row.name != TUNED_BASE.name:
        against["gain_tuned"] = float(np.mean([ours - theirs for ours, theirs in tuned]))
    auto = _pairs(found, others[OURS])
    if auto and row.name != OURS:
        mine, best = zip(*auto, strict=True)
        against["behind_auto"] = float(np.mean(best) - np.mean(mine))
        against["p_auto"] = paired_p(best, mine)
    return against


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
    if row.name == row.base:
        return protocol_note(mean - published.mean)
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
    published best?"""
    sentences = []
    for dataset in datasets:
        means = {
            cell: cell.mean
            for cell in cells
            if cell.dataset == dataset and cell.mean is not None and cell.group != "protocol"
        }
        auto = next((mean for cell, mean in means.items() if cell.method == OURS), None)
        others = {
            cell: mean
            for cell, mean in means.items()
            if cell.group != "control" and not cell.method.startswith(OURS)
        }
        frozen = {cell: mean for cell, mean in others.items() if cell.frozen}
        trained = {cell: mean for cell, mean in others.items() if not cell.frozen}
        if auto is None or not frozen:
            continue
        parts = [_best(auto, frozen, "that leaves the model alone")]
        if trained:
            parts.append(_best(auto, trained, "that trains one"))
        figures = [row[dataset].mean for row in TABLE_1.values() if dataset in row]
        if figures:
            parts.append(_compared(auto, max(figures), "the best number the paper published"))
        said = f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else parts[0]
        sentences.append(f"{dataset}: auto ({auto:.2f}) is {said}.")
    return sentences


def _best(ours: float, others: dict[TableCell, float], kind: str) -> str:
    best = max(others, key=others.__getitem__)
    return _compared(ours, others[best], f"the best other row {kind}, {best.label}")


def _compared(ours: float, theirs: float, whose: str) -> str:
    place = "above" if ours > theirs else "NOT above"
    return f"{place} {whose} ({theirs:.2f}, {ours - theirs:+.2f})"


def cost_remark(records: Iterable[Record]) -> list[str]:
    """A sentence on what all measurements of a table took; none where there are none.

    Processor time, as other work on the same cores hardly changes it, unlike seconds on the wall.
    """
    found = [record.measurement for record in records]
    if not found:
        return []
    cpu = [one.result[CPU_SECONDS] for one in found if CPU_SECONDS in one.result]
    known = f"{sum(cpu) / 60:.1f} min of one core's time" if cpu else "processor time not recorded"
    if cpu and len(cpu) < len(found):
        known += f" ({len(cpu)} of them recorded)"
    peak = max(one.peak_mb for one in found) / 1024
    return [f"cost: {len(found)} jobs, {known}, at most {peak:.1f} GB a worker."]


def source_remark(records: Iterable[Record]) -> list[str]:
    """A sentence on the commits that computed a table; none where there is no record."""
    commits = sorted({record.measurement.commit or UNKNOWN for record in records})
    return [f"computed by commit {', '.join(commits)}."] if commits else []
