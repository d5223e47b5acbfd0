"""Every installed verification engine on one collection of closed loops.

    python benchmarks/bench_verify.py                     the collection, about an hour
    python benchmarks/bench_verify.py --limit 10 --n 3 6  a smaller one

Each question is asked in a child process of its own, which is killed at the limit: it gives the peak memory, and no
engine can overrun. Prints verdict, seconds, nodes, peak memory and the ratio to `branch` (a time-out counts as its
limit), then medians. Exits 1 if two engines contradict each other.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from instances import Spec, collection, instances
from rich.console import Console
from rich.table import Table

from graphkeel.cli.verify import ENGINES
from graphkeel.cli.verify import engine as engine_named
from graphkeel.errors import KeelError
from graphkeel.verify.problem import CONDITIONS, Network, Problem
from graphkeel.verify.result import Budget

COMPARED = ("branch", "auto", "milp", "smt", "dreal")


@dataclass(frozen=True)
class Measurement:
    instance: str
    engine: str
    verdict: str
    reason: str
    seconds: float  # a time-out counts as the limit
    nodes: int
    megabytes: float
    ratio: float | None = None  # seconds / seconds of `branch`


def warm_up() -> Problem:
    """A tiny problem, so that imports and just-in-time compilation are not timed."""
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


def child(sender: Connection, name: str, problem: Problem, limit: float) -> None:
    """Solve in a process of its own; the peak memory is that of the process above its state after warming up."""
    engine = engine_named(name, problem)
    engine.solve(warm_up(), Budget(seconds=10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sender.send("ready")
    start = time.perf_counter()
    report = engine.solve(problem, Budget(seconds=limit))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reasons = {c.reason for c in report.conditions if c.verdict is report.verdict and c.reason}
    sender.send((report.verdict.value, "; ".join(sorted(reasons)), seconds, report.nodes, (peak - before) / 1024))


def limit_of(name: str, args: argparse.Namespace) -> float:
    """Ours have to decide; the others are cut short, or the collection would take a night."""
    return float(args.own_limit if name in ("branch", "auto") else args.limit)


def measure(name: str, problem: Problem, limit: float) -> Measurement | None:
    """One engine on one instance; None where the engine does not take the problem."""
    try:
        engine_named(name, problem)
    except (KeelError, ImportError):
        return None
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(sender, name, problem, limit), daemon=True)
    process.start()
    sender.close()
    try:
        if receiver.poll(120) and receiver.recv() == "ready" and receiver.poll(1.25 * limit + 2):
            verdict, reason, seconds, nodes, megabytes = receiver.recv()
        else:
            verdict, reason, seconds, nodes, megabytes = "unknown", "killed at the limit", limit, 0, float("nan")
    except EOFError:
        verdict, reason, seconds, nodes, megabytes = "unknown", "crashed", limit, 0, float("nan")
    finally:
        process.kill()
        process.join()
    counted = limit if verdict == "unknown" else min(seconds, limit)
    return Measurement(problem.name, name, verdict, reason, counted, nodes, megabytes)


def with_ratios(rows: list[Measurement]) -> list[Measurement]:
    base = next((row for row in rows if row.engine == "branch"), None)
    if base is None:
        return rows
    return [Measurement(**{**asdict(row), "ratio": row.seconds / max(base.seconds, 1e-4)}) for row in rows]


def run(specs: list[Spec], engines: list[str], args: argparse.Namespace, console: Console) -> list[Measurement]:
    rows: list[Measurement] = []
    for spec, problem in instances(args.instances, specs, args.train_seconds):
        found = [m for name in engines if (m := measure(name, problem, limit_of(name, args))) is not None]
        found = with_ratios(found)
        rows += found
        shown = ", ".join(f"{m.engine} {m.verdict} {m.seconds:.3g} s" for m in found)
        console.print(f"{spec.name}: {shown}", highlight=False)
    return rows


def contradictions(rows: list[Measurement]) -> list[str]:
    wrong = []
    for name in dict.fromkeys(row.instance for row in rows):
        verdicts = {row.verdict: row.engine for row in rows if row.instance == name and row.verdict != "unknown"}
        if len(verdicts) > 1:
            wrong.append(f"{name}: {verdicts}")
    return wrong


def show(rows: list[Measurement], console: Console) -> None:
    table = Table("instance", "engine", "verdict", "seconds", "nodes", "MB", "ratio to branch")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        cells = (f"{row.seconds:.3f}", str(row.nodes), f"{row.megabytes:.0f}", ratio)
        table.add_row(row.instance, row.engine, row.verdict, *cells)
    console.print(table)
    summary = Table("engine", "decided", "median s", "median ratio", "instances faster than branch")
    for name in dict.fromkeys(row.engine for row in rows):
        mine = [row for row in rows if row.engine == name]
        decided = sum(row.verdict != "unknown" for row in mine)
        ratios = [row.ratio for row in mine if row.ratio is not None]
        faster = [row for row in mine if row.ratio is not None and row.ratio < 1 and row.verdict != "unknown"]
        median = f"{statistics.median(ratios):.3g}" if ratios else ""
        seconds = f"{statistics.median(row.seconds for row in mine):.3f}"
        summary.add_row(name, f"{decided}/{len(mine)}", seconds, median, str(len(faster)))
    console.print(summary)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=[name for name in COMPARED if name in ENGINES])
    parser.add_argument("--limit", type=float, default=20.0, help="seconds per instance for the other engines")
    parser.add_argument("--own-limit", type=float, default=60.0, help="seconds per instance for branch and auto")
    parser.add_argument("--train-seconds", type=float, default=20.0, help="seconds of training per instance")
    parser.add_argument("--n", type=int, nargs="+", help="only these numbers of classes")
    parser.add_argument("--hidden", type=int, nargs="+", help="only these hidden sizes")
    parser.add_argument("--full", action="store_true", help="all hidden sizes at all n and both boxes")
    parser.add_argument(
        "--instances", type=Path, default=Path("runs/bench-verify"), help="where trained problems are kept"
    )
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the measurements here")
    args = parser.parse_args()
    console = Console(width=140)
    specs = [
        s for s in collection(full=args.full) if s.n in (args.n or [s.n]) and s.hidden in (args.hidden or [s.hidden])
    ]
    console.print(
        f"{len(specs)} instances; limits: {args.own_limit:g} s for ours, {args.limit:g} s for the others; "
        f"conditions {', '.join(CONDITIONS)}"
    )
    rows = run(specs, args.engines, args, Console(stderr=True))
    show(rows, console)
    if args.json is not None:
        payload: list[dict[str, Any]] = [asdict(row) for row in rows]
        args.json.write_text(json.dumps(payload, indent=1), encoding="utf-8")
    wrong = contradictions(rows)
    for line in wrong:
        console.print(f"CONTRADICTION {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
