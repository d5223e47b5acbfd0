"""The cost of a grid before anything runs: jobs, measured seconds a job, hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphkeel.store.job import Job
from graphkeel_paper.tables.grid import RowCosts
from graphkeel_paper.tables.records import RUNS
from graphkeel_paper.tables.render import aligned

Times = dict[tuple[str, str], float]  # mean seconds of a (row, column)


@dataclass
class _RowForecast:
    """The jobs to come of one row."""

    jobs: int = 0
    seconds: float = 0.0
    unknown: int = 0  # jobs of a cost that nothing is known of
    left_out: int = 0  # jobs that the budget leaves out
    datasets: set[str] = field(default_factory=set)


def forecast(
    waiting: Sequence[Job], times: Times, costs: RowCosts, workers: int, *, wanted: int
) -> list[str]:
    """The lines of `keel-paper table --plan`."""
    rows = _by_row(waiting, times, costs)
    body = [
        [name, str(row.jobs), str(row.left_out or ""), _mean(row), f"{row.seconds / 3600:.2f}"]
        for name, row in sorted(rows.items(), key=lambda item: -item[1].seconds)
    ]
    total = sum(row.seconds for row in rows.values())
    jobs = sum(row.jobs for row in rows.values())
    unknown = sum(row.unknown for row in rows.values())
    lines = [f"{wanted} jobs, {wanted - len(waiting)} of them stored"]
    if body:
        head = ["row", "jobs", "over budget", "seconds a job", "core hours"]
        lines += ["", *aligned([head, *body], left=[0]), ""]
    hours = total / 3600
    lines.append(
        f"to compute: {jobs} jobs, {hours:.2f} core hours as measured, {hours / workers:.2f} h "
        f"with {workers} workers"
    )
    if unknown:
        lines.append(f"of {unknown} jobs nothing is measured: they are not in these hours")
    return lines


def _by_row(waiting: Sequence[Job], times: Times, costs: RowCosts) -> dict[str, _RowForecast]:
    rows: dict[str, _RowForecast] = {}
    probed: set[tuple[str, str]] = set()
    for job in {job.key: job for job in waiting}.values():
        row = rows.setdefault(job.row, _RowForecast())
        place = (job.row, job.spec.dataset)
        seconds = times.get(place)
        dear = seconds is not None and costs.row_budget is not None and seconds > costs.row_budget
        if costs.is_over(job) or (dear and place in probed):
            row.left_out += 1
            continue
        probed.add(place)
        row.jobs += 1
        row.datasets.add(job.spec.dataset)
        if seconds is None:
            row.unknown += 1
        row.seconds += seconds or 0.0
    return rows


def _mean(row: _RowForecast) -> str:
    known = row.jobs - row.unknown
    return f"{row.seconds / known:.1f}" if known else "not measured"


def times_of(content: dict[str, Any]) -> Times:
    """Mean seconds a job of every (row, column) of a stored table, of this version or an older
    one."""
    runs = content.get(RUNS)
    if runs is not None:
        found = [
            ((one["row"], one["column"]), one.get("cpu_seconds", one["seconds"])) for one in runs
        ]
    else:
        found = [
            ((one["method"], one.get("column", one["dataset"])), one.get("seconds"))
            for one in content["rows"]
        ]
    grouped: dict[tuple[str, str], list[float]] = {}
    for place, seconds in found:
        if seconds is not None:
            grouped.setdefault(place, []).append(float(seconds))
    return {place: sum(values) / len(values) for place, values in grouped.items()}
