"""A line of JSON per comparison, in the run's folder, and the page about all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.core.files import locked, write_text
from graphkeel.core.optional import is_installed
from graphkeel.monitor.advice import ACTIONS
from graphkeel.monitor.report import DriftReport

HISTORY = "monitor.jsonl"
PAGE = "monitor.html"
_DRAWN = ("expected", "low", "high", "homophily", "homophily_fitted")


def keep_report(folder: Path, report: DriftReport) -> DriftReport:
    """Add a report to the folder's history, and write the page about all of them; returns it.

    Without the extra `report` there is no page; the history is kept all the same."""
    with locked(folder):
        reports = [*read_history(folder), report.to_dict()]
        lines = [json.dumps(one, allow_nan=False) for one in reports]
        write_text(folder / HISTORY, "\n".join(lines) + "\n")
        if is_installed("jinja2"):
            _write_page(folder, reports)
    return report


def read_history(folder: Path) -> list[dict[str, Any]]:
    """All reports so far, oldest first.

    Args:
        folder: of the run.
    """
    path = folder / HISTORY
    if not path.is_file():
        return []
    try:
        reports = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read", got=str(error)[:200]) from error
    if not all(isinstance(one, dict) for one in reports):
        raise DataError(f"every line of {path} must be a JSON object")
    return reports


def _write_page(folder: Path, reports: list[dict[str, Any]]) -> None:
    """Write the page with the trend, one HTML file that loads nothing; reports oldest first."""
    from graphkeel.report.charts import dumbbells, trend
    from graphkeel.report.page import rendered

    now = reports[-1]
    try:
        columns = {name: [one[name] for one in reports] for name in _DRAWN}
        # homophily as a line, and a band between it and the fitted graph's
        both = columns["homophily"], columns["homophily_fitted"]
        band = {"low": list(map(min, *both)), "high": list(map(max, *both))}
        sure = {name: columns[name] for name in ("low", "high")}
        page = rendered(
            "monitor.html.j2",
            title=f"{folder.absolute().name}: {now['nodes']:,} nodes",
            now=now,
            reports=reports[::-1],
            words=ACTIONS,
            expected_chart=trend(columns["expected"], label="expected accuracy", **sure),
            homophily_chart=trend(columns["homophily"], label="homophily", **band),
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
