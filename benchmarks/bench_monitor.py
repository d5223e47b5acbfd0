"""Recommendations of `monitor` on simulated weeks, against what would have been best.

    GRAPHKEEL_DATA=… python benchmarks/bench_monitor.py [--graphs cora,cora_ml,photo]

A model is trained on 70 % of a real graph's nodes, with twenty labels of each class, and a
reconstructor is fitted there with ten more of each. A week later the whole graph is there, in one
of five ways:
* `none`: the other nodes are a random sample;
* `covariate`: features of all nodes are moved and stretched;
* `shares`: most of the nodes that came are of two classes, which were rare before;
* `community`: the nodes that came are one region of the graph, and their features are moved;
* `rewired`: a share of the edges is replaced by random ones.
Each at two severities. `monitor` sees no label of the week. Then the true labels say what each step
brings, in points of accuracy on unlabelled nodes: `update`; labels of the twenty suggested nodes
(update, then feedback); a new model, trained on a fresh training set as large as the first one,
drawn at random from the week, with a reconstructor that has the old labels too. The best step is
the one with the most points less its price (PRICES): what a step has to bring to be worth its
trouble.

The numbers of `MonitorSettings` were chosen on sixty weeks of other graphs and seeds:
--graphs digits,citeseer,chameleon --seed 100 --features auto."""

from __future__ import annotations

import argparse
import copy
import json
import sys
import warnings
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphkeel import Reconstructor
from graphkeel.graph import GraphTask
from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.models import train_model
from graphkeel.monitor import ACTIONS
from graphkeel_paper.datasets import load

PRICES = {"nothing": 0.0, "update": 0.25, "label": 2.0, "retrain": 8.0}
KINDS = ("none", "covariate", "shares", "community", "rewired")
SEVERITIES = (0.4, 0.8)
THERE = 0.7  # share of the nodes that the fitted graph has
TRAINED, KNOWN = 20, 10  # labels of each class


class Week:
    """A fitted graph, and the same graph a week later: old nodes first.

    Args:
        name: of the graph.
        kind: of drift.
        severity: of it, in (0, 1).
        seed: of everything random.
        features: as `load` prepares them.
    """

    def __init__(self, name: str, kind: str, severity: float, seed: int, features: str) -> None:
        whole = load(name, seed=seed, split="random", features=features)
        rng = np.random.default_rng([seed, KINDS.index(kind), SEVERITIES.index(severity)])
        order, n_old = arrival(whole, kind, severity, rng)
        x, edges, y = renumbered(whole, order)
        old = (edges < n_old).all(axis=0)
        raw = RawGraph(name, x[:n_old], edges[:, old], y[:n_old], whole.n_classes)
        train, val = labelled(raw, rng)
        self.n_old = n_old
        self.y = torch.from_numpy(y)
        self.before = graph_task(raw, train, val)
        if kind == "covariate":
            x = moved(x, severity, rng)
        if kind == "community":
            x[n_old:] = moved(x[n_old:], severity, rng)
        if kind == "rewired":
            edges = rewired(edges, len(y), severity, rng)
        self.after = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges))


def arrival(
    task: GraphTask, kind: str, severity: float, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """An order in which nodes come, and how many are there first."""
    y = task.y.numpy()
    order = rng.permutation(len(y))
    n_old = int(THERE * len(y))
    if kind == "shares":
        rare = rng.permutation(task.n_classes)[:2]
        late = np.isin(y[order], rare) & (rng.random(len(y)) < severity)
        order = np.concatenate([order[~late], order[late]])
        n_old = min(n_old, int((~late).sum()))
    if kind == "community":
        region = grown_region(task, int((1 - THERE) * len(y)), rng)
        order = np.concatenate([order[~region[order]], order[region[order]]])
        n_old = int((~region).sum())
    return order, n_old


def grown_region(task: GraphTask, size: int, rng: np.random.Generator) -> np.ndarray:
    """Nodes around one, hop by hop, bool, shape (N,)."""
    source, target = task.edge_index.numpy()
    inside = np.zeros(task.n_nodes, bool)
    while inside.sum() < size:
        inside[rng.integers(task.n_nodes)] = True
        for _ in range(20):
            fresh = np.unique(target[inside[source]])
            fresh = rng.permutation(fresh[~inside[fresh]])
            if not len(fresh) or inside.sum() >= size:
                break
            inside[fresh[: size - int(inside.sum())]] = True
    return inside


def labelled(graph: RawGraph, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nodes to train on and nodes whose label is known beside, so many of each class."""
    parts = [rng.permutation(np.flatnonzero(graph.y == label)) for label in range(graph.n_classes)]
    train = np.concatenate([part[: min(TRAINED, len(part) // 3)] for part in parts])
    known = np.concatenate([part[::-1][: min(KNOWN, len(part) // 3)] for part in parts])
    return train, known


def renumbered(task: GraphTask, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return task.x.numpy()[order].copy(), place[task.edge_index.numpy()], task.y.numpy()[order]


def moved(x: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Each feature moved by so many of its deviations, and stretched."""
    deviation = x.std(axis=0)
    shift = severity * rng.normal(size=x.shape[1]) * deviation
    stretch = np.exp(severity * rng.normal(size=x.shape[1]))
    return (x * stretch + shift).astype(np.float32)


def rewired(edges: np.ndarray, n: int, share: float, rng: np.random.Generator) -> np.ndarray:
    pairs = edges[:, edges[0] < edges[1]]
    other = rng.random(pairs.shape[1]) < share
    pairs[1, other] = rng.integers(n, size=int(other.sum()))
    pairs = pairs[:, pairs[0] != pairs[1]]
    return np.concatenate([pairs, pairs[::-1]], axis=1)


def graph_task(raw: RawGraph, train: np.ndarray, val: np.ndarray) -> GraphTask:
    masks = torch.zeros(3, raw.n_nodes, dtype=torch.bool)
    masks[0, torch.from_numpy(train)] = True
    masks[1, torch.from_numpy(val)] = True
    masks[2] = ~(masks[0] | masks[1]) & torch.from_numpy(raw.y >= 0)
    return GraphTask(
        torch.from_numpy(np.asarray(raw.x)),
        torch.from_numpy(raw.edge_index),
        torch.from_numpy(raw.y),
        *masks,
        n_classes=raw.n_classes,
    )


def measured(
    name: str, kind: str, severity: float, seed: int, model: str, features: str
) -> dict[str, Any]:
    """What `monitor` says of a week, and the true accuracy after each step."""
    week = Week(name, kind, severity, seed, features)
    trained = train_model(model, week.before, seed=seed)
    rec = Reconstructor(trained, seed=seed).fit(week.before.to_data())
    told = rec.monitor(week.after)
    suggested = torch.tensor(told.suggested)
    scored = week.y >= 0
    scored[rec.labels_.nodes] = False
    scored[suggested] = False
    fresh = training_set(week, seed)
    scored[fresh] = False

    def right(answers: torch.Tensor) -> float:
        return 100.0 * float((answers == week.y)[scored].float().mean())

    served = week.after.x.clone()
    same = (week.after.x[: week.n_old] == week.before.x).all(dim=1).nonzero().flatten()
    served[same] = rec.features_[same]
    frozen = rec._context.frozen
    found = {"nothing": right(frozen(served, week.after.edge_index).argmax(dim=1))}
    later = copy.copy(rec).update(week.after, rechoose=True)
    stated = later.guard_.statement
    found["update"] = right(later.predict(week.after))
    found["label"] = right(later.feedback(suggested, week.y[suggested]).predict(week.after))
    found["retrain"] = right(retrained(week, fresh, model, seed))
    return {
        "graph": name,
        "kind": kind,
        "severity": severity,
        "seed": seed,
        "told": told.to_dict(),
        "true": found,
        "fitted": 100.0
        * float(
            (rec.predict(week.before.to_data()) == week.before.y)[week.before.test_mask]
            .float()
            .mean()
        ),
        "statement": None if stated is None else asdict(stated),
    }


def training_set(week: Week, seed: int) -> torch.Tensor:
    """Nodes of the week, of each class as many as the first model was trained on."""
    rng = np.random.default_rng([seed, 99])
    y = week.y.numpy()
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in range(week.before.n_classes)]
    return torch.from_numpy(np.concatenate([p[: min(TRAINED, len(p) // 3)] for p in parts]))


def retrained(week: Week, fresh: torch.Tensor, model: str, seed: int) -> torch.Tensor:
    """Answers of a new model with a reconstructor of its own, which has the old labels too."""
    n = len(week.y)
    train, val = torch.zeros(2, n, dtype=torch.bool)
    train[fresh] = True
    val[: week.n_old] = week.before.train_mask | week.before.val_mask
    val &= ~train
    task = GraphTask(
        week.after.x,
        week.after.edge_index,
        torch.where(train | val, week.y, torch.full_like(week.y, -1)),
        train,
        val,
        torch.zeros_like(val),
        n_classes=week.before.n_classes,
    )
    data = task.to_data()
    return Reconstructor(train_model(model, task, seed=seed), seed=seed).fit(data).predict(data)


def best(true: dict[str, float]) -> str:
    """The step with the most points less its price."""
    return max(PRICES, key=lambda step: true[step] - PRICES[step])


def confusion(rows: list[dict[str, Any]]) -> list[str]:
    counts = Counter((best(row["true"]), row["told"]["action"]) for row in rows)
    lines = ["best \\ told  " + "".join(f"{name:>9}" for name in ACTIONS)]
    for was in ACTIONS:
        lines.append(f"{was:12} " + "".join(f"{counts[was, told]:9}" for told in ACTIONS))
    return lines


def summary(rows: list[dict[str, Any]]) -> list[str]:
    def worth(row: dict[str, Any], step: str) -> float:
        return row["true"][step] - PRICES[step] - row["true"]["nothing"]

    told = [worth(row, row["told"]["action"]) for row in rows]
    most = [worth(row, best(row["true"])) for row in rows]
    exact = sum(row["told"]["action"] == best(row["true"]) for row in rows)
    near = sum(most[i] - told[i] <= 1.0 for i in range(len(rows)))
    errors = np.array([row["told"]["expected"] - row["true"]["update"] for row in rows])
    inside = [row["told"]["low"] <= row["true"]["update"] <= row["told"]["high"] for row in rows]
    width = np.mean([row["told"]["high"] - row["told"]["low"] for row in rows])
    fixed = {step: np.mean([worth(row, step) for row in rows]) for step in PRICES}
    return [
        f"the best step was recommended in {exact} of {len(rows)} weeks, one within a point of it "
        f"in {near}",
        f"points brought, less prices, mean over the weeks: recommended {np.mean(told):+.2f}, best "
        f"{np.mean(most):+.2f}; always "
        + ", ".join(f"{step} {value:+.2f}" for step, value in fixed.items()),
        f"expected accuracy after an update: mean absolute error {np.abs(errors).mean():.1f} "
        f"points, mean error {errors.mean():+.1f}, {100 * np.mean(inside):.0f} % inside the "
        f"interval (mean width {width:.1f})",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", default="cora,cora_ml,photo")
    parser.add_argument("--model", default="sgc")
    parser.add_argument("--features", default="pca", help="as keel-paper run has them")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--keep", type=Path, default=None, help="a JSON line a week, here")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    for name in args.graphs.split(","):
        for kind in KINDS:
            for severity in SEVERITIES:
                for seed in range(args.seed, args.seed + args.seeds):
                    row = measured(name, kind, severity, seed, args.model, args.features)
                    rows.append(row)
                    told, true = row["told"], row["true"]
                    print(
                        f"{name:9} {kind:9} {severity:.1f} {seed:3}  told {told['action']:8} best "
                        f"{best(true):8} "
                        + " ".join(f"{step} {value:.1f}" for step, value in true.items())
                        + f"; expected {told['expected']:.1f} ({told['low']:.0f}-{told['high']:.0f}"
                        f"), at the fit {told['expected_fitted']:.1f}",
                        flush=True,
                    )
                    if args.keep is not None:
                        with args.keep.open("a") as file:
                            file.write(json.dumps(row) + "\n")
    print()
    for line in [*confusion(rows), "", *summary(rows)]:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
