"""Every reader under a coverage-guided fuzzer, a bounded number of times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.readers import READERS
from tally import TALLY

RUNS, SECONDS = 2000, 120


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_coverage_guided_fuzzing_finds_nothing(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed")
    settings = {"GRAPHKEEL_MEMORY": "64MB", "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("guided.py")), name, str(RUNS), str(SECONDS), str(corpus)],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, **settings},
        check=False,
    )
    crashes = [path.read_bytes() for path in corpus.iterdir() if path.name.startswith(("crash-", "oom-", "timeout-"))]
    assert done.returncode == 0, f"{crashes}\n{done.stderr[-3000:]}"
    TALLY["fuzz executions, atheris"] += int((done.stdout.split() or ["0"])[-1])
