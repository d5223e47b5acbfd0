"""The library's suite: shared fixtures, and what is counted over a session."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from fixtures import _private_cache, data_folder, make_task  # noqa: F401
from tally import TALLY, lines

# Figures in the documents come from tables of the paper's distribution.
collect_ignore = [] if find_spec("graphkeel_paper") else ["test_stored_figures.py"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker of pytest-xdist has counted to the session that started it."""
    if (sent := getattr(session.config, "workeroutput", None)) is not None:
        sent["tally"] = list(TALLY.items())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker has counted."""
    for key, count in getattr(node, "workeroutput", {}).get("tally", ()):
        TALLY[tuple(key)] += count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often commands were killed and readers fuzzed in this session."""
    if told := lines():
        terminalreporter.section("kills and fuzz executions")
        for line in told:
            terminalreporter.write_line(line)
