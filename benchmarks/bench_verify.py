"""Every installed verification engine on one collection of closed loops.

    python benchmarks/bench_verify.py
          ours on all of it, the others until --minutes are over
    python benchmarks/bench_verify.py --limit 10 --n 3 6  a smaller one

`branch` is asked about every instance; then the other engines, in an order shuffled once and for
all, so that whatever part of them the time allows is a fair sample. An engine is asked for one
condition after the other and is done with the first that is refuted. Each question runs in a fork
of a warm process (no import and no compilation is timed) with a limit on its processor time: the
limit per core times the cores the engine uses. Answers are appended to --log at once, and a second
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
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

from instances import Spec, collection, instances
from rich.console import Console
from rich.table import Table
from solving import Answer, answer

from graphkeel.cli.verify import ENGINES
from graphkeel.cli.verify import engine as engine_named
from graphkeel.core.errors import KeelError
from graphkeel.verify.problem import CONDITIONS, Problem

COMPARED = ("branch", "milp", "smt")
OURS = ("branch", "auto")


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


def cores(name: str) -> int:
    return (os.cpu_count() or 1) if name in OURS else 1


def limit_of(name: str, args: argparse.Namespace) -> float:
    """Seconds per core: ours have to decide; the others are cut short, or the collection would take
    a night."""
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
    context: ForkServerContext, name: str, problem: Problem, limit: float, stretch: float
) -> Measurement:
    """One engine on one instance; on a busy machine wall time is allowed to be `stretch` times the
    limit."""
    receiver, sender = context.Pipe(duplex=False)
    most = limit * cores(name)
    process = context.Process(
        target=answer, args=(sender, name, problem, stretch * limit, most), daemon=True
    )
    process.start()
    sender.close()
    start = time.perf_counter()
    try:
        found = receiver.recv() if receiver.poll(1.25 * stretch * limit + 10) else None
        cpu = _cpu_of(process.pid, most)
    except EOFError:
        found, cpu = None, most
    finally:
        process.kill()
        process.join()
    wall, nothing = time.perf_counter() - start, float("nan")
    found = found or Answer("unknown", "killed at the limit", wall, cpu, 0, nothing, nothing)
    gave_up = (
        found.verdict == "unknown" and found.wall < 0.9 * stretch * limit
    )  # before any limit: counts as all of it
    counted = most if gave_up else min(found.cpu, most)
    shown = (found.wall, counted, found.nodes, found.peak, found.grown, limit)
    return Measurement(problem.name, name, found.verdict, found.reason, *shown)


def _cpu_of(pid: int | None, otherwise: float) -> float:
    """Processor seconds of a process that still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return otherwise
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def questions(specs: list[Spec], engines: list[str]) -> list[tuple[Spec, list[str]]]:
    """First `branch` on everything, then the others on one instance after the other in a shuffled
    order."""
    first = [(spec, ["branch"]) for spec in specs] if "branch" in engines else []
    others = [name for name in engines if name != "branch"]
    shuffled = sorted(specs, key=lambda spec: hashlib.sha256(spec.name.encode()).hexdigest())
    return first + [(spec, others) for spec in shuffled if others]


def run(specs: list[Spec], args: argparse.Namespace, console: Console) -> list[Measurement]:
    context = multiprocessing.get_context("forkserver")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where the server finds what it preloads
    context.set_forkserver_preload(["solving", "instances", "rich.console", "rich.table"])
    rows = read_log(args.log)
    done = {(row.instance, row.engine) for row in rows}
    end = time.monotonic() + 60 * args.minutes
    for spec, names in questions(specs, args.engines):
        missing = [name for name in names if (spec.name, name) not in done]
        if args.show or not missing or (time.monotonic() > end and names != ["branch"]):
            continue
        for _, problem in instances(args.instances, [spec], args.train_seconds):
            for name in available(missing, problem):
                row = measure(context, name, problem, limit_of(name, args), args.stretch)
                rows.append(row)
                with args.log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps(asdict(row)) + "\n")
                console.print(
                    f"{row.instance}: {name} {row.verdict} {row.cpu:.3g} s", highlight=False
                )
    return [
        row
        for row in rows
        if row.instance in {spec.name for spec in specs} and row.engine in args.engines
    ]


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
    faster = [
        f"{i} ({e}, {r:.2g})"
        for (i, e), r in ratios.items()
        if r < 1 and e not in OURS and _decided(rows, i, e)
    ]
    console.print(f"another engine was faster on: {', '.join(faster) or 'none'}", highlight=False)
    console.print(f"contradictions: {len(contradictions(rows))}", highlight=False)


def _decided(rows: list[Measurement], instance: str, engine: str) -> bool:
    return any(
        r.verdict != "unknown" for r in rows if r.instance == instance and r.engine == engine
    )


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
    """What each engine decided, size by size."""
    engines = list(dict.fromkeys(row.engine for row in rows))
    table = Table("n", "hidden", *(f"{name}: decided, median cpu s" for name in engines))
    sizes = sorted({tuple(int(part[1:]) for part in row.instance.split("_")[:2]) for row in rows})
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
        "--engines", nargs="+", default=[name for name in COMPARED if name in ENGINES]
    )
    parser.add_argument(
        "--limit", type=float, default=15.0, help="seconds per instance and core, other engines"
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
    specs = [
        s
        for s in collection()
        if s.n in (args.n or [s.n]) and s.hidden in (args.hidden or [s.hidden])
    ]
    console.print(
        f"{len(specs)} instances; conditions {', '.join(CONDITIONS)}, up to the first refuted one; "
        f"processor-time limits: {args.own_limit:g} s per core for ours ({cores('branch')} cores), "
        f"{args.limit:g} s for the others; times are of solving alone, without imports and "
        f"compilation; peak MB is the whole process, interpreter and libraries included, and "
        f"grown MB what the question added to it; ratio: processor seconds over those of branch",
        highlight=False,
    )
    rows = run(specs, args, Console(stderr=True))
    show(rows, [spec.name for spec in specs], console)
    wrong = contradictions(rows)
    for line in wrong:
        console.print(f"CONTRADICTION {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
