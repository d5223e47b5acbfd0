"""A table with its numbers, the sentences below it, and the measurements behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.core.files import write_text
from graphkeel.store.job import CPU_SECONDS
from graphkeel.store.statistics import TEST
from graphkeel.store.store import Store
from graphkeel_paper.fingerprint import provenance
from graphkeel_paper.tables import adapt, ingraph, papers
from graphkeel_paper.tables.cells import (
    CORRECTION,
    RUNS,
    UNKNOWN,
    Cell,
    Record,
    dump,
    fill,
    found_records,
    settings_of,
)
from graphkeel_paper.tables.layout import FORMATS, render
from graphkeel_paper.tables.plan import Plan, Row, Table


@dataclass(frozen=True)
class Filled:
    """A table with its numbers; `origin` is what wrote it first: commit, versions, machine."""

    plan: Plan
    records: list[Record]
    origin: dict[str, Any]

    @classmethod
    def of(cls, plan: Plan, records: list[Record], origin: dict[str, Any] | None = None) -> Filled:
        """The table of these measurements."""
        return cls(plan, records, origin or provenance())

    @classmethod
    def stored(cls, plan: Plan, store: Store, *, any_code: bool = False) -> Filled:
        """The table of those of its jobs that a store holds."""
        return cls.of(plan, found_records(plan.placed, store, any_code=any_code))

    @cached_property
    def cells(self) -> list[Cell]:
        """Row by row; the tests among them take seconds."""
        return fill(self.plan, self.records)

    def at(self, row: str, block: str) -> dict[str, Cell]:
        """A row's cells in a block, by column."""
        return {c.column: c for c in self.cells if c.row == row and c.block == block}

    def is_above(self, mine: Cell, groups: Iterable[str]) -> bool:
        """Whether a cell's mean is above those of all rows of these groups in its column."""
        wanted = set(groups)
        others = [
            cell.mean
            for cell in self.cells
            if (cell.block, cell.column) == (mine.block, mine.column) and cell.group in wanted
        ]
        known = [mean for mean in others if mean is not None]
        return mine.mean is not None and all(mine.mean > mean for mean in known)

    @cached_property
    def remarks(self) -> list[str]:
        """The sentences below the table."""
        said = self.plan.table.sentences(self)
        sources = _source_remarks(self.records, self.origin["commit"])
        return [*said, *_cost_remark(self.records), *sources]

    def render(self, style: str) -> str:
        """The table as a text of one of `FORMATS`."""
        layout = self.plan.table.layout
        return render(self.plan, layout, self.cells, self.remarks, style)

    def payload(self) -> dict[str, Any]:
        """The stable JSON object of `keel-paper table --json`."""
        plan = self.plan
        part = {"variant": plan.variant}
        if isinstance(plan.table.name, int):
            part = {"name": plan.file}
        return {
            "command": "table",
            "table": plan.table.name,
            **part,
            "rows": [cell.as_dict(plan.table.layout.fields) for cell in self.cells],
            "verdicts": self.remarks,
            "seeds": plan.seeds,
            "row_budget": plan.row_budget,
            "test": TEST,
            "correction": CORRECTION,
            "provenance": self.origin,
        }

    def write(self, out: Path) -> None:
        """The table in every format; as JSON with all measurements behind it."""
        plan = self.plan
        for style, suffix in FORMATS.items():
            write_text(out / f"{plan.file}.{suffix}", self.render(style))
        described = {
            "title": plan.title,
            "rows": [asdict(row) for row in plan.rows],
            "blocks": plan.blocks,
            "columns": plan.columns,
        }
        stored = {**self.payload(), "plan": described, "settings": settings_of(self.records)}
        write_text(out / f"{plan.file}.json", dump(stored, self.records))


def _cost_remark(records: Iterable[Record]) -> list[str]:
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


def _source_remarks(records: Iterable[Record], here: str | None) -> list[str]:
    """Which rows the commit that wrote the table computed, and which it inherited, from where."""
    commits: dict[str, set[str]] = {}
    for record in records:
        commits.setdefault(record.row, set()).add(record.measurement.commit or UNKNOWN)
    own = [row for row, known in commits.items() if known == {here}]
    others = [
        f"{row} ({', '.join(sorted(map(_short, commits[row])))})" for row in commits.keys() - own
    ]
    said = (
        [f"computed at this commit ({_short(here or UNKNOWN)}): {', '.join(own)}."] if own else []
    )
    return [*said, *([f"inherited: {', '.join(sorted(others))}."] if others else [])]


def _short(commit: str) -> str:
    return commit.replace(commit[:40], commit[:10], 1) if len(commit) >= 40 else commit


# ---- Every table by its name, and a table's JSON file, read again: means, intervals and tests
# without data or models.


_ALL = (
    papers.TABLE_1,
    papers.TABLE_3,
    papers.REACH,
    adapt.TABLE,
    adapt.CITATION_TABLE,
    ingraph.TABLE,
    ingraph.EXAMINATION,
)
TABLES: dict[int | str, Table] = {table.name: table for table in _ALL}

_AGAIN = "Write it again with keel-paper table"


def read_table(path: Path) -> dict[str, Any]:
    """The content of a table's file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the table {path} cannot be read", got=str(error)) from error
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise DataError(f"{path} is not a table that keel-paper table wrote")
    return content


def recomputed(content: dict[str, Any]) -> Filled:
    """A table with all its statistics computed again from the stored measurements."""
    if not isinstance(content.get(RUNS), list):
        raise DataError(
            "the stored table holds no measurements, only means",
            fix=f"{_AGAIN}: files of version 0.1 have no runs.",
        )
    try:
        plan = _plan(content, content["plan"])
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            "the stored table does not say what it holds",
            got=f"{type(error).__name__}: {error}",
            fix=f"{_AGAIN}.",
        ) from error
    settings = content.get("settings", {})
    records = [Record.from_dict(one) for one in content[RUNS]]
    known = [
        replace(one, settings=json.dumps(settings.get(one.place, {}), sort_keys=True))
        for one in records
    ]
    return Filled.of(plan, known, content.get("provenance"))


def joined(found: Filled, stored: Filled) -> Filled:
    """A table whose other cells come from a stored one; each run says which commit computed it."""
    plan, before = found.plan, stored.plan
    known = plan.blocks == before.blocks and set(plan.columns) <= set(before.columns)
    if plan.file != before.file or not known:
        raise DataError(
            "a table can only be joined with one of the same name and blocks that has its columns",
            got=f"{plan.file} and {before.file}",
            fix="Ask for the stored table's columns: --datasets, --labels, --model, --pairs.",
        )
    by_name = {row.name: row for row in (*before.rows, *plan.rows)}
    rows = [by_name[row.name] for row in plan.table.rows if row.name in by_name]
    names = {row.name for row in rows}  # without rows that are no more
    anew = {record.place for record in found.records}
    kept = [one for one in stored.records if one.row in names and one.place not in anew]
    whole = replace(plan, rows=rows, columns=before.columns)
    return Filled.of(whole, [*kept, *found.records], found.origin)


def _plan(content: dict[str, Any], stored: dict[str, Any]) -> Plan:
    """The plan of a file, of this version or of 0.2, whose tables 1 and 3 had `datasets`."""
    table = TABLES[content["table"]]
    known = {field.name for field in fields(Row)}
    rows = [
        Row(**{name: value for name, value in row.items() if name in known})
        for row in stored["rows"]
    ]
    variant = content.get("variant")
    if "name" in content:
        variant = content["name"].removeprefix(f"table-{table.name}").removeprefix("-") or None
    return Plan(
        table,
        rows,
        blocks=stored.get("blocks", [""]),
        columns=stored["columns"] if "columns" in stored else stored["datasets"],
        seeds=content["seeds"],
        row_budget=content["row_budget"],
        variant=variant,
        title=stored.get("title", table.title),
    )
