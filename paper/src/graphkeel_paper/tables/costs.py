"""The jobs of a plan that are missing, and their cost as far as it was ever measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphkeel.core.digests import json_sha256
from graphkeel.store.job import Job, Measurement
from graphkeel.store.store import Store
from graphkeel_paper.tables.layout import aligned
from graphkeel_paper.tables.records import RUNS

Times = dict[tuple[str, str], float]  # mean seconds of a (row, column)


def missing_jobs(
    jobs: Iterable[Job],
    store: Store,
    *,
    any_code: bool = False,
    retry: bool = False,
    row_budget: float | None = None,
) -> list[Job]:
    """The jobs that have to be computed."""
    missing = []
    for job in jobs:
        found = store.find(job, any_code=any_code)
        if found is None or (retry and not found.done) or _was_stopped_early(found, row_budget):
            missing.append(job)
    return missing


def _was_stopped_early(found: Measurement, row_budget: float | None) -> bool:
    return found.stopped and (row_budget is None or found.processor_seconds < row_budget)


class RowCosts:
    """The time a seed of each number takes: a number is a specification, whatever its seed. A job
    may take `row_budget` processor seconds; None: as long as it likes."""

    def __init__(self, row_budget: float | None) -> None:
        self.row_budget = row_budget
        self.seconds: dict[str, float] = {}

    @classmethod
    def stored(
        cls, jobs: Iterable[Job], store: Store, row_budget: float | None, *, any_code: bool = False
    ) -> RowCosts:
        """The costs of jobs that a store holds."""
        costs = cls(row_budget)
        for job in jobs if row_budget is not None else ():
            found = store.find(job, any_code=any_code)
            if found is not None:
                costs.learn(job, found)
        return costs

    def learn(self, job: Job, measurement: Measurement) -> None:
        """Take in a measurement."""
        seconds = measurement.processor_seconds
        if measurement.stopped and (self.row_budget is None or seconds <= self.row_budget):
            return  # of a smaller budget: what it takes is still unknown
        self.seconds.setdefault(_number(job), seconds)

    def is_over(self, job: Job) -> bool:
        """Whether another seed of the same number took longer than allowed."""
        known = self.seconds.get(_number(job))
        return self.row_budget is not None and known is not None and known > self.row_budget

    def limit(self, job: Job) -> float | None:
        """Processor seconds after which a job is stopped; None where another seed of the same
        number kept to the budget, as all seeds of a row should then be there."""
        return None if _number(job) in self.seconds else self.row_budget


def _number(job: Job) -> str:
    return json_sha256([job.row, asdict(job.spec)])


# ---- the lines of --plan


@dataclass
class _RowForecast:
    """The jobs to come of one row."""

    jobs: int = 0
    seconds: float = 0.0
    unknown: int = 0  # jobs of a cost that nothing is known of
    left_out: int = 0  # jobs that the budget leaves out


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
        if seconds is None:
            row.unknown += 1
        row.seconds += seconds or 0.0
    return rows


def _mean(row: _RowForecast) -> str:
    known = row.jobs - row.unknown
    return f"{row.seconds / known:.1f}" if known else "not measured"


def times_of(content: dict[str, Any]) -> Times:
    """Mean seconds a job of every (row, column) of a stored table."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for run in content.get(RUNS, ()):
        place = (run["row"], run["column"])
        grouped.setdefault(place, []).append(float(run.get("cpu_seconds", run["seconds"])))
    return {place: sum(values) / len(values) for place, values in grouped.items()}
