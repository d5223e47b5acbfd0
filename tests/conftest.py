"""The library's suite: shared fixtures, and what is counted over a session."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from fixtures import _private_cache, data_folder, make_task  # noqa: F401
from tally import lines

# Figures in the documents come from tables of the paper's distribution.
collect_ignore = [] if find_spec("graphkeel_paper") else ["test_stored_figures.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often commands were killed and readers fuzzed in this session."""
    if told := lines():
        terminalreporter.section("kills and fuzz executions")
        for line in told:
            terminalreporter.write_line(line)
