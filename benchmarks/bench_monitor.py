"""Recommendations of `monitor` on simulated weeks, against what would have been best.

    GRAPHKEEL_DATA=… python benchmarks/bench_monitor.py --keep weeks.jsonl

A model is trained on a part of a real graph's nodes, and a reconstructor is fitted there. A week
later the whole graph is there, in one of six ways:
* `none`: the other nodes are a random sample; in quiet weeks (severity 0.4) one node in 200 came;
* `covariate`: features of all nodes are moved and stretched;
* `shares`: most of the nodes that came are of two classes, which were rare before;
* `community`: the nodes that came are one region of the graph, and their features are moved;
* `apart`: they are one region without a link to the nodes that were there, and each of their
  features stands in another one's column; the severity is their share of the nodes;
* `rewired`: a share of the edges is replaced by random ones.
Each at two severities. How many nodes came otherwise (5 or 30 %) and how many labels of each class
there are (5 that the model is trained on and 5 more, 20 and 10, or 40 and 40) is drawn for every
week.

`monitor` sees no label of the week. Then the true labels say what each step brings, in points of
accuracy on nodes that no step has a label of: `update`; labels of the twenty suggested nodes
(update, then feedback); a new model, trained on a fresh training set as large as the first one,
drawn at random from the week, with a reconstructor that has the old labels too. The best step is
the one with the most points less its price (`Prices`); the regret of a step is how many points less
it brings, prices counted."""

from __future__ import annotations

import argparse
import copy
import itertools
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
from graphkeel.monitor import ACTIONS, Prices
from graphkeel_paper.datasets import load

PRICES = {"nothing": 0.0, **asdict(Prices())}
OTHER_PRICES = (Prices(0.1, 0.5, 3.0), Prices(1.0, 1.5, 4.0), Prices(1.0, 4.0, 16.0))
KINDS = ("none", "covariate", "shares", "community", "rewired", "apart")
SEVERITIES = (0.4, 0.8)
ARRIVING = (0.05, 0.3)  # share of the nodes
QUIET = 0.005  # likewise
LABELS = ((5, 5), (20, 10), (40, 40))  # of each class: the model is trained on, known beside
RAW = ("chameleon", "digits", "wisconsin")  # few features, as they are


class Week:
    """A fitted graph, and the same graph a week later: old nodes first.

    Args:
        name: of the graph.
        kind: of drift.
        severity: of it, in (0, 1).
        seed: of everything random.
    """

    def __init__(self, name: str, kind: str, severity: float, seed: int) -> None:
        features = "auto" if name in RAW else "pca"
        whole = load(name, seed=seed, split="random", features=features)
        rng = np.random.default_rng([seed, KINDS.index(kind), SEVERITIES.index(severity)])
        self.arriving = float(rng.choice(ARRIVING))
        self.trained, self.known = rng.choice(LABELS).tolist()
        if kind == "apart":
            self.arriving = severity
        elif kind == "none" and severity == SEVERITIES[0]:
            self.arriving = QUIET
        order, n_old = arrival(whole, kind, severity, self.arriving, rng)
        x, edges, y = renumbered(whole, order)
        old = (edges < n_old).all(axis=0)
        raw = RawGraph(name, x[:n_old], edges[:, old], y[:n_old], whole.n_classes)
        train, val = labelled(raw, self.trained, self.known, rng)
        self.n_old = n_old
        self.y = torch.from_numpy(y)
        self.before = graph_task(raw, train, val)
        if kind == "covariate":
            x = moved(x, severity, rng)
        if kind == "community":
            x[n_old:] = moved(x[n_old:], severity, rng)
        if kind == "apart":
            x[n_old:] = x[n_old:, rng.permutation(x.shape[1])]
            edges = edges[:, (edges < n_old)[0] == (edges < n_old)[1]]
        if kind == "rewired":
            edges = rewired(edges, len(y), severity, rng)
        self.after = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges))


def arrival(
    task: GraphTask, kind: str, severity: float, arriving: float, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """An order in which nodes come, and how many are there first."""
    y = task.y.numpy()
    order = rng.permutation(len(y))
    n_old = int((1 - arriving) * len(y))
    if kind == "shares":
        rare = rng.permutation(task.n_classes)[:2]
        late = np.isin(y[order], rare) & (rng.random(len(y)) < severity)
        order = np.concatenate([order[~late], order[late]])
        n_old = min(n_old, int((~late).sum()))
    if kind in ("community", "apart"):
        region = grown_region(task, int(arriving * len(y)), rng)
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


def labelled(
    graph: RawGraph, trained: int, known: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes to train on and nodes whose label is known beside, so many of each class."""
    parts = [rng.permutation(np.flatnonzero(graph.y == label)) for label in range(graph.n_classes)]
    train = np.concatenate([part[: min(trained, len(part) // 3)] for part in parts])
    beside = np.concatenate([part[::-1][: min(known, len(part) // 3)] for part in parts])
    return train, beside


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


def measured(name: str, kind: str, severity: float, seed: int, model: str) -> dict[str, Any]:
    """The recommendation of `monitor` for a week, and the true accuracy after each step."""
    week = Week(name, kind, severity, seed)
    trained = train_model(model, week.before, seed=seed)
    rec = Reconstructor(trained, seed=seed).fit(week.before.to_data())
    told = rec.monitor(week.after)
    suggested = torch.tensor(told.suggested)
    scored = week.y >= 0
    fresh = training_set(week, seed)
    for taken in (rec.labels_.nodes, rec._validation.nodes, suggested, fresh):
        scored[taken] = False

    def right(answers: torch.Tensor) -> float:
        return 100.0 * float((answers == week.y)[scored].float().mean())

    served = week.after.x.clone()
    same = (week.after.x[: week.n_old] == week.before.x).all(dim=1).nonzero().flatten()
    served[same] = rec.features_[same]
    frozen = rec._context.frozen
    found = {"nothing": right(frozen(served, week.after.edge_index).argmax(dim=1))}
    later = copy.copy(rec).update(week.after, rechoose=True)
    found["update"] = right(later.predict(week.after))
    answered = suggested[week.y[suggested] >= 0]
    found["label"] = right(later.feedback(answered, week.y[answered]).predict(week.after))
    found["retrain"] = right(retrained(week, fresh, model, seed))
    return {
        "graph": name,
        "kind": kind,
        "severity": severity,
        "seed": seed,
        "arriving": week.arriving,
        "labels": [week.trained, week.known],
        "told": told.to_dict(),
        "true": found,
    }


def training_set(week: Week, seed: int) -> torch.Tensor:
    """Nodes of the week, of each class as many as the first model was trained on."""
    rng = np.random.default_rng([seed, 99])
    y = week.y.numpy()
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in range(week.before.n_classes)]
    return torch.from_numpy(np.concatenate([p[: min(week.trained, len(p) // 3)] for p in parts]))


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


def best(after: dict[str, float], prices: dict[str, float]) -> str:
    """The step with the most points less its price."""
    return max(prices, key=lambda step: after[step] - prices[step])


def regrets(rows: list[dict[str, Any]], prices: dict[str, float]) -> dict[str, np.ndarray]:
    """Points that the recommended step, and each step taken always, brings less than the best."""

    def lost(row: dict[str, Any], step: str) -> float:
        worth = {name: row["true"][name] - price for name, price in prices.items()}
        return max(worth.values()) - worth[step]

    told = [lost(row, best(row["told"]["after"], prices)) for row in rows]
    always = {step: [lost(row, step) for row in rows] for step in prices}
    return {name: np.array(values) for name, values in {"recommended": told, **always}.items()}


def confusion(rows: list[dict[str, Any]]) -> list[str]:
    counts = Counter((best(row["true"], PRICES), row["told"]["action"]) for row in rows)
    lines = ["best \\ told  " + "".join(f"{name:>9}" for name in ACTIONS)]
    for was in ACTIONS:
        lines.append(f"{was:12} " + "".join(f"{counts[was, told]:9}" for told in ACTIONS))
    return lines


def summary(rows: list[dict[str, Any]]) -> list[str]:
    lost = regrets(rows, PRICES)
    told = lost["recommended"]
    exact = sum(row["told"]["action"] == best(row["true"], PRICES) for row in rows)
    lines = [
        f"the best step was recommended in {exact} of {len(rows)} weeks, one within half a point "
        f"of it in {(told <= 0.5).sum()}, within a point in {(told <= 1.0).sum()}; the most that "
        f"was lost in a week: {told.max():.1f} points",
    ]
    for prices in (Prices(), *OTHER_PRICES):
        named = asdict(prices)
        lost = regrets(rows, {"nothing": 0.0, **named})
        lines.append(
            "regret, mean points, where "
            + ", ".join(f"{step} costs {price:g}" for step, price in named.items())
            + ": "
            + ", ".join(
                f"{'always ' * (name in PRICES)}{name} {values.mean():.2f}"
                for name, values in lost.items()
            )
        )
    for kind in KINDS:
        of_kind = regrets([row for row in rows if row["kind"] == kind], PRICES)
        lines.append(
            f"{kind:9} regret: "
            + ", ".join(f"{name} {values.mean():.2f}" for name, values in of_kind.items())
        )
    return [*lines, *accounts(rows), *alarms(rows)]


def accounts(rows: list[dict[str, Any]]) -> list[str]:
    """How right the expected accuracies and gains are."""
    told = {step: np.array([row["told"]["after"][step] for row in rows]) for step in PRICES}
    true = {step: np.array([row["true"][step] for row in rows]) for step in PRICES}
    inside = [row["told"]["low"] <= row["true"]["update"] <= row["told"]["high"] for row in rows]
    width = np.mean([row["told"]["high"] - row["told"]["low"] for row in rows])
    error = told["update"] - true["update"]
    lines = [
        f"expected accuracy after an update: mean absolute error {np.abs(error).mean():.1f} "
        f"points, mean error {error.mean():+.1f}, {100 * np.mean(inside):.0f} % inside the "
        f"interval (mean width {width:.1f})"
    ]
    for step, base in (("update", "nothing"), ("label", "update"), ("retrain", "update")):
        expected, found = told[step] - told[base], true[step] - true[base]
        lines.append(
            f"gain of {step} over {base}: expected {expected.mean():.2f}, found "
            f"{found.mean():.2f}, mean absolute error {np.abs(expected - found).mean():.2f}, "
            f"correlation {np.corrcoef(expected, found)[0, 1]:.2f}"
        )
    return lines


def alarms(rows: list[dict[str, Any]]) -> list[str]:
    """In how many weeks of each kind the tests told of drift."""
    lines = []
    for kind in KINDS:
        weeks = [row["told"]["drifted"] for row in rows if row["kind"] == kind]
        names = ("features", "confidence", "class shares", "homophily")
        counts = ", ".join(f"{name} {sum(name in week for week in weeks)}" for name in names)
        lines.append(f"{kind:9} {len(weeks)} weeks; drift was told of in: {counts}")
    return lines


def shown(row: dict[str, Any]) -> str:
    """A week in a line: true accuracy after each step, and the expected one in brackets."""
    told, true = row["told"], row["true"]
    steps = " ".join(f"{step} {true[step]:.1f} ({told['after'][step]:.1f})" for step in true)
    trained, known = row["labels"]
    return (
        f"{row['graph']:9} {row['kind']:9} {row['severity']:.1f} {row['seed']:3} "
        f"{row['arriving']:.2f} {trained:2}+{known:<2} told {told['action']:8} best "
        f"{best(true, PRICES):8} {steps}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", default="cora,cora_ml,photo")
    parser.add_argument("--model", default="sgc")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=10, help="the first")
    parser.add_argument("--keep", type=Path, required=True, help="a JSON line a week; continues")
    parser.add_argument("--no-run", action="store_true", help="of the weeks that are kept")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines = args.keep.read_text().splitlines() if args.keep.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(row["graph"], row["kind"], row["severity"], row["seed"]) for row in rows}
    seeds = range(args.seed, args.seed + args.seeds)
    for seed, name in itertools.product(seeds, args.graphs.split(",")):
        for kind, severity in itertools.product(KINDS, SEVERITIES):
            if args.no_run or (name, kind, severity, seed) in done:
                continue
            rows.append(measured(name, kind, severity, seed, args.model))
            with args.keep.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    for line in [*map(shown, rows), "", *confusion(rows), "", *summary(rows)]:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
