"""Which nodes to label next: 50 that `suggest` names against 50 and 100 drawn at random.

    python benchmarks/bench_suggest.py [--datasets cora,citeseer,pubmed,digits] [--splits 10]

For each of ten biased splits: an SGC, a fit with the training labels (validation labels judge, as
in the paper's protocol), then the labels of the named nodes are fed back, and test accuracy is
measured. Nodes are named among those outside training, validation and test; where the split leaves
none (digits), half of the test nodes, drawn at random, may be named and the other half is measured.
Random draws are repeated, and their mean counts. The weight and the coverage that `suggest` uses
were chosen on splits 10 to 14 of Cora and digits."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import torch

SUGGESTED = 50
RANDOM = (50, 100)
DRAWS = 3
MIN_POOL = 400  # nodes to choose from; where there are fewer, half of the test nodes join


def parts(data: Any, seed: int) -> tuple[Any, Any]:
    """The nodes that may be named and those that are measured, bool masks."""
    measured = data.test_mask.clone()
    pool = ~(data.train_mask | data.val_mask | measured) & (data.y >= 0)
    if int(pool.sum()) < MIN_POOL:
        nodes = measured.nonzero().flatten()
        generator = torch.Generator().manual_seed(seed)
        half = nodes[torch.randperm(len(nodes), generator=generator)[: len(nodes) // 2]]
        measured[half] = False
        pool[half] = True
    return pool, measured


def row(dataset: str, seed: int) -> dict[str, float]:
    """Accuracies of one split, in percent."""
    from graphkeel import Reconstructor
    from graphkeel.models import train_model
    from graphkeel_paper.datasets import load

    task = load(dataset, seed=seed)
    data = task.to_data()
    pool, measured = parts(data, seed)
    rec = Reconstructor(train_model("sgc", task, seed=seed), labels="train").fit(data)

    def accuracy() -> float:
        return 100.0 * float((rec.predict(data) == data.y)[measured].float().mean())

    def after(nodes: Any) -> float:
        rec.reset()
        rec.feedback(nodes, data.y[nodes])
        return accuracy()

    found = {"none": accuracy(), "suggested": after(rec.suggest(SUGGESTED, among=pool))}
    ids = pool.nonzero().flatten()
    for count in RANDOM:
        draws = []
        for draw in range(DRAWS):
            generator = torch.Generator().manual_seed(1000 * seed + draw)
            draws.append(after(ids[torch.randperm(len(ids), generator=generator)[:count]]))
        found[f"random {count}"] = float(np.mean(draws))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default="cora,citeseer,pubmed,digits")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first split")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ["none", "random 50", "random 100", "suggested"]
    print(f"{'':10}" + "".join(f"{name:>14}" for name in head) + "   suggested 50 − random 100")
    for dataset in args.datasets.split(","):
        rows = [row(dataset, seed) for seed in range(args.first, args.first + args.splits)]
        columns = {name: np.array([one[name] for one in rows]) for name in head}
        cells = "".join(f"{columns[name].mean():14.2f}" for name in head)
        gap = columns["suggested"] - columns["random 100"]
        better = f"{gap.mean():+.2f} ± {gap.std(ddof=1):.2f}, {int((gap >= 0).sum())} of {len(gap)}"
        print(f"{dataset:10}{cells}   {better}", flush=True)


if __name__ == "__main__":
    main()
