"""A line of JSON per look, in the run's folder, and the page about all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.core.files import locked, write_text
from graphkeel.core.optional import is_installed
from graphkeel.monitor.advice import ACTIONS
from graphkeel.monitor.look import DriftReport

HISTORY = "monitor.jsonl"
PAGE = "monitor.html"


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
            _write_page(folder, looks)
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


def _write_page(folder: Path, looks: list[dict[str, Any]]) -> None:
    """Write the page with the trend, one HTML file that loads nothing; looks oldest first."""
    from graphkeel.report.charts import dumbbells, trend
    from graphkeel.report.page import rendered

    now = looks[-1]
    try:
        # homophily as a line, and a band between it and the fitted graph's
        homophily = [look["homophily"] for look in looks]
        fitted = [look["homophily_fitted"] for look in looks]
        low, high = list(map(min, homophily, fitted)), list(map(max, homophily, fitted))
        page = rendered(
            "monitor.html.j2",
            title=f"{folder.absolute().name}: {now['nodes']:,} nodes",
            now=now,
            looks=looks[::-1],
            words=ACTIONS,
            expected_chart=trend(
                [look["expected"] for look in looks],
                label="expected accuracy",
                low=[look["low"] for look in looks],
                high=[look["high"] for look in looks],
            ),
            homophily_chart=trend(homophily, label="homophily", low=low, high=high),
            shares_chart=dumbbells(_shares(now), label="class shares", neutral=True),
        )
    except (LookupError, TypeError, ValueError) as error:  # a line that somebody else wrote
        raise DataError(
            f"the history in {folder} holds what keel monitor does not write",
            got=repr(error)[:200],
            fix="Move the file away; a new one is begun.",
        ) from error
    write_text(folder / PAGE, page)


def _shares(now: dict[str, Any]) -> list[dict[str, Any]]:
    pairs = zip(now["shares_fitted"], now["shares"], strict=True)
    return [
        {"name": f"class {label}", "before": before, "after": after}
        for label, (before, after) in enumerate(pairs)
    ]
