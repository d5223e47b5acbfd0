"""The loops of bench_verify.py, asked of two versions of the source in turns: is each loop that the
first one decides still decided, and in how much of the time?

    git worktree add /tmp/before 21408e4
    python benchmarks/bench_gate.py --trees /tmp/before . --limit 10

Each tree answers in a process of its own that imports and compiles once; a loop goes to one after
the other, with one thread and a limit of processor seconds. Only loops whose trained problem is
stored are taken from the collection. Exits 1 if a loop is lost, or two verdicts contradict each
other."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import held_out
from bench_verify import Question, _shared
from instances import _key, collection, instances
from rich.console import Console

from graphkeel.verify.problem_io import write_problem

STORED = Path(__file__).parent / "bench-verify" / "problems"
SECONDS = 20.0  # of training, which names a stored problem
WORKER = """
import json, sys, time
from graphkeel.verify import Budget, read_problem, verify
for line in sys.stdin:
    file, conditions, limit = json.loads(line)
    problem = read_problem(file)
    budget = Budget(limit, threads=1, clock="processor", first_refutation=True)
    start = time.process_time()
    report = verify(problem, "branch", budget, conditions)
    print(json.dumps([report.verdict.value, time.process_time() - start]), flush=True)
"""


def questions(count: int, shared: Path | None) -> list[Question]:
    """The stored loops of the collection, held-out ones and published ones."""
    found = []
    for spec in collection():
        if (STORED / f"{_key(spec, SECONDS)}.npz").exists():
            made = [problem for _, problem in instances(STORED, [spec], SECONDS)]
            found += [Question(spec.name, lambda made=made: made[0])] if made else []
    for spec in held_out.specs(count):
        one = Question(spec.name, lambda spec=spec: held_out.made(spec), held_out.CONDITIONS)
        found.append(one)
    return [*found, *_shared(SimpleNamespace(shared=shared), Console())]


def stored(asked: list[Question], folder: Path) -> list[tuple[Question, Path]]:
    """The loops as files, made once."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [(one, folder / f"{one.name}.npz") for one in asked]
    for one, file in files:
        problem = None if file.exists() else one.make()
        if problem is not None:
            write_problem(problem, file)
    return [(one, file) for one, file in files if file.exists()]


def worker(tree: Path) -> subprocess.Popen[str]:
    """A process with the sources of a tree."""
    command = [sys.executable, "-c", WORKER]
    paths = {"PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | paths, stdin=pipe, stdout=pipe, text=True)


def ask(process: subprocess.Popen[str], file: Path, one: Question, limit: float) -> list:
    """[verdict, processor seconds]."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps([str(file.resolve()), one.conditions, limit]) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", nargs=2, type=Path, required=True, help="before and after")
    parser.add_argument("--held-out", type=int, default=90, help="how many held-out loops")
    parser.add_argument("--limit", type=float, default=10.0, help="processor seconds a loop")
    parser.add_argument("--shared", type=Path, help="the folder with published loops/")
    parser.add_argument("--loops", type=Path, default=Path("runs/bench-gate"))
    parser.add_argument("--only-make", action="store_true", help="store the loops, ask nothing")
    args = parser.parse_args()
    files = stored(questions(args.held_out, args.shared), args.loops)
    if args.only_make:
        return 0
    workers = [worker(tree) for tree in args.trees]
    for process in workers:  # compiled before anything is timed
        ask(process, files[0][1], files[0][0], args.limit)
    print(f"{'loop':<42} {'before':>8} {'s':>8} {'after':>8} {'s':>8}")
    rows = []
    for one, file in files:
        answers = [ask(process, file, one, args.limit) for process in workers]
        rows.append((one.name, *answers))
        shown = "  ".join(f"{verdict:>7} {seconds:8.3f}" for verdict, seconds in answers)
        print(f"{one.name:<42} {shown}", flush=True)
    return summary(rows)


def summary(rows: list[tuple]) -> int:
    """Totals; 1 where a loop is lost or verdicts contradict each other."""
    decided = [(a, b) for _, a, b in rows if a[0] != "unknown"]
    lost = [name for name, a, b in rows if a[0] != "unknown" and b[0] == "unknown"]
    wrong = [name for name, a, b in rows if {a[0], b[0]} == {"proved", "refuted"}]
    gained = [name for name, a, b in rows if a[0] == "unknown" and b[0] != "unknown"]
    before, after = (sum(pair[k][1] for pair in decided) for k in (0, 1))
    ratio = statistics.median(b[1] / a[1] for a, b in decided)
    print(f"loops: {len(rows)}; decided before: {len(decided)}, of these lost: {len(lost)} {lost}")
    print(f"decided after alone: {len(gained)} {gained}; contradictions: {len(wrong)} {wrong}")
    print(f"seconds on those decided before: {before:.1f} and {after:.1f}: {after / before:.2f}")
    print(f"median ratio of a loop: {ratio:.2f}")
    slower = [(b[1] - a[1], name) for name, a, b in rows if b[1] > 1.25 * a[1] + 0.05]
    print(f"slower by a quarter and 50 ms: {[name for _, name in sorted(slower)[::-1]]}")
    return int(bool(lost or wrong))


if __name__ == "__main__":
    sys.exit(main())
