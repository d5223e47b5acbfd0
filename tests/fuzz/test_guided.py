"""Every reader under a coverage-guided fuzzer, a bounded number of times."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.readers import READERS
from tally import TALLY

RUNS, SECONDS = 2000, 30
AT_LEAST = 200  # whatever the seconds say


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """The server of guided.py."""
    pytest.importorskip("atheris", reason="atheris is not installed")
    cache = tmp_path_factory.mktemp("cache")
    settings = {"GRAPHKEEL_MEMORY": "64MB", "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("guided.py")), str(RUNS), str(SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **settings},
    ) as server:
        yield server
        assert server.stdin is not None
        server.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_coverage_guided_fuzzing_finds_nothing(
    name: str, fuzzer: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert fuzzer.stdin is not None
    assert fuzzer.stdout is not None
    fuzzer.stdin.write(f"{name}\t{tmp_path}\n")
    fuzzer.stdin.flush()
    code = fuzzer.stdout.readline().strip()
    found = [
        path.read_bytes()
        for path in tmp_path.glob("corpus/*-*")
        if path.name.startswith(("crash", "oom", "time"))
    ]
    assert code == "0", f"{found}\n{(tmp_path / 'log').read_text(errors='replace')[-3000:]}"
    count = int((tmp_path / "count").read_text())
    assert count >= AT_LEAST
    TALLY["fuzz executions", "atheris"] += count
