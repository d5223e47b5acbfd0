"""One server of warm commands for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.processes import WarmCommands


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    commands = WarmCommands(tmp_path_factory.mktemp("warm"))
    yield commands
    commands.close()
