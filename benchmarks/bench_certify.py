"""Every dataset's certificate: verdicts, what making it cost, and what re-checking it costs.

  python benchmarks/bench_certify.py [--datasets cora,digits] [--features pca20,rownorm] [--out DIR]
  python benchmarks/bench_certify.py --form paper --budget 45
  python benchmarks/bench_certify.py --leaves

Runs `keel-paper certify` and `keel-paper check --model --data` for every dataset: SGC on both
feature sets, and a frozen GCN on the raw features (words, pixels). Printed for each:

* classes proved; the verdict on message passing and its factor κ;
* on the real graph: the share of all nodes whose class at the equilibrium is certain, and the share
  of labelled (controlled) nodes for which it is certain and their own;
* the share of nodes that have this class with the written features (anchors), too, and the distance
  of these from the equilibrium's features, largest and median, relative to the largest feature;
* processor seconds of both whole commands, of training, proof and graph alone (wall), and of the
  exact check by itself (median of three, in one process, from the file's bytes to the answer).

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
    parser.add_argument("--no-gcn", action="store_true", help="SGC only")
    parser.add_argument("--leaves", action="store_true", help="check time against leaves instead")
    parser.add_argument("--out", type=Path, default=Path("bench-certify"))
    args = parser.parse_args()
    if args.leaves:
        growth()
        return
    say(HEADER)
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
        if args.form == "anchored" and not args.no_gcn:
            gcn = ["--dataset", dataset, "--model", "gcn", "--features", "raw", "--budget", "120"]
            found.append((f"{dataset}-gcn-raw", gcn, dataset))
    return found


HEADER = (
    "name                       exit classes  contraction  kappa  certain   own    kept  distance"
    " max/median  certify cpu s  of it proof s  check cpu s  accepted  exact check s"
)


def line(name: str, options: list[str], data: str) -> str:
    code, made, _, cpu = keel("certify", *options)
    verdicts = Counter(row["verdict"] for row in made["classes"])
    path = made["certificate"]
    model = str(Path(path).parent / "model.safetensors")
    _, answer, _, check_cpu = keel("check", path, "--model", model, "--data", data)
    exact = timed(lambda: check_again(Path(path)))
    linked = answer["accepted"] and answer["model_checked"] and answer["data_checked"]
    return (
        f"{name:26} {code:4d} {verdicts['proved']:3d}/{len(made['classes']):<3d}"
        f" {graph_columns(made['graph'])} {cpu:14.1f} {made['seconds']:14.1f} {check_cpu:12.1f}"
        f" {'yes' if linked else 'NO':>9} {exact:14.3f}"
    )


def graph_columns(graph: dict[str, Any]) -> str:
    """Contraction, κ, and what is counted on the graph, in percent of its nodes."""
    if "certain" not in graph:
        return f"{graph['contraction']:>12}  {graph.get('reason', '')}"
    written = graph["written"]
    certain = 100 * graph["certain"] / graph["nodes"]
    own = 100 * graph["labelled_certain"] / graph["labelled"]
    kept = 100 * written["kept"] / graph["nodes"]
    far, middle = written["max"] / written["size"], written["median"] / written["size"]
    return (
        f"{graph['contraction']:>12} {graph['kappa']:6.3f} {certain:8.2f} {own:5.1f} {kept:7.2f}"
        f" {far:14.4f}/{middle:<6.4f}"
    )


def keel(*arguments: str) -> tuple[int, dict[str, Any], float, float]:
    """Exit code, payload, wall and processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "graphkeel_paper.cli.main", *arguments, "--json"],
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
