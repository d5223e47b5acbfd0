"""A table's JSON file, read again: the same means, intervals and tests, without data or models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.core.errors import DataError

if TYPE_CHECKING:
    from graphkeel_paper.adapt.comparison import Filled
    from graphkeel_paper.tables.build import FilledTable


def read_table(path: Path) -> dict[str, Any]:
    """The content of a table's file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the table {path} cannot be read", got=str(error)) from error
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise DataError(f"{path} is not a table that keel table wrote")
    return content


def recomputed(content: dict[str, Any]) -> FilledTable | Filled:
    """A table with all its statistics computed again from the stored measurements."""
    from graphkeel_paper.results.records import RUNS

    if not isinstance(content.get(RUNS), list):
        raise DataError(
            "the stored table holds no measurements, only means",
            fix="Write it again with keel table: files of version 0.1 have no runs.",
        )
    if isinstance(content.get("table"), int):
        from graphkeel_paper.tables.build import stored_table

        return stored_table(content)
    from graphkeel_paper.adapt.stored import stored_comparison

    return stored_comparison(content)
