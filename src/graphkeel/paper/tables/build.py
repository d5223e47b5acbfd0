"""A table of the paper from beginning to end: its jobs, its cells, its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphkeel.core.errors import ConfigError
from graphkeel.core.files import write_text
from graphkeel.graph.datasets.names import PAPER_DATASETS
from graphkeel.paper.tables.job import Job, Measurement
from graphkeel.paper.tables.provenance import provenance
from graphkeel.paper.tables.render import FORMATS, render
from graphkeel.paper.tables.rows import TableRow, needed_jobs, select_rows, under
from graphkeel.paper.tables.statistics import TEST
from graphkeel.paper.tables.store import Store
from graphkeel.paper.tables.table import TableCell, cost_remarks, fill_table, verdicts


@dataclass(frozen=True)
class PlannedTable:
    """A table that is to be measured: its rows, columns, seeds and jobs."""

    table: int
    rows: list[TableRow]
    datasets: list[str]
    seeds: list[int]
    jobs: list[Job]

    def filled(self, store: Store, *, any_code: bool = False) -> FilledTable:
        """The table with what is measured of it.

        Args:
            store: the measurements.
            any_code: also take those of other code.
        """

        def find(job: Job) -> Measurement | None:
            return store.find(job, any_code=any_code)

        cells = fill_table(
            self.table, self.rows, self.datasets, self.jobs, find, asked=len(self.seeds)
        )
        remarks = verdicts(cells, self.datasets) if self.table == 1 else []
        remarks += cost_remarks(self.rows, self.jobs, find)
        return FilledTable(self.table, self.datasets, self.seeds, cells, remarks)


@dataclass(frozen=True)
class FilledTable:
    """A table with its numbers, and the sentences below it."""

    table: int
    datasets: list[str]
    seeds: list[int]
    cells: list[TableCell]
    remarks: list[str]

    def render(self, style: str) -> str:
        """The table as a text.

        Args:
            style: one of `FORMATS`.
        """
        return render(self.table, self.cells, self.datasets, self.remarks, style)

    def payload(self) -> dict[str, Any]:
        """The stable JSON object of `keel table --json`."""
        return {
            "command": "table",
            "table": self.table,
            "rows": [cell.as_dict() for cell in self.cells],
            "verdicts": self.remarks,
            "seeds": self.seeds,
            "test": TEST,
            "provenance": provenance(),
        }

    def write(self, out: Path) -> None:
        """The table in every format, and as JSON.

        Args:
            out: the folder that receives table-N.txt, .md, .tex, .csv and .json.
        """
        for style, suffix in FORMATS.items():
            write_text(out / f"table-{self.table}.{suffix}", self.render(style))
        content = json.dumps(self.payload(), indent=1, allow_nan=False)
        write_text(out / f"table-{self.table}.json", content + "\n")


def plan_table(
    table: int,
    seeds: Sequence[int],
    *,
    only: list[str] | None = None,
    datasets: Sequence[str] | None = None,
    labels: str = "train",
    model: str = "sgc",
    features: str = "auto",
    heavy_seeds: int = 1,
) -> PlannedTable:
    """What has to be measured for a table of the paper.

    Args:
        table: 1 or 3.
        seeds: of every row.
        only: names of rows; all of them when None.
        datasets: columns; the paper's when None.
        labels, model, features: as in `RunSpec`.
        heavy_seeds: seeds of MH-AUG and KDGA on the larger graphs.
    """
    if heavy_seeds < 0:
        raise ConfigError("--heavy-seeds must not be negative", got=heavy_seeds)
    rows = under(select_rows(table, only), labels=labels, model=model, features=features)
    columns = list(datasets or PAPER_DATASETS)
    jobs = needed_jobs(rows, columns, seeds, heavy_seeds=heavy_seeds)
    return PlannedTable(table, rows, columns, list(seeds), jobs)
