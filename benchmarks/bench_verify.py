"""Our verification engine and its peers on closed loops: the collection that our own training made,
loops that nothing was tuned on (held_out.py), and published ones.

    python benchmarks/bench_verify.py
          ours on all of it, the peers until --minutes are over
    python benchmarks/bench_verify.py --from held-out shared --limit 10 --own-limit 10
    python benchmarks/bench_verify.py --from collection --n 3 6

Peers are what `pip install 'graphkeel[peers]'` brought: Gurobi (size-limited licence), HiGHS
(`milp`), SCIP, Marabou, Z3 (`smt`) and cvc5; all get one thread.

`branch` is asked about every instance; then the peers, in an order shuffled once and for
all, so that whatever part of them the time allows is a fair sample. An engine is asked for one
condition after the other and is done with the first that is refuted. Each question runs in a fork
of a warm process (no import and no compilation is timed) with a limit on its processor time.
Answers are appended to --log at once, and a second
run goes on where the first one ended. Prints verdict, wall and processor seconds, nodes, memory and
the ratio to `branch` in processor seconds, which a busy machine does not change (a time-out counts
as what it was given), then medians. Exits 1 if two engines contradict each other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.context import ForkServerContext
from pathlib import Path

import held_out
from instances import Spec, collection, instances
from peers import OURS, PEERS, engine_named
from rich.console import Console
from rich.table import Table
from solving import Answer, answer

from graphkeel.core.errors import KeelError
from graphkeel.verify.problem import CONDITIONS, Problem
from graphkeel.verify.problem_io import read_problem

SOURCES = ("collection", "held-out", "shared")
QUICK = 0.1  # seconds; below that a peer may be faster, and it is said which
SIZED = re.compile(r"n\d+_h\d+_")
SLOW = 1.0  # what the best peer needs on the instances of the last figure


@dataclass(frozen=True)
class Measurement:
    instance: str
    engine: str
    verdict: str
    reason: str
    wall: float
    cpu: float  # of an undecided question: what it was given
    nodes: int
    peak: float
    grown: float
    limit: float = 60.0  # seconds per core


@dataclass(frozen=True)
class Question:
    """An instance: its name, how it is made, and the conditions that are asked."""

    name: str
    make: Callable[[], Problem | None]
    conditions: tuple[str, ...] = tuple(CONDITIONS)


def limit_of(name: str, args: argparse.Namespace) -> float:
    """Processor seconds: ours have to decide; the others are cut short, or the collection would
    take a night."""
    return float(args.own_limit if name in OURS else args.limit)


def available(names: list[str], problem: Problem) -> list[str]:
    found = []
    for name in names:
        try:
            engine_named(name, problem)
        except (KeelError, ImportError):
            continue
        found.append(name)
    return found


def measure(
    context: ForkServerContext,
    name: str,
    problem: Problem,
    conditions: tuple[str, ...],
    limit: float,
    stretch: float,
) -> Measurement:
    """One engine on one instance; on a busy machine wall time is allowed to be `stretch` times the
    limit."""
    receiver, sender = context.Pipe(duplex=False)
    asked = (sender, name, problem, conditions, stretch * limit, limit)
    process = context.Process(target=answer, args=asked, daemon=True)
    process.start()
    sender.close()
    start = time.perf_counter()
    try:
        found = receiver.recv() if receiver.poll(1.25 * stretch * limit + 10) else None
        cpu = _cpu_of(process.pid, limit)
    except EOFError:
        found, cpu = None, limit
    finally:
        process.kill()
        process.join()
    wall, nothing = time.perf_counter() - start, float("nan")
    found = found or Answer("unknown", "killed at the limit", wall, cpu, 0, nothing, nothing)
    gave_up = (
        found.verdict == "unknown" and found.wall < 0.9 * stretch * limit
    )  # before any limit: counts as all of it
    counted = limit if gave_up else min(found.cpu, limit)
    shown = (found.wall, counted, found.nodes, found.peak, found.grown, limit)
    return Measurement(problem.name, name, found.verdict, found.reason, *shown)


def _cpu_of(pid: int | None, otherwise: float) -> float:
    """Processor seconds of a process that still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return otherwise
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def asked_about(args: argparse.Namespace, console: Console) -> list[Question]:
    """The instances of all sources."""
    found: list[Question] = []
    if "collection" in args.sources:
        found += _collected(args)
    if "held-out" in args.sources:
        found += [
            Question(spec.name, partial(held_out.made, spec), held_out.CONDITIONS)
            for spec in held_out.specs(args.held_out)
        ]
    if "shared" in args.sources:
        found += _shared(args, console)
    return found


def _collected(args: argparse.Namespace) -> list[Question]:
    def trained(spec: Spec) -> Problem | None:
        made = instances(args.instances, [spec], args.train_seconds)
        return next((problem for _, problem in made), None)

    wanted = [
        spec
        for spec in collection()
        if spec.n in (args.n or [spec.n]) and spec.hidden in (args.hidden or [spec.hidden])
    ]
    return [Question(spec.name, partial(trained, spec)) for spec in wanted]


def _shared(args: argparse.Namespace, console: Console) -> list[Question]:
    """Published loops; their boxes are not invariant, so that is not asked."""
    folder = args.shared
    if folder is None and "GRAPHKEEL_DATA" in os.environ:
        folder = Path(os.environ["GRAPHKEEL_DATA"]).parent / "verification"
    files = [] if folder is None else sorted((folder / "loops").glob("*.npz"))
    if not files:
        console.print("No published loops here: --shared PATH names their folder.")

    def read(file: Path) -> Problem:
        return replace(read_problem(file), name=file.stem)

    return [Question(file.stem, partial(read, file), held_out.CONDITIONS) for file in files]


def in_order(asked: list[Question], engines: list[str]) -> list[tuple[Question, list[str]]]:
    """First `branch` on everything, then the others on one instance after the other in a shuffled
    order."""
    first = [(one, ["branch"]) for one in asked] if "branch" in engines else []
    others = [name for name in engines if name != "branch"]
    shuffled = sorted(asked, key=lambda one: hashlib.sha256(one.name.encode()).hexdigest())
    return first + [(one, others) for one in shuffled if others]


def run(asked: list[Question], args: argparse.Namespace, console: Console) -> list[Measurement]:
    context = multiprocessing.get_context("forkserver")
    # where the server finds what it preloads
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    context.set_forkserver_preload(["solving", "instances", "rich.console", "rich.table"])
    rows = read_log(args.log)
    done = {(row.instance, row.engine) for row in rows}
    end = time.monotonic() + 60 * args.minutes
    for one, names in in_order(asked, args.engines):
        missing = [name for name in names if (one.name, name) not in done]
        if args.show or not missing or (time.monotonic() > end and names != ["branch"]):
            continue
        problem = one.make()
        if problem is None:
            continue
        for name in available(missing, problem):
            limit = limit_of(name, args)
            row = measure(context, name, problem, one.conditions, limit, args.stretch)
            rows.append(row)
            with args.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(row)) + "\n")
            console.print(f"{row.instance}: {name} {row.verdict} {row.cpu:.3g} s", highlight=False)
    wanted = {one.name for one in asked}
    return [row for row in rows if row.instance in wanted and row.engine in args.engines]


def read_log(path: Path) -> list[Measurement]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return []
    return [
        Measurement(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()
    ]


def contradictions(rows: list[Measurement]) -> list[str]:
    wrong = []
    for name in dict.fromkeys(row.instance for row in rows):
        verdicts = {
            row.verdict: row.engine
            for row in rows
            if row.instance == name and row.verdict != "unknown"
        }
        if len(verdicts) > 1:
            wrong.append(f"{name}: {verdicts}")
    return wrong


def ratios_of(rows: list[Measurement]) -> dict[tuple[str, str], float]:
    """Processor seconds over those of `branch`."""
    base = {row.instance: row.cpu for row in rows if row.engine == "branch"}
    return {
        (row.instance, row.engine): row.cpu / max(base[row.instance], 1e-3)
        for row in rows
        if row.instance in base
    }


def show(rows: list[Measurement], order: list[str], console: Console) -> None:
    ratios = ratios_of(rows)
    table = Table(
        "instance", "engine", "verdict", "wall s", "cpu s", "nodes", "peak MB", "grown MB", "ratio"
    )
    place = {name: i for i, name in enumerate(order)}
    for row in sorted(rows, key=lambda row: place[row.instance]):
        ratio = ratios.get((row.instance, row.engine))
        cells = (
            f"{row.wall:.3f}",
            f"{row.cpu:.3f}",
            str(row.nodes),
            f"{row.peak:.0f}",
            f"{row.grown:.0f}",
        )
        table.add_row(
            row.instance, row.engine, row.verdict, *cells, "" if ratio is None else f"{ratio:.3g}"
        )
    console.print(table)
    console.print(summary(rows, ratios))
    console.print(by_size(rows))
    undecided = [
        row.instance for row in rows if row.engine == "branch" and row.verdict == "unknown"
    ]
    console.print(f"undecided by branch: {', '.join(undecided) or 'none'}", highlight=False)
    for line in against_peers(rows):
        console.print(line, highlight=False)
    console.print(f"contradictions: {len(contradictions(rows))}", highlight=False)


def against_peers(rows: list[Measurement]) -> list[str]:
    """The figures that compare `branch` with the best peer, instance by instance."""
    ours = {row.instance: row for row in rows if row.engine == "branch"}
    peers: dict[str, list[Measurement]] = {}
    for row in rows:
        if row.engine not in OURS and row.instance in ours:
            peers.setdefault(row.instance, []).append(row)
    alone, slower, quick, slow = [], [], [], []
    for name, found in peers.items():
        best = min(found, key=lambda row: (row.verdict == "unknown", row.cpu))
        own = ours[name]
        shown = f"{name} ({best.engine} {best.cpu:.3g} s, branch {own.cpu:.3g} s)"
        decided = best.verdict != "unknown"
        if decided and own.verdict == "unknown":
            alone.append(shown)
        if decided and best.cpu < own.cpu:
            (slower if own.cpu > QUICK else quick).append(shown)
        if best.cpu >= SLOW and own.verdict != "unknown":
            slow.append(best.cpu / max(own.cpu, 1e-3))
    ratio = f"{statistics.median(slow):.3g} over {len(slow)}" if slow else "none"
    return [
        f"instances that peers were asked about: {len(peers)}",
        f"decided by a peer, not by branch: {', '.join(alone) or 'none'}",
        f"a peer is faster, branch over {QUICK} s: {', '.join(slower) or 'none'}",
        f"a peer is faster, branch below that: {', '.join(quick) or 'none'}",
        f"median of best peer / branch where the best peer needs {SLOW:g} s or more (limits"
        f" counted as time): {ratio}",
    ]


def summary(rows: list[Measurement], ratios: dict[tuple[str, str], float]) -> Table:
    table = Table(
        "engine",
        "limit s",
        "decided",
        "median wall s",
        "median cpu s",
        "median ratio",
        "faster than branch",
    )
    for name in dict.fromkeys(row.engine for row in rows):
        mine = [row for row in rows if row.engine == name]
        decided = [row for row in mine if row.verdict != "unknown"]
        own = [ratios[row.instance, name] for row in mine if (row.instance, name) in ratios]
        faster = sum(ratios.get((row.instance, name), 1.0) < 1.0 for row in decided)
        medians = [statistics.median(getattr(row, key) for row in mine) for key in ("wall", "cpu")]
        cells = [f"{value:.3f}" for value in medians] + [
            f"{statistics.median(own):.3g}" if own else ""
        ]
        limits = "/".join(f"{limit:g}" for limit in sorted({row.limit for row in mine}))
        table.add_row(name, limits, f"{len(decided)}/{len(mine)}", *cells, str(faster))
    return table


def by_size(rows: list[Measurement]) -> Table:
    """Decisions of each engine, size by size."""
    engines = list(dict.fromkeys(row.engine for row in rows))
    table = Table("n", "hidden", *(f"{name}: decided, median cpu s" for name in engines))
    named = [row.instance.split("_") for row in rows if SIZED.match(row.instance)]
    sizes = sorted({(int(parts[0][1:]), int(parts[1][1:])) for parts in named})
    for n, hidden in sizes:
        cells = []
        for name in engines:
            mine = [
                r for r in rows if r.engine == name and r.instance.startswith(f"n{n}_h{hidden}_")
            ]
            done = sum(r.verdict != "unknown" for r in mine)
            cells.append(
                f"{done}/{len(mine)}, {statistics.median(r.cpu for r in mine):.2f}" if mine else ""
            )
        table.add_row(str(n), str(hidden), *cells)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--engines", nargs="+", default=["branch", *PEERS], help="those that are installed"
    )
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        choices=SOURCES,
        default=list(SOURCES),
        help="where instances come from (default: everywhere)",
    )
    parser.add_argument(
        "--held-out", type=int, default=120, metavar="N", help="how many held-out loops"
    )
    parser.add_argument(
        "--shared", type=Path, metavar="PATH", help="the folder with published loops/"
    )
    parser.add_argument(
        "--limit", type=float, default=15.0, help="processor seconds per instance, peers"
    )
    parser.add_argument(
        "--own-limit", type=float, default=60.0, help="the same for branch and auto"
    )
    parser.add_argument(
        "--stretch", type=float, default=1.0, help="how much longer the wall clock may take"
    )
    parser.add_argument(
        "--minutes", type=float, default=40.0, help="begin no question to another engine after this"
    )
    parser.add_argument(
        "--train-seconds", type=float, default=20.0, help="seconds of training per instance"
    )
    parser.add_argument("--n", type=int, nargs="+", help="only these numbers of classes")
    parser.add_argument("--hidden", type=int, nargs="+", help="only these hidden sizes")
    folder = Path("runs/bench-verify")
    parser.add_argument(
        "--instances", type=Path, default=folder, help="where trained problems are kept"
    )
    parser.add_argument(
        "--log", type=Path, default=folder / "answers.jsonl", help="the answers, one per line"
    )
    parser.add_argument("--show", action="store_true", help="ask nothing, print what the log holds")
    args = parser.parse_args()
    console = Console(width=150)
    asked = asked_about(args, console)
    console.print(
        f"{len(asked)} instances from {', '.join(args.sources)}; conditions "
        f"{', '.join(CONDITIONS)} (held-out and published ones without invariance), up to the "
        f"first refuted one; one thread each; processor-time limits: {args.own_limit:g} s for "
        f"ours, {args.limit:g} s for the peers; times are of solving alone, without imports and "
        f"compilation; peak MB is the whole process, interpreter and libraries included, and "
        f"grown MB what the question added to it; ratio: processor seconds over those of branch",
        highlight=False,
    )
    rows = run(asked, args, Console(stderr=True))
    show(rows, [one.name for one in asked], console)
    wrong = contradictions(rows)
    for line in wrong:
        console.print(f"CONTRADICTION {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
