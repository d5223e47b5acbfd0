"""Every dataset's certificate: verdicts, and what finding the proof and re-checking it cost.

  python benchmarks/bench_certify.py [--datasets cora,digits] [--features pca20,rownorm] [--out FOLDER]

Runs `keel certify --dataset D --features F` and `keel check`, then times both sides once more in one process, median of
five in processor seconds, because the wall clock of a busy machine says little about milliseconds: `proof` asks the
same engines about the same problems again, `check` re-proves the file. Lines go to standard output.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from graphkeel.certificate import check_certificate, read_certificate
from graphkeel.certificates.schema import Layer, Loop
from graphkeel.lyapunov.ask import ask_portfolio, ask_region
from graphkeel.verify import Affine, Network, Problem
from graphkeel.verify.region import Region

DATASETS = "digits,cora,citeseer,pubmed,photo,computers"
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--features", default="pca20,rownorm")
    parser.add_argument("--out", type=Path, default=Path("bench-certify"))
    args = parser.parse_args()
    for dataset in args.datasets.split(","):
        for features in args.features.split(","):
            sys.stdout.write(line(dataset, features, args.out / f"{dataset}-{features}") + "\n")
            sys.stdout.flush()


def line(dataset: str, features: str, folder: Path) -> str:
    started = time.monotonic()
    code, told = keel("certify", "--dataset", dataset, "--features", features, "--out", str(folder))
    whole = time.monotonic() - started
    proved = sum(row["verdict"] == "proved" for row in told["classes"])
    regions = sum(row["conditions"]["region"] == "proved" for row in told["classes"])
    checked, answer = keel("check", told["certificate"])
    proof, check = measured(Path(told["certificate"]))
    return (
        f"{dataset:10} {features:8} d {told['features']:5} exit {code} proved {proved}/{len(told['classes'])}"
        f" regions {regions}/{len(told['classes'])} together {told['together']['verdict']}"
        f" | certify {told['seconds']:.1f}s whole {whole:.1f}s | check exit {checked} accepted {answer['accepted']}"
        f" {answer['seconds']:.2f}s wall | cpu: proof {proof:.3f}s check {check:.3f}s"
        f" {'check < proof' if check < proof else 'check >= proof'}"
    )


def keel(*arguments: str) -> tuple[int, dict]:
    done = subprocess.run(
        [sys.executable, "-m", "graphkeel.cli.main", *arguments, "--json"], capture_output=True, text=True
    )
    if not done.stdout:
        raise SystemExit(done.stderr)
    return done.returncode, json.loads(done.stdout)


def measured(path: Path) -> tuple[float, float]:
    """Processor seconds of finding the proofs again, and of checking the file."""
    classes = read_certificate(path)["classes"]
    problems = [(problem_of(entry), entry["class"], entry["conditions"]["region"]["margin"]) for entry in classes]

    def prove() -> None:
        for problem, label, margin in problems:
            ask_portfolio(problem, seconds=60.0, complete=True)
            ask_region(Region(problem, label, margin), seconds=60.0, complete=True)

    return timed(prove), timed(lambda: check_certificate(path))


def timed(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return statistics.median(times)


def problem_of(entry: dict) -> Problem:
    loop = Loop.from_json(entry["problem"], "problem")
    box = {name: getattr(loop, name) for name in ("lower", "upper", "equilibrium", "hole_radius", "hole_norm")}
    return Problem(network(loop.closed_loop), network(loop.lyapunov), **box, rho=loop.rho, positivity=loop.positivity)


def network(layers: tuple[Layer, ...]) -> Network:
    return Network(tuple(Affine(one.weight, one.bias, one.weight_error, one.bias_error) for one in layers))


if __name__ == "__main__":
    main()
