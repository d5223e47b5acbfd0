"""A graph that grows, and labels that are wanted: `update` and `suggest` against a fit.

    python benchmarks/bench_update.py [--nodes 1e6] [--new 1000] [--edges 10000]

An `sbm` graph with ten pairs a node, an SGC, and labels at 1 % of the nodes (biased split) or at
250 (random split). New nodes are joined to old ones drawn at random, the hardest case: the change
then reaches nearly every node within the model's hops. Printed are the seconds of the fit, of
`suggest(100)`, of the update with the weights there are and of one that decides anew
(`rechoose=True`), all measured in this run."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import torch

SUGGESTED = 100
FEATURES = 100
HOMOPHILY = 0.6  # so that labels help, and the guard accepts a change
CHANGED = 100  # old nodes whose features change as well


def timed(name: str, work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What the work returned, and its seconds on the clock and of the processor, printed."""
    wall = time.perf_counter()
    processor = time.process_time()
    result = work()
    seconds = time.perf_counter() - wall
    spent = time.process_time() - processor
    print(f"  {name}: {seconds:.2f} s on the clock, {spent:.2f} processor seconds", flush=True)
    return result, (seconds, spent)


def grown(data: Any, n_new: int, n_edges: int) -> Any:
    """New nodes, each joined to old ones drawn at random, both ways; other features at some."""
    generator = torch.Generator().manual_seed(1)
    n = data.num_nodes
    later = data.clone()
    later.x = torch.cat([data.x, torch.randn(n_new, data.x.shape[1], generator=generator)])
    later.x[torch.randint(0, n, (CHANGED,), generator=generator)] += 0.1
    old = torch.randint(0, n, (n_edges,), generator=generator)
    new = n + torch.arange(n_edges) % n_new
    pairs = torch.stack([torch.cat([old, new]), torch.cat([new, old])])
    later.edge_index = torch.cat([data.edge_index, pairs], dim=1)
    later.y = torch.cat([data.y, torch.full((n_new,), -1)])
    for name in ("train_mask", "val_mask", "test_mask"):
        later[name] = torch.cat([data[name], torch.zeros(n_new, dtype=torch.bool)])
    return later


def scenario(split: str, args: argparse.Namespace) -> None:
    from graphkeel import Reconstructor
    from graphkeel.graph import make_sbm, make_task
    from graphkeel.models import train_model

    n = int(args.nodes)
    graph = make_sbm(n, 10 * n, n_features=FEATURES, homophily=HOMOPHILY, signal=0.3)
    task = make_task(graph, split=split, seed=0)
    model = train_model("sgc", task)
    data = task.to_data()
    labels = int(task.train_mask.sum() + task.val_mask.sum())
    print(f"{n:.0e} nodes, {task.n_edges // 2:.1e} pairs, {labels} labels ({split} split)")
    del graph, task
    rec, fit = timed("fit", lambda: Reconstructor(model).fit(data))
    print(f"  {rec.guard_.reason}; median change {float(rec.change_.median()):.3f}")
    timed(f"suggest({SUGGESTED})", lambda: rec.suggest(SUGGESTED))
    later = grown(data, args.new, args.edges)
    _, update = timed(f"update, {args.new} nodes and {args.edges} edges", lambda: rec.update(later))
    clock, processor = (was / now for was, now in zip(fit, update, strict=True))
    print(
        f"  the update is {clock:.1f} times faster than the fit ({processor:.1f} in processor time)"
    )
    timed("update that decides anew", lambda: rec.update(later, rechoose=True))


def warm_up() -> None:
    """Compile on a tiny graph, so that nobody is charged for it."""
    from graphkeel import Reconstructor
    from graphkeel.graph import make_sbm, make_task
    from graphkeel.models import networks, train_model

    networks.MESSAGES = networks.Messages(most=10**6)
    task = make_task(make_sbm(2000, 20_000, n_features=8), split="random")
    data = task.to_data()
    rec = Reconstructor(train_model("sgc", task)).fit(data)
    rec.suggest(5)
    rec.update(grown(data, 10, 100))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=float, default=1e6)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--edges", type=int, default=10_000)
    parser.add_argument("--split", choices=("random", "biased", "both"), default="both")
    args = parser.parse_args()
    warm_up()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for split in ("random", "biased") if args.split == "both" else (args.split,):
        scenario(split, args)


if __name__ == "__main__":
    main()
