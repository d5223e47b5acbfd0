"""Cost of a reconstruction: `fit` (decide, then steer) and `transform`, against training the SGC
it repairs.

    GRAPHKEEL_DATA=… python benchmarks/bench_reconstruct.py [--dataset cora] [--repeats 7]

Both sides are timed in turn in the same process, on one thread, and the ratio of the medians is
printed."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from graphkeel import Reconstructor
from graphkeel.models import train_model
from graphkeel_paper.datasets import load


def timed(job: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = job()
    return result, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    training, repair = [], []
    for seed in range(args.repeats + 1):
        task = load(args.dataset, seed=seed)
        data = task.to_data()
        model, trained = timed(lambda task=task, seed=seed: train_model("sgc", task, seed=seed))
        _, repaired = timed(
            lambda model=model, data=data: Reconstructor(model).fit(data).transform(data)
        )
        if seed:  # the first round warms up
            training.append(trained)
            repair.append(repaired)
    base, ours = statistics.median(training), statistics.median(repair)
    table = Table(
        "what",
        "median seconds",
        "ratio",
        title=f"{args.dataset}, {args.repeats} splits, one thread",
    )
    table.add_row("train the SGC (100 epochs)", f"{base:.3f}", "1")
    table.add_row("fit + transform", f"{ours:.3f}", f"{ours / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
