"""Mutation testing: a checker with one place wrong does not get through the cases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import graph_cases  # noqa: F401 (adds its cases)
import property_cases  # noqa: F401
import pytest
import sublevel_cases  # noqa: F401
from bound_queries import plain_answer, random_query
from checker_cases import CASES
from mutants import MUTANTS, Mutant

import graphkeel.checker
from tally import TALLY

SOURCES = Path(graphkeel.checker.__file__).parents[1]
PACKAGES = ("checker", "property_checker")
RUNNER = Path(__file__).with_name("run_cases.py")
LONGEST = 120  # seconds; only a mutant that never ends gets there


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases as files, and the bounds of the independent implementation."""
    folder = tmp_path_factory.mktemp("cases")
    cases = {}
    for number, (name, (make, expected)) in enumerate(CASES.items()):
        (folder / f"{number}.json").write_bytes(make())
        cases[name] = (f"{number}.json", expected)
    queries = [random_query(seed) for seed in range(150)]
    bounds = [(query, str(plain_answer(query))) for query in queries]
    (folder / "expected.json").write_text(json.dumps({"cases": cases, "bounds": bounds}))
    return folder


def run(package_root: Path, stored: Path) -> subprocess.CompletedProcess[str]:
    """The cases with the package of a folder, on a Python without anything installed."""
    command = [sys.executable, "-S", str(RUNNER), str(stored)]
    environment = {**os.environ, "PYTHONPATH": str(package_root), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
    )


def copied(root: Path) -> Path:
    """The packages alone, in a `graphkeel` that holds nothing else."""
    for name in PACKAGES:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCES / name, root / "graphkeel" / name, ignore=unwanted)
    (root / "graphkeel" / "__init__.py").touch()
    return root


def applied(mutant: Mutant, root: Path) -> Path:
    file = copied(root) / "graphkeel" / mutant.package / mutant.file
    text = file.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.breaks}: stands {text.count(mutant.old)} times"
    file.write_text(text.replace(mutant.old, mutant.new))
    return root


def killed_by(number: int, stored: Path, folder: Path) -> str | None:
    """What noticed a mutant."""
    try:
        done = run(applied(MUTANTS[number], folder / str(number)), stored)
    except subprocess.TimeoutExpired:
        return "it never ends"
    return (done.stdout + done.stderr).strip()[-300:] if done.returncode else None


def test_the_checker_itself_gets_through(stored: Path, tmp_path: Path) -> None:
    done = run(copied(tmp_path), stored)
    assert done.returncode == 0, done.stdout + done.stderr


def kill(numbers: range, stored: Path, folder: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        notices = list(pool.map(lambda k: killed_by(k, stored, folder), numbers))
    mutants = [MUTANTS[k] for k in numbers]
    alive = [
        f"{mutant.file}: {mutant.breaks}"
        for mutant, notice in zip(mutants, notices, strict=True)
        if notice is None
    ]
    assert not alive, "\n".join(alive)
    assert len(mutants) >= 60
    for mutant in mutants:
        TALLY["checker mutants killed", f"{mutant.package}/{mutant.file}"] += 1


def test_every_third_mutant_is_killed(stored: Path, tmp_path: Path) -> None:
    kill(range(0, len(MUTANTS), 3), stored, tmp_path)


@pytest.mark.slow
def test_every_mutant_is_killed(stored: Path, tmp_path: Path) -> None:
    kill(range(len(MUTANTS)), stored, tmp_path)
