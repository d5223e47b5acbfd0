"""The tables of this package, computed again from their own files."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel_paper.adapt import examination, ingraph, table
from graphkeel_paper.adapt.comparison import Filled, Plan, Row
from graphkeel_paper.results.records import RUNS, Record

_SENTENCES = {one.NAME: one.sentences for one in (table, ingraph, examination)}


def stored_comparison(content: dict[str, Any]) -> Filled:
    """A table with its means, intervals and tests computed again, without data or models."""
    known = {field.name for field in fields(Row)}
    try:
        stored = content["plan"]
        rows = [
            Row(**{name: value for name, value in row.items() if name in known})
            for row in stored["rows"]
        ]
        plan = Plan(
            content["table"],
            stored["title"],
            rows,
            stored["blocks"],
            stored["columns"],
            content["seeds"],
            [],
            _SENTENCES[content["table"]],
            content["row_budget"],
            content.get("variant"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            "the stored table does not say what it holds",
            got=f"{type(error).__name__}: {error}",
            fix="Write it again with keel table.",
        ) from error
    return plan.with_records([Record.from_dict(one) for one in content[RUNS]])
