"""The queries to every mutant of the checker: all cases, bounds, programs, and what files cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import graph_cases  # noqa: F401 (adds its cases)
import mutant_cases  # noqa: F401
import mutant_cases_more  # noqa: F401
import property_cases  # noqa: F401
import random_properties  # noqa: F401
import square_cases  # noqa: F401
import steering_cases  # noqa: F401
import sublevel_cases  # noqa: F401
from bound_queries import random_query
from checker_cases import CASES
from random_loops import random_classes
from run_cases import cost, limited

from graphkeel import checker

BOUNDS = 150
CLASSES = 250


def every_query(folder: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Names and queries, the cheap ones first; `folder` is empty, for the files of programs."""
    for name, (make, expected) in CASES.items():
        yield name, ("bytes", make(), expected.partition(": ")[2])
    for seed in range(BOUNDS):
        yield f"bound {seed}", ("bound", random_query(seed))
    yield from program_queries(folder)
    yield from limit_queries(folder)
    for seed in range(CLASSES):
        yield f"classes {seed}", ("derived", random_classes(seed))
    for name in COSTS:
        raw = CASES[name][0]()
        spent = 10**11 - int(cost(checker, raw, 10**11))
        for limit in (10**11, spent, spent - 1):
            yield f"cost of {name}, {limit} allowed", ("cost", raw, limit)


LIMITS = (  # of bits, numbers, words and steps: a case that has the most of them
    (("exact.MOST_BITS",), "contraction, three layers"),
    (("exact.MOST_PRODUCTS",), "contraction, three layers"),
    (("networks.MOST_BITS",), "contraction, three layers"),
    (("networks.LONGEST_PRODUCT",), "contraction, three layers"),
    (("blocks.MOST_NUMBERS",), "bent loop"),
    (("graph.MOST_WORDS",), "graph, two layers"),
    (("conclusion.LONGEST",), "a hundred steps into the hole"),
)


def limit_queries(folder: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each limit where a file just keeps to it, and one less."""
    for places, case in LIMITS:
        raw = CASES[case][0]()
        least = _least(lambda k, places=places, raw=raw: limited(checker, places, k, raw))
        for limit in (least, least - 1):
            yield f"{places[0]} {limit}", ("limit", places, limit, raw)
    raw = CASES["line"][0]()
    path = folder / "line.json"
    path.write_bytes(raw)
    for limit in (len(raw), len(raw) - 1):
        yield f"a file of {limit} bytes", ("limit", ["reading.MAX_BYTES"], limit, str(path))


def _least(said: Callable[[int], str]) -> int:
    """The smallest limit with which the same is said as without one."""
    low, high = 0, 1 << 32
    free = said(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if said(middle) == free else (middle, high)
    return high


COSTS = ("plane", "slices of V", "couplings", "unit cuts", "graph, two layers", "a loop of factors")
COSTS += ("graph, features between controller and model", "multipliers of 4,000 digits")
COSTS += tuple(f"property by lot {number}, just" for number in range(8))
COSTS += ("property, a tent", "property, a ReLU beside an affine block")
COSTS += ("property, below a unit cut",)
COSTS += (
    "property, only inputs",
    "sublevel, both conditions",
    "the section of V",
    "positivity by supports",
    "steering, a head of features",
    "steering, three classes",
    "steering, a head of the least numbers",
)


def program_queries(folder: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The program with all kinds of files and arguments."""
    for name, case in (("good", "two classes, margins"), ("false", "rho one, a plateau")):
        (folder / f"{name}.json").write_bytes(CASES[case][0]())
    (folder / "graph.json").write_bytes(CASES["graph"][0]())
    (folder / "proof.json").write_bytes(CASES["property, a tent"][0]())
    files = [str(folder / f"{name}.json") for name in ("good", "false", "graph", "proof", "none")]
    asked = [[file] for file in (*files, str(folder), "/dev/null", "\0")]
    asked += [["--json", files[0]], [files[1], "--json"], ["--json"], [], files[:2]]
    asked += [["-h"], ["--help"], ["--json", "--json", files[3]]]
    for arguments in asked:
        yield f"program {arguments}", ("program", arguments)
