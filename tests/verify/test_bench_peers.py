"""The verification bench: adapters of other solvers say nothing false, and its figures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from known import KNOWN

from graphkeel.core.optional import is_installed
from graphkeel.verify import Budget, Verdict

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Marabou overruns its time-outs and ignores signals; the bench runs it in a process of its own.
ADAPTERS = {"gurobi": "gurobipy", "milp": "highspy", "scip": "pyscipopt", "cvc5": "cvc5"}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a module of the folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return __import__(name)

    yield load
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_say_nothing_false(name: str, bench: Any) -> None:
    if not is_installed(ADAPTERS[name]):
        pytest.skip(f"{ADAPTERS[name]} is not installed")
    peers = bench("peers")
    found = []
    for loop in ("halving", "doubling", "corner", "tangent", "too much positivity"):
        problem, truth = KNOWN[loop]
        report = peers.engine_named(name, problem).solve(problem, Budget(seconds=60.0, threads=1))
        for answer in report.conditions:
            assert answer.verdict.value in ("unknown", truth[answer.condition]), answer
            found.append(answer.verdict)
    assert found.count(Verdict.UNKNOWN) <= 5


def test_held_out_loops_are_seeded_and_of_every_family(bench: Any) -> None:
    held_out = bench("held_out")
    chosen = held_out.specs(60)
    assert [spec.name for spec in chosen] == [spec.name for spec in held_out.specs(60)]
    assert {spec.family for spec in chosen} == set(held_out.FAMILIES)
    assert {spec.width for spec in chosen} == set(held_out.HALF_WIDTHS)
    spec = held_out.Spec("gauge", "narrow", 3, 16, "easy")
    once, again = held_out.made(spec), held_out.made(spec)
    np.testing.assert_array_equal(once.lyapunov.layers[0].weight, again.lyapunov.layers[0].weight)
    tight = held_out.made(held_out.Spec("gauge", "narrow", 3, 16, "tight"))
    assert tight.rho / once.rho == pytest.approx(1.02 / 1.3)
    assert (once.lyapunov(once.equilibrium[None]) == 0.0).all()


def test_the_figures_against_peers(bench: Any) -> None:
    pytest.importorskip("rich")
    verify = bench("bench_verify")

    def row(instance: str, engine: str, verdict: str, cpu: float) -> Any:
        return verify.Measurement(instance, engine, verdict, "", cpu, cpu, 0, 0.0, 0.0)

    rows = [
        row("a", "branch", "proved", 0.5),
        row("a", "milp", "proved", 0.25),  # faster
        row("a", "smt", "unknown", 0.1),  # faster, but undecided
        row("b", "branch", "proved", 0.05),
        row("b", "milp", "proved", 0.01),  # faster on a small one
        row("c", "branch", "unknown", 60.0),
        row("c", "milp", "refuted", 3.0),  # decided by a peer alone
        row("d", "branch", "refuted", 0.5),
        row("d", "milp", "unknown", 10.0),  # a limit counts as time: 20
        row("e", "branch", "proved", 0.1),
        row("e", "milp", "proved", 4.0),  # 40
        row("f", "branch", "proved", 0.1),  # compared with no peer
    ]
    compared, alone, slower, quick, ratio = verify.against_peers(rows)
    assert compared.endswith(" 5")
    assert "c (milp" in alone and "a (" not in alone
    assert "a (milp" in slower and "c (milp" in slower and "b (" not in slower
    assert "b (milp" in quick
    assert ratio.endswith("30 over 2")
