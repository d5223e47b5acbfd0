"""One server of warm commands for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.processes import WarmCommands


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    commands = WarmCommands(tmp_path_factory.mktemp("warm"))
    assert (
        commands.run(
            "run", "--method", "none", "--seeds", "1", out=tmp_path_factory.mktemp("first")
        ).code
        == 0
    )
    yield commands  # whatever is compiled on first use is compiled now
    commands.close()
