"""The page with the trend: one HTML file that loads nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphkeel.core.errors import DataError
from graphkeel.core.files import write_text
from graphkeel.monitor.advice import ACTIONS

PAGE = "monitor.html"


def write_page(folder: Path, looks: list[dict[str, Any]]) -> Path:
    """Write the page about all looks; needs the extra `report`.

    Args:
        folder: of the run.
        looks: from `write_history`, oldest first.
    """
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
    path = folder / PAGE
    write_text(path, page)
    return path


def _shares(now: dict[str, Any]) -> list[dict[str, Any]]:
    pairs = zip(now["shares_fitted"], now["shares"], strict=True)
    return [
        {"name": f"class {label}", "before": before, "after": after}
        for label, (before, after) in enumerate(pairs)
    ]
