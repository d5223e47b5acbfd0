"""What every mutant of the checker is asked: all cases, bounds, programs, and what files cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graph_cases  # noqa: F401 (adds its cases)
import mutant_cases  # noqa: F401
import property_cases  # noqa: F401
import sublevel_cases  # noqa: F401
from bound_queries import random_query
from checker_cases import CASES

BOUNDS = 150


def every_query(folder: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Names and queries, the cheap ones first; `folder` is empty, for the files of programs."""
    for name, (make, expected) in CASES.items():
        yield name, ("bytes", make(), expected.partition(": ")[2])
    for seed in range(BOUNDS):
        yield f"bound {seed}", ("bound", random_query(seed))
    yield from program_queries(folder)
    for name in COSTS:
        raw = CASES[name][0]()
        yield f"cost of {name}", ("cost", raw, 10**11)


COSTS = ("plane", "slices of V", "couplings", "unit cuts", "graph, two layers", "a loop of factors")
COSTS += ("property, a tent", "property, a ReLU beside an affine block")
COSTS += ("sublevel, both conditions", "the section of V", "positivity by supports")


def program_queries(folder: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The two programs with all kinds of files and arguments."""
    for name, case in (("good", "two classes, margins"), ("false", "rho one, a plateau")):
        (folder / f"{name}.json").write_bytes(CASES[case][0]())
    (folder / "graph.json").write_bytes(CASES["graph"][0]())
    (folder / "proof.json").write_bytes(CASES["property, a tent"][0]())
    files = [str(folder / f"{name}.json") for name in ("good", "false", "graph", "proof", "none")]
    asked = [[file] for file in (*files, str(folder), "/dev/null", "\0")]
    asked += [["--json", files[0]], [files[1], "--json"], ["--json"], [], files[:2]]
    asked += [["-h"], ["--help"], ["--json", "--json", files[3]]]
    for arguments in asked:
        for name in ("checker", "property_checker"):
            yield f"program {name} {arguments}", ("program", name, arguments)
