"""Mutation testing: a checker with one place wrong does not get through the cases.

The mutants of mutants.py were written by hand, those of mutation_rules.py are made by rule; each is
noticed by a case, or is known to be equivalent and why."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import graph_cases  # noqa: F401 (adds its cases)
import mutant_cases  # noqa: F401
import mutant_cases_more  # noqa: F401
import property_cases  # noqa: F401
import pytest
import random_properties  # noqa: F401
import steering_cases  # noqa: F401
import sublevel_cases  # noqa: F401
from bound_queries import plain_answer, random_query
from checker_cases import CASES
from mutation_rules import PACKAGES, all_changes
from rule_mutants import SOURCES, known_equivalents, misplaced

from tally import TALLY

HERE = Path(__file__).parent


def stored(folder: Path) -> Path:
    """All cases as files, and the bounds of the independent implementation."""
    folder.mkdir()
    cases = {}
    for number, (name, (make, expected)) in enumerate(CASES.items()):
        (folder / f"{number}.json").write_bytes(make())
        cases[name] = (f"{number}.json", expected)
    queries = [random_query(seed) for seed in range(150)]
    bounds = [(query, str(plain_answer(query))) for query in queries]
    (folder / "expected.json").write_text(json.dumps({"cases": cases, "bounds": bounds}))
    return folder


def copied(root: Path) -> Path:
    """The packages alone, in a `graphkeel` that holds nothing else."""
    for name in PACKAGES:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCES / name, root / "graphkeel" / name, ignore=unwanted)
    (root / "graphkeel" / "__init__.py").touch()
    return root


def test_the_checker_itself_gets_through(tmp_path: Path) -> None:
    """On a Python without anything installed."""
    command = [sys.executable, "-S", str(HERE / "run_cases.py"), str(stored(tmp_path / "cases"))]
    names = {"PYTHONPATH": str(copied(tmp_path / "root")), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**os.environ, **names}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def survivors(*options: str) -> str:
    """The output of a run in a process of its own, if a mutant survived."""
    command = [sys.executable, str(HERE / "rule_mutants.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    killed = re.search("^killed ([0-9]+)", done.stdout, re.MULTILINE)
    assert killed and not done.stderr, done.stdout + done.stderr
    TALLY["checker mutants killed", " ".join(options).replace("--", "")] += int(killed[1])
    return done.stdout if done.returncode else ""


def test_every_written_mutant_has_its_place() -> None:
    assert not misplaced()


def test_a_few_written_mutants_are_killed() -> None:
    assert survivors("--written", "--count", "20") == ""


@pytest.mark.slow
def test_every_written_mutant_is_killed() -> None:
    assert survivors("--written") == ""


def test_a_few_mutants_by_rule_are_killed() -> None:
    assert survivors("--count", "12") == ""


@pytest.mark.slow
def test_five_hundred_mutants_by_rule_are_killed() -> None:
    assert survivors("--count", "500") == ""


def test_every_mutant_known_to_be_equivalent_is_one_and_has_a_reason() -> None:
    known = known_equivalents()
    there = {change.key() for change in all_changes(SOURCES)}
    assert not set(known) - there
    assert all(why.strip() for why in known.values())
