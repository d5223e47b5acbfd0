"""Retrain, or keep the weights? The same labels are used either way, on the same splits.

    GRAPHKEEL_DATA=… python benchmarks/bench_retrain.py [--datasets digits,cora] [--seeds 5]

The model was trained on the biased training set. Then half of the validation labels arrive. Rows:
the untouched model; the same weights with features reconstructed from all known labels; the model
trained anew, from scratch, on all of them; and features reconstructed for that new model. The other
half of the validation labels judges and stops training. Prints test accuracy in percent, mean over
the splits, and the seconds of each way."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import torch
from rich.console import Console
from rich.table import Table

from graphkeel import Reconstructor
from graphkeel.graph import GraphTask
from graphkeel.models import train_model
from graphkeel_paper.datasets import load

ROWS = ("untouched", "reconstructed", "retrained", "retrained and reconstructed")


def arrived(task: GraphTask) -> tuple[torch.Tensor, GraphTask]:
    """Ids of the labels that arrive, and the task that has them among its training labels."""
    nodes = task.val_mask.nonzero().flatten()[::2]
    mask = torch.zeros_like(task.val_mask)
    mask[nodes] = True
    return nodes, replace(task, train_mask=task.train_mask | mask, val_mask=task.val_mask & ~mask)


def one_split(name: str, model: str, seed: int) -> dict[str, tuple[float, float]]:
    """(test accuracy in percent, seconds) of every row."""
    task = load(name, seed=seed)
    data = task.to_data()
    nodes, more = arrived(task)
    found = {}

    def accuracy(predicted: torch.Tensor) -> float:
        return 100 * float((predicted == task.y)[task.test_mask].float().mean())

    old = train_model(model, task, seed=seed)
    found["untouched"] = (accuracy(old(task.x, task.edge_index).argmax(1)), 0.0)
    started = time.process_time()
    rec = Reconstructor(old, labels="train", seed=seed)  # the same labels on both sides
    rec.fit(data, nodes=nodes, labels=task.y[nodes])
    found["reconstructed"] = (accuracy(rec.predict(data)), time.process_time() - started)
    started = time.process_time()
    new = train_model(model, more, seed=seed)
    seconds = time.process_time() - started
    found["retrained"] = (accuracy(new(task.x, task.edge_index).argmax(1)), seconds)
    started = time.process_time()
    graph = more.to_data()
    rec = Reconstructor(new, seed=seed).fit(graph)
    seconds += time.process_time() - started
    found["retrained and reconstructed"] = (accuracy(rec.predict(graph)), seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default="digits,cora,citeseer")
    parser.add_argument("--models", default="sgc,gcn")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for model in args.models.split(","):
        names = args.datasets.split(",")
        title = f"{model}, {args.seeds} splits: test accuracy in percent (processor seconds)"
        table = Table("", *names, title=title, title_justify="left")
        results = {
            name: [one_split(name, model, seed) for seed in range(args.seeds)] for name in names
        }
        for row in ROWS:
            cells = []
            for name in names:
                accuracies, seconds = zip(*(split[row] for split in results[name]), strict=True)
                mean = statistics.fmean(accuracies)
                cells.append(f"{mean:.1f} ({statistics.fmean(seconds):.1f})")
            table.add_row(row, *cells)
        Console(width=90).print(table)


if __name__ == "__main__":
    main()
