"""The page with the trend in a real browser, wide and narrow, light and dark."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from graphkeel.monitor.history import PAGE, _write_page

pytest.importorskip("jinja2", reason="pip install 'graphkeel[report]'")
playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium found (Debian: apt-get install chromium)"
)
BOXES = "[...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth)"


def report(week: int, action: str) -> dict[str, Any]:
    words = "Kolmogorov–Smirnov, largest distance of 1,433 features"
    tests = ("features", "confidence", "class shares", "homophily")
    return {
        "time": f"2026-11-{week + 1:02}T06:00:00+00:00",
        "nodes": 120_000 + 900 * week,
        "new": 900 * week,
        "changed": 0,
        "far": 40 * week,
        "apart": 12 * week,
        "shares": [20.0 + week, 80.0 - week],
        "shares_fitted": [20.0, 80.0],
        "homophily": 81.0 - 2 * week,
        "homophily_fitted": 81.0,
        "expected": 90.0 - week,
        "low": 82.0 - week,
        "high": 95.0 - week,
        "expected_fitted": 90.5,
        "after": {"nothing": 85.0, "update": 90.0, "label": 92.5, "retrain": 93.0},
        "tests": [
            {"name": name, "test": words, "p_value": 1e-20, "effect": 0.31, "drifted": True}
            for name in tests
        ],
        "action": action,
        "reason": "7.5 points are expected of it, against a price of 2",
        "suggested": list(range(119_000, 119_020)),
    }


def test_nothing_is_cut_or_wider_than_the_page(tmp_path) -> None:
    actions = ("nothing", "update", "label", "retrain", "label")
    _write_page(tmp_path, [report(week, action) for week, action in enumerate(actions)])
    complaints: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for scheme, width in (("light", 1200), ("dark", 1200), ("light", 390), ("dark", 360)):
            opened = browser.new_context(
                viewport={"width": width, "height": 844}, color_scheme=scheme
            )
            page = opened.new_page()
            page.on("console", lambda line: complaints.append(line.text))
            page.goto((tmp_path / PAGE).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(f"{BOXES}.length") == 0, (scheme, width)
            assert page.inner_text("#action") == "update, label the nodes below, then feedback"
            assert page.locator("#reports tbody tr").count() == len(actions)
            page.screenshot(path=tmp_path / f"{scheme}-{width}.png", full_page=True)
        browser.close()
    assert complaints == []
