"""A table of the paper from beginning to end: its jobs, its cells, its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.core.files import write_text
from graphkeel.graph.datasets.names import PAPER_DATASETS
from graphkeel.store.job import Job
from graphkeel.store.provenance import provenance
from graphkeel.store.statistics import TEST
from graphkeel.store.store import Store
from graphkeel_paper.results.records import RUNS, Record, dump, found_records, settings_of
from graphkeel_paper.tables.render import FORMATS, render
from graphkeel_paper.tables.rows import BASE, TableRow, needed_jobs, select_rows, under
from graphkeel_paper.tables.statistics import CORRECTION
from graphkeel_paper.tables.table import (
    Limits,
    TableCell,
    cost_remark,
    fill_table,
    source_remark,
    verdicts,
)


@dataclass(frozen=True)
class PlannedTable:
    """A table that is to be measured, or was.

    Attributes:
        table: its number in the paper.
        name: of its files.
        rows, datasets: in their order.
        seeds: of every row.
        row_budget: processor seconds a job may take, beyond which a cell stays empty.
        jobs: what is to be measured; none of a table that comes from a file.
    """

    table: int
    name: str
    rows: list[TableRow]
    datasets: list[str]
    seeds: list[int]
    row_budget: float | None
    jobs: list[Job]

    def filled(self, store: Store, *, any_code: bool = False) -> FilledTable:
        """The table with what is measured of it."""
        return self.with_records(found_records(self.jobs, store, any_code=any_code))

    def with_records(self, records: list[Record]) -> FilledTable:
        """The table with these measurements."""
        limits = Limits(len(self.seeds), self.row_budget)
        cells = fill_table(self.table, self.rows, self.datasets, records, limits)
        remarks = verdicts(cells, self.datasets) if self.table == 1 else []
        remarks += [*cost_remark(records), *source_remark(records)]
        return FilledTable(self, cells, remarks, records)


@dataclass(frozen=True)
class FilledTable:
    """A table with its numbers, the sentences below it, and the measurements behind it."""

    plan: PlannedTable
    cells: list[TableCell]
    remarks: list[str]
    records: list[Record]

    def render(self, style: str) -> str:
        """The table as a text."""
        return render(self.plan.table, self.cells, self.plan.datasets, self.remarks, style)

    def payload(self) -> dict[str, Any]:
        """The stable JSON object of `keel table --json`."""
        return {
            "command": "table",
            "table": self.plan.table,
            "name": self.plan.name,
            "rows": [cell.as_dict() for cell in self.cells],
            "verdicts": self.remarks,
            "seeds": self.plan.seeds,
            "row_budget": self.plan.row_budget,
            "test": TEST,
            "correction": CORRECTION,
            "provenance": provenance(),
        }

    def write(self, out: Path) -> None:
        """The table in every format; as JSON with all measurements behind it."""
        for style, suffix in FORMATS.items():
            write_text(out / f"{self.plan.name}.{suffix}", self.render(style))
        stored = {
            **self.payload(),
            "plan": {
                "rows": [asdict(row) for row in self.plan.rows],
                "datasets": self.plan.datasets,
            },
            "settings": settings_of(self.records),
        }
        write_text(out / f"{self.plan.name}.json", dump(stored, self.records))


def plan_table(
    table: int,
    seeds: Sequence[int],
    *,
    only: list[str] | None = None,
    datasets: Sequence[str] | None = None,
    labels: str = "train",
    model: str = "sgc",
    features: str = "auto",
    row_budget: float | None = None,
) -> PlannedTable:
    """What has to be measured for a table of the paper."""
    rows = under(select_rows(table, only), labels=labels, model=model, features=features)
    columns = list(datasets or PAPER_DATASETS)
    jobs = needed_jobs(rows, columns, seeds)
    name = file_name(f"table-{table}", seeds, labels=labels, model=model, features=features)
    return PlannedTable(table, name, rows, columns, list(seeds), row_budget, jobs)


def file_name(table: str, seeds: Sequence[int], *, labels: str, model: str, features: str) -> str:
    """The name of a table's files: it says under which conditions they were measured, where these
    are not the paper's."""
    parts = [table]
    if labels != BASE.labels:
        parts.append(labels.removeprefix("train+"))
    if model != BASE.model:
        parts.append(model)
    if features != BASE.features:
        parts.append(features)
    if seeds[0] != 0:
        parts.append(f"splits-{seeds[0]}-{seeds[-1]}")
    return "-".join(parts)


def stored_table(content: dict[str, Any]) -> FilledTable:
    """A table computed again from its own file: means, intervals and tests, without data or
    models."""
    known = {field.name for field in fields(TableRow)}
    try:
        rows = [
            TableRow(**{name: value for name, value in row.items() if name in known})
            for row in content["plan"]["rows"]
        ]
        plan = PlannedTable(
            content["table"],
            content["name"],
            rows,
            content["plan"]["datasets"],
            content["seeds"],
            content["row_budget"],
            [],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            "the stored table does not say what it holds",
            got=f"{type(error).__name__}: {error}",
            fix="Write it again with keel table.",
        ) from error
    return plan.with_records([Record.from_dict(one) for one in content[RUNS]])
