"""Every dataset's certificate: verdicts, what making it cost, and what re-checking it costs.

  python benchmarks/bench_certify.py [--datasets cora,digits] [--features pca20,rownorm] [--out DIR]
  python benchmarks/bench_certify.py --form paper --budget 45
  python benchmarks/bench_certify.py --leaves

Runs `keel certify` and `keel check --model --data` for every dataset and feature set, and for
frozen GCNs with 16 and 64 hidden units on Cora's words. Printed for each: wall seconds of the whole
command and of training and proof alone; processor seconds of the check by itself (median of three,
in one process, from the file's bytes to the answer) and their ratio to those of the command.

--leaves: the check's processor seconds against the number of leaves, on loops whose proofs are
trees of growing size, with the growth exponent.

One line a certificate, on standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATASETS = "digits,cora,citeseer,pubmed,photo,computers"
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--features", default="pca20,rownorm")
    parser.add_argument(
        "--form", default="anchored", help="anchored, homogeneous or paper (default anchored)"
    )
    parser.add_argument("--budget", type=float, metavar="S", help="for training and proofs")
    parser.add_argument("--leaves", action="store_true", help="check time against leaves instead")
    parser.add_argument("--out", type=Path, default=Path("bench-certify"))
    args = parser.parse_args()
    if args.leaves:
        growth()
        return
    for name, options, data in cases(args):
        say(line(name, [*options, "--out", str(args.out / name)], data))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def cases(args: argparse.Namespace) -> list[tuple[str, list[str], str]]:
    """(folder, options of certify, dataset)."""
    common = ["--form", args.form]
    common += [] if args.budget is None else ["--budget", str(args.budget)]
    found = []
    for dataset in args.datasets.split(","):
        for features in args.features.split(","):
            options = ["--dataset", dataset, "--features", features, *common]
            found.append((f"{dataset}-{features}-{args.form}", options, dataset))
    if args.form == "anchored" and "cora" in args.datasets:
        for hidden in ("16", "64"):
            gcn = ["--dataset", "cora", "--model", "gcn", "--features", "raw"]
            gcn += ["--model-hidden", hidden, "--budget", "120"]
            found.append((f"cora-gcn{hidden}-raw", gcn, "cora"))
    return found


def line(name: str, options: list[str], data: str) -> str:
    code, made, whole, cpu = keel("certify", *options)
    verdicts = Counter(row["verdict"] for row in made["classes"])
    path = made["certificate"]
    model = str(Path(path).parent / "model.safetensors")
    linked, answer, *_ = keel("check", path, "--model", model, "--data", data)
    check = timed(lambda: check_again(Path(path)))
    shown = ", ".join(f"{word} {count}" for word, count in sorted(verdicts.items()))
    return (
        f"{name:26} exit {code} {shown} of {len(made['classes'])}, together"
        f" {made['together']['verdict']} | certify {whole:.1f} s wall, {cpu:.1f} s cpu, of it"
        f" training+proof {made['seconds']:.1f} s wall | linked check exit {linked}"
        f" {answer['accepted']} | check {check:.3f} s cpu, {check / cpu:.3f} of certify's"
    )


def keel(*arguments: str) -> tuple[int, dict[str, Any], float, float]:
    """Exit code, payload, wall and processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "graphkeel.cli.main", *arguments, "--json"],
        capture_output=True,
        text=True,
    )
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not done.stdout:
        raise SystemExit(done.stderr)
    return done.returncode, json.loads(done.stdout), wall, cpu


def check_again(path: Path) -> None:
    from graphkeel.checker import check_file

    result = check_file(str(path))
    if not result.accepted:
        raise SystemExit(f"{path}: {result.reason}")


def timed(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return statistics.median(times)


# ---- check time against leaves


def growth() -> None:
    """Loops with general gauges on wide boxes: their trees grow with n."""
    from instances import Spec, instances

    specs = [
        Spec(n, hidden, form, width, "trained")
        for n in (3, 6, 7, 8)
        for hidden in (16, 32)
        for form in ("anchored", "paper")
        for width in ("narrow", "wide")
    ]
    counted, seconds = [], []
    for spec, problem in instances(Path("bench-verify") / "problems", specs, 20.0):
        measured = check_loop(problem)
        if measured is None:
            continue
        leaves, check, find = measured
        counted.append(leaves)
        seconds.append(check)
        say(
            f"{spec.name:36} {leaves:7d} leaves, check {check:8.3f} s cpu"
            f" ({1000 * check / leaves:.2f} ms a leaf), found in {find:.3f} s cpu"
        )
    large = [i for i, leaves in enumerate(counted) if leaves >= 100]
    slope = np.polyfit(np.log([counted[i] for i in large]), np.log([seconds[i] for i in large]), 1)
    say(f"growth exponent over {len(large)} proofs with at least 100 leaves: {slope[0]:.2f}")


def check_loop(problem: Any) -> tuple[int, float, float] | None:
    """Leaves, seconds of the check and of the search, of a loop whose conditions are proved."""
    from graphkeel.certificate import ClassProof, build_certificate, certificate_bytes, chain, mlp
    from graphkeel.checker import Unreadable, check_bytes
    from graphkeel.verify import Budget, verify

    started = time.process_time()
    report = verify(problem, "branch", Budget(seconds=60.0))
    find = time.process_time() - started
    proved = {one.condition: one for one in report.conditions if one.proof is not None}
    if "decrease" not in proved:
        return None
    layers = [(layer.weight, layer.bias) for layer in problem.closed_loop.layers]
    gauge = [(layer.weight, layer.bias) for layer in problem.lyapunov.layers]
    identity = np.eye(problem.n)
    proof = ClassProof(
        label=0,
        form="anchored",
        controller=mlp(layers),
        lyapunov=tuple(chain(pair) for pair in gauge),
        anchor=problem.equilibrium,
        problem=problem,
        conditions=proved,
        delta=0.1,
    )
    raw = certificate_bytes(build_certificate(mlp([(identity, np.zeros(problem.n))]), [proof]))
    results = []

    def check() -> None:
        results.append(check_bytes(raw))

    started = time.process_time()
    try:
        check()
    except Unreadable:
        return None  # more arithmetic than the checker allows a file
    seconds = time.process_time() - started
    if not results[-1].accepted:
        raise SystemExit(f"{problem.name}: {results[-1].reason}")
    return results[-1].leaves, seconds, find


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
