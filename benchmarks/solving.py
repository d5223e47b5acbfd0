"""Cost of one question to one engine, measured in a process of its own.

The server process imports the engines and warms them up once (this module is its preload); every
question then runs in a fresh fork of it, so neither imports nor compilation are timed and no
question sees the memory of another."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from peers import OURS, engine_named

from graphkeel.core.errors import KeelError
from graphkeel.verify.problem import Network, Problem
from graphkeel.verify.result import Budget, ConditionReport, Verdict

PRELOADED = ("branch", "milp", "smt", "gurobi", "scip", "cvc5")
IMPORTED = ("marabou",)  # may never come back from a question: not asked here


@dataclass(frozen=True)
class Answer:
    verdict: str
    reason: str
    wall: float
    cpu: float  # of all threads
    nodes: int
    peak: float  # MB: the process's peak resident memory while solving
    grown: float  # MB: by how much that is more than before the question


def tiny() -> Problem:
    """A problem that takes every engine through all of its code."""
    split = np.concatenate([np.eye(2), -np.eye(2)])
    return Problem(
        Network.of((split, np.full(4, 0.1)), (0.5 * split.T, np.zeros(2))),
        Network.of((split + 0.1, np.zeros(4)), (np.ones((1, 4)), np.zeros(1))),
        lower=-np.ones(2),
        upper=np.ones(2),
        equilibrium=np.zeros(2),
        hole_radius=0.25,
        rho=0.9,
    )


def warm_up() -> None:
    for name in PRELOADED:
        try:
            engine_named(name, tiny()).solve(tiny(), Budget(seconds=2, threads=1))
        except (KeelError, ImportError):
            continue  # not installed
    for name in IMPORTED:
        with suppress(KeelError, ImportError):
            engine_named(name, tiny())


def answer(
    sender: Connection,
    name: str,
    problem: Problem,
    conditions: tuple[str, ...],
    wall_limit: float,
    cpu_limit: float,
) -> None:
    """Solve one problem with one thread; beyond the limit of processor time the system ends the
    process."""
    _limit_cpu(cpu_limit)
    before = _forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    if name in OURS:
        reports = _all_at_once(name, problem, conditions, wall_limit, cpu_limit)
    else:
        reports = _until_refuted(name, problem, conditions, wall_limit)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _memory("VmHWM")
    verdict = next(
        v
        for v in (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED)
        if v in {r.verdict for r in reports}
    )
    reasons = {r.reason for r in reports if r.verdict is verdict and r.reason}
    nodes = sum(r.nodes for r in reports)
    sender.send(
        Answer(
            verdict.value,
            "; ".join(sorted(reasons)),
            wall,
            cpu,
            nodes,
            peak,
            max(peak - before, 0.0),
        )
    )


def _all_at_once(
    name: str, problem: Problem, conditions: tuple[str, ...], wall: float, cpu: float
) -> list[ConditionReport]:
    """All conditions in one question, as a user asks it: the engine shares its time between them
    and is done with the first that is refuted."""
    clock = "processor" if cpu <= wall else "wall"
    budget = Budget(min(wall, cpu), threads=1, clock=clock, first_refutation=True)
    return list(engine_named(name, problem).solve(problem, budget, conditions).conditions)


def _until_refuted(
    name: str, problem: Problem, conditions: tuple[str, ...], seconds: float
) -> list[ConditionReport]:
    """The conditions in order; the first that is refuted settles the problem, so it is the last to
    be asked about."""
    engine, end, reports = engine_named(name, problem), time.perf_counter() + seconds, []
    for condition in conditions:
        budget = Budget(seconds=max(end - time.perf_counter(), 0.01), threads=1)
        reports.append(engine.solve(problem, budget, (condition,))[condition])
        if reports[-1].verdict is Verdict.REFUTED:
            break
    return reports


def _limit_cpu(seconds: float) -> None:
    last = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (last, last + 2))


def _forget_peak() -> float:
    """Start the peak anew from what is resident now (Linux); returns that."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists() and os.access(clear, os.W_OK):
        clear.write_text("5")
    return _memory("VmRSS")


def _memory(key: str) -> float:
    """MB from /proc; elsewhere the peak that the system kept."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith(key + ":"))
    return int(line.split()[1]) / 1024


if __name__ != "__main__":
    warm_up()
