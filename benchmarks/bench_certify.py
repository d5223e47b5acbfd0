"""Every dataset's certificate: verdicts, and what finding the proof and re-checking it cost.

  python benchmarks/bench_certify.py [--datasets cora,digits] [--features pca20,rownorm] [--out
  FOLDER]
  python benchmarks/bench_certify.py --form paper --budget 45

Runs `keel certify --dataset D --features F` and `keel check`: wall seconds of training and proof,
and of the whole command with imports, data and base model. Where all is proved, both sides are
timed once more in one process, median of five in processor seconds, because the wall clock of a
busy machine says little about milliseconds:

  engines      asks the same engines about the same collapsed problems again, and does nothing else
  proof whole  from the shipped weights to the certificate: the collapse with its error bounds, the
      engines, the representative, the hole, the conclusion and the hashes, all of which the check
      does again
  check        from the file to the answer, reading and decoding included

One line a certificate, on standard output.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from graphkeel.certificate import (
    ClassProof,
    Factor,
    Source,
    build_certificate,
    check_certificate,
    read_certificate,
)
from graphkeel.certificate.encoding import decode_array
from graphkeel.certificate.schema import Layer, Loop, source_from_json
from graphkeel.control.base import Layers
from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.ask import ask_portfolio, ask_region
from graphkeel.lyapunov.closed_loop import closed_loop_network, lyapunov_network
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.verify import Affine, ConditionReport, Network, Problem, Region

DATASETS = "digits,cora,citeseer,pubmed,photo,computers"
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--features", default="pca20,rownorm")
    parser.add_argument(
        "--form", default="anchored", help="anchored, homogeneous or paper (default anchored)"
    )
    parser.add_argument(
        "--budget", type=float, default=None, metavar="S", help="seconds for training and proofs"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-certify"))
    args = parser.parse_args()
    options = [
        "--form",
        args.form,
        *(() if args.budget is None else ("--budget", str(args.budget))),
    ]
    for dataset in args.datasets.split(","):
        for features in args.features.split(","):
            folder = args.out / f"{dataset}-{features}-{args.form}"
            sys.stdout.write(line(dataset, features, [*options, "--out", str(folder)]) + "\n")
            sys.stdout.flush()


def line(dataset: str, features: str, options: list[str]) -> str:
    started = time.monotonic()
    code, told = keel("certify", "--dataset", dataset, "--features", features, *options)
    whole = time.monotonic() - started
    verdicts = Counter(row["verdict"] for row in told["classes"])
    regions = sum(row["conditions"]["region"] == "proved" for row in told["classes"])
    checked, answer = keel("check", told["certificate"])
    return (
        f"{dataset:10} {features:8} d {told['features']:5} {told['form']} exit {code}"
        f" {shown(verdicts, len(told['classes']))} regions {regions}/{len(told['classes'])}"
        f" together {told['together']['verdict']}"
        f" | wall: training+proof {told['seconds']:.1f}s whole {whole:.1f}s"
        f" | check exit {checked} accepted {answer['accepted']} {answer['seconds']:.2f}s wall"
        f" | cpu: {costs(Path(told['certificate']), all_proved=set(verdicts) == {'proved'})}"
    )


def shown(verdicts: Counter[str], total: int) -> str:
    return ", ".join(f"{name} {count}/{total}" for name, count in sorted(verdicts.items()))


def keel(*arguments: str) -> tuple[int, dict]:
    done = subprocess.run(
        [sys.executable, "-m", "graphkeel.cli.main", *arguments, "--json"],
        capture_output=True,
        text=True,
    )
    if not done.stdout:
        raise SystemExit(done.stderr)
    return done.returncode, json.loads(done.stdout)


# ---- the same in processor seconds


def costs(path: Path, *, all_proved: bool) -> str:
    check = timed(lambda: check_certificate(path))
    if (
        not all_proved
    ):  # the engines would search until their time is up, which is no cost of a proof
        return f"check {check:.4f}s"
    shipped = Shipped(read_certificate(path))
    engines, proof = timed(shipped.ask_again), timed(shipped.certify_again)
    return (
        f"engines {engines:.4f}s proof whole {proof:.4f}s check {check:.4f}s,"
        f" check < engines {yes(check < engines)}, check < proof {yes(check < proof)}"
    )


def yes(holds: bool) -> str:
    return "yes" if holds else "no"


def timed(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return statistics.median(times)


class Shipped:
    """What a certificate says of the shipped weights, back in the producing side's own classes."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.head = source_from_json(content["head"], "head")
        self.classes = [ShippedClass(entry) for entry in content["classes"]]
        self.data_sha256 = content["hashes"]["data"]

    def ask_again(self) -> None:
        for one in self.classes:
            one.answers(one.problem)

    def certify_again(self) -> dict[str, Any]:
        layers: Layers = tuple(
            (tensor(chain[0].weight), tensor(chain[0].bias)) for chain in self.head
        )
        proofs = [one.proof(layers) for one in self.classes]
        return build_certificate(unused(self.head), proofs, data_sha256=self.data_sha256)


class ShippedClass:
    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry, self.label, self.conditions = entry, entry["class"], entry["conditions"]
        self.controller = source_from_json(entry["controller"], "controller")
        self.lyapunov = source_from_json(entry["lyapunov"], "lyapunov")
        self.anchor = decode_array(entry["anchor"], "anchor", 1)
        self.problem = problem_of(entry)
        self.control, self.function = self._control(), self._function()

    def answers(self, problem: Problem) -> dict[str, ConditionReport]:
        found = ask_portfolio(problem, seconds=60.0, complete=True).conditions
        region = Region(self.label, self.conditions["region"]["margin"])
        kept = ask_region(replace(problem, region=region), seconds=60.0, complete=True)
        return {one.condition: one for one in (*found, kept)}

    def proof(self, head: Layers) -> ClassProof:
        """The collapse and the engines' answers."""
        old = self.problem
        problem = Problem(
            closed_loop_network(head, self.control),
            lyapunov_network(self.function),
            **box(old),
            name=old.name,
        )
        return ClassProof(
            label=self.label,
            form=self.entry["form"],
            controller=unused(self.controller),
            lyapunov=unused(self.lyapunov),
            anchor=self.anchor,
            problem=problem,
            conditions=self.answers(problem),
            delta=self.conditions["representative"]["delta"],
            margin=self.conditions["region"]["margin"],
        )

    def _control(self) -> NeuralWeights:
        inner, outer = self.controller[0][-1], self.controller[1][-1]
        weights = map(
            tensor, (self.problem.equilibrium, inner.weight, inner.bias, outer.weight, outer.bias)
        )
        return NeuralWeights(self.entry["form"], *weights)

    def _function(self) -> LyapunovWeights:
        (shift, inner), (outer,) = self.lyapunov
        centre, outer_weight = -tensor(shift.bias), tensor(outer.weight)[0]
        offset = torch.zeros(()).double() if outer.bias is None else tensor(outer.bias)[0]
        bias = torch.zeros(len(outer_weight)).double() if inner.bias is None else tensor(inner.bias)
        return LyapunovWeights(centre, tensor(inner.weight), bias, outer_weight, offset)


def tensor(array: Any) -> torch.Tensor:
    return torch.tensor(array)


def unused(source: Source) -> Source:
    """The same weights without what was computed from them before."""
    return tuple(tuple(Factor(factor.weight, factor.bias) for factor in chain) for chain in source)


def problem_of(entry: dict[str, Any]) -> Problem:
    loop = Loop.from_json(entry["problem"], "problem")
    return Problem(
        network(loop.closed_loop),
        network(loop.lyapunov),
        **box(loop),
        name=f"class {entry['class']}",
    )


def box(loop: Any) -> dict[str, Any]:
    names = ("lower", "upper", "equilibrium", "hole_radius", "hole_norm", "rho", "positivity")
    return {name: getattr(loop, name) for name in names}


def network(layers: tuple[Layer, ...]) -> Network:
    return Network(
        tuple(Affine(one.weight, one.bias, one.weight_error, one.bias_error) for one in layers)
    )


if __name__ == "__main__":
    main()
