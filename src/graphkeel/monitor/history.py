"""A line of JSON per look, in the run's folder, and the page about all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.core.files import locked, write_text
from graphkeel.core.optional import is_installed
from graphkeel.monitor.look import DriftReport
from graphkeel.monitor.page import write_page

HISTORY = "monitor.jsonl"


def keep_look(folder: Path, report: DriftReport) -> DriftReport:
    """Add a look to the folder's history, and write the page about all of them; returns the look.

    Without the extra `report` there is no page; the history is kept all the same.

    Args:
        folder: of the run.
        report: the look.
    """
    with locked(folder):
        looks = [*read_history(folder), report.to_dict()]
        lines = [json.dumps(look, allow_nan=False) for look in looks]
        write_text(folder / HISTORY, "\n".join(lines) + "\n")
        if is_installed("jinja2"):
            write_page(folder, looks)
    return report


def read_history(folder: Path) -> list[dict[str, Any]]:
    """All looks so far, oldest first.

    Args:
        folder: of the run.
    """
    path = folder / HISTORY
    if not path.is_file():
        return []
    try:
        looks = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read", got=str(error)[:200]) from error
    if not all(isinstance(look, dict) for look in looks):
        raise DataError(f"every line of {path} must be a JSON object")
    return looks
