"""Every table by its name, and a table's JSON file, read again: means, intervals and tests without
data or models."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel_paper.tables import adapt, citations, examination, ingraph, papers, reach
from graphkeel_paper.tables.filled import Filled
from graphkeel_paper.tables.plan import Plan, Row, Table
from graphkeel_paper.tables.records import RUNS, Record

_ALL = (
    papers.TABLE_1,
    papers.TABLE_3,
    reach.TABLE,
    adapt.TABLE,
    citations.TABLE,
    ingraph.TABLE,
    examination.TABLE,
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
