"""Fits the prior of the pool on development graphs, and stores it with its study.

    python benchmarks/fit_prior.py --write

Development cases (paper/docs/research.md says which of their nodes are test nodes of other splits):
* in-graph: models on splits of seeds 20 to 23, with the training labels and 0, 10, 20, 50 or 100
  fresh ones drawn from validation; scored on the *other validation nodes* of the split;
* cut: a graph cut in two along a direction of its smoothed features (seeds 20 and 21); the model is
  trained on one part and meets the whole with 0 to 500 labels of the other part; scored on 500
  others there;
* pairs: two citation graphs and two of Twitch, each way, seeds 40 to 43, with 0 to 500 labels of
  the target; scored on 500 others there. Their third graphs take no part.

Every case counts alike. The weights at the corners of the prior minimise the mean log-loss of all
cases: one convex problem a round. Evidence of a round depends on the priors before it, so they
are fitted one after the other. Where no label is known, evidence from labels has no weight."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Memory
from scipy.optimize import minimize

from graphkeel.graph import GraphTask
from graphkeel.graph.features import FittedPca, dense
from graphkeel.models import train_model
from graphkeel.reconstruct.scene import Scene
from graphkeel.runs.adapt_case import tasks
from graphkeel_paper.datasets import load, load_graph
from graphkeel_paper.specs import AdaptSpec

rule = import_module("graphkeel.reconstruct.decide")

HERE = Path(__file__).parent
SEEDS = range(20, 24)
CUT_SEEDS = range(20, 22)
PAIR_SEEDS = range(40, 44)
PAIRS = (
    ("acmv9", "citationv1"),
    ("citationv1", "acmv9"),
    ("twitch_DE", "twitch_ES"),
    ("twitch_ES", "twitch_DE"),
)
FROM_MODEL = ("model", "model~")
FROM_ANSWER = ("soft own", "soft hops~", "soft means~", "pseudo-labels=")
SOFTNESS = (0.5, 1.0)  # of the cut, in turns: how gradually one part becomes the other
IN_GRAPH = (
    ("cora", "sgc", "pca", "biased"),
    ("citeseer", "sgc", "pca", "biased"),
    ("pubmed", "sgc", "pca", "biased"),
    ("photo", "sgc", "pca", "biased"),
    ("computers", "sgc", "pca", "biased"),
    ("digits", "sgc", "auto", "biased"),
    ("digits", "gcn", "auto", "random"),
    ("cora", "gcn", "rownorm", "public"),
    ("chameleon", "gcn", "raw", "random"),
    ("chameleon", "sgc", "raw", "random"),
    ("wisconsin", "gcn", "raw", "random"),
)
CUT = ("cora", "citeseer", "pubmed", "photo", "cora_ml", "digits", "chameleon", "wisconsin")
FRESH = (0, 10, 20, 50, 100)
TARGET_LABELS = (0, 10, 20, 50, 100, 500)
SCORED = 500
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Case:
    """A model on a graph, the labels it may use, and the nodes it is scored on."""

    name: str
    scene: Scene
    y: Any
    known: rule.Known
    scored: Any


def in_graph(name: str, model: str, features: str, split: str, seed: int) -> dict[str, Any]:
    task = load(_found(name), seed=seed, features=features, split=split)
    return _answers(train_model(model, task, seed=seed), task)


def cut(name: str, seed: int, softness: float) -> dict[str, Any]:
    """A model trained on one part of a graph, on all of it; `part` marks the other one."""
    graph = load_graph(_found(name))
    x = dense(graph.x)
    rng = np.random.default_rng(seed)
    both = FittedPca.fit(x, min(32, *x.shape)).transform(x)
    scene = Scene(np.zeros((len(x), 2), np.float32), both, graph.edge_index)
    along = scene.smoothed[:, :5] / scene.smoothed[:, :5].std(axis=0)
    side = along @ rng.standard_normal(along.shape[1])
    side += softness * side.std() * rng.standard_normal(len(side))
    part = side > np.median(side)
    own_x, own_edges, own_y = _part(graph, x, ~part)
    fitted = FittedPca.fit(own_x, min(32, *own_x.shape))
    order = rng.permutation(np.flatnonzero(own_y >= 0))
    n_train = int(0.8 * len(order))
    ids = (order[:n_train], order[n_train:])
    source = _task(fitted.transform(own_x), own_edges, own_y, ids, graph.n_classes)
    target = _task(fitted.transform(x), graph.edge_index, graph.y, ((), ()), graph.n_classes)
    model = train_model("sgc", source, seed=seed, k=2)
    return {**_answers(model, target), "part": part}


def pair(source: str, target: str, seed: int) -> dict[str, Any]:
    """A model of the source on the target."""
    spec = AdaptSpec(_found(source), _found(target), model_options={"k": 2})
    here, there = tasks(spec, seed)
    return _answers(train_model("sgc", here, seed=seed, k=2), there)


def _part(graph: Any, x: Any, chosen: Any) -> tuple[Any, Any, Any]:
    number = np.cumsum(chosen) - 1
    inside = chosen[graph.edge_index].all(axis=0)
    return x[chosen], number[graph.edge_index[:, inside]], graph.y[chosen]


def _task(x: Any, edges: Any, y: Any, ids: tuple[Any, Any], n_classes: int) -> GraphTask:
    masks = [torch.zeros(len(x), dtype=torch.bool) for _ in range(3)]
    for mask, chosen in zip(masks, ids, strict=False):
        mask[np.asarray(chosen, dtype=np.int64)] = True
    tensors = (torch.as_tensor(np.array(x)), torch.as_tensor(edges), torch.as_tensor(y))
    return GraphTask(*tensors, *masks, n_classes)


def _answers(model: Any, task: GraphTask) -> dict[str, Any]:
    with torch.no_grad():
        logits = model.eval()(task.x, task.edge_index).numpy()
    plain = {key: getattr(task, key).numpy() for key in ("x", "edge_index", "y")}
    masks = {key: getattr(task, f"{key}_mask").numpy().nonzero()[0] for key in ("train", "val")}
    return {"logits": logits, **plain, **masks}


def _found(name: str) -> str:
    import os

    own = Path(os.environ.get("GRAPHKEEL_DATA", ".")) / "graphs" / f"{name}.npz"
    return str(own) if own.exists() else name


def cases(memory: Memory) -> Iterator[tuple[str, Scene, Any, list[tuple[int, rule.Known, Any]]]]:
    """Name, scene, labels, and for each number of labels what is known and what is scored."""
    made, parted, paired = (memory.cache(how) for how in (in_graph, cut, pair))
    for spec in IN_GRAPH:
        for seed in SEEDS:
            got = made(*spec, seed)
            yield f"{spec[0]} {spec[1]} {spec[3]}", *_budgets(got, seed, FRESH, got["val"])
    for name in CUT:
        for seed in CUT_SEEDS:
            got = parted(name, seed, SOFTNESS[seed % 2])
            pool = np.flatnonzero((got["y"] >= 0) & got["part"])
            yield f"{name} cut", *_budgets(got, seed, TARGET_LABELS, pool)
    for source, target in PAIRS:
        for seed in PAIR_SEEDS:
            got = paired(source, target, seed)
            pool = np.flatnonzero(got["y"] >= 0)
            yield f"{source} {target}", *_budgets(got, seed, TARGET_LABELS, pool)


def _budgets(got: dict[str, Any], seed: int, counts: Any, pool: Any) -> tuple[Any, Any, Any]:
    scene = Scene(got["logits"], got["x"], got["edge_index"])
    order = np.random.default_rng([seed, 9]).permutation(pool)
    sets = []
    for count in counts:
        if count > len(order) - 30:
            continue
        nodes = np.concatenate([got["train"], order[:count]]).astype(np.int64)
        judging = np.arange(len(nodes)) >= len(got["train"])
        known = rule.Known(nodes, got["y"][nodes], judging, scene.n_classes)
        sets.append((count, known, order[max(count, len(order) - SCORED) :]))
    return scene, got["y"], sets


def collect(memory: Memory, rounds: list[Any]) -> list[dict[str, Any]]:
    """For each case evidence at its scored nodes, and its place among the corners."""
    rule._stored_prior = lambda: rounds  # type: ignore[assignment]
    settings = rule.DecideSettings()
    rows = []
    for name, scene, y, sets in cases(memory):
        for count, known, scored in sets:
            found = rule.decide(scene, known, settings=settings)
            answers = {"accuracy": found.scores, "untouched": scene.logits}
            rows.append(
                {
                    "name": name,
                    "count": count,
                    "corners": rule.prior_corners(
                        found.agreement, known.count(settings.trained), settings
                    ),
                    "evidence": {k: v[scored, -1].astype(float) for k, v in found.evidence.items()},
                    "y": y[scored],
                    "agreement": found.agreement,
                    **{
                        what: 100 * float((z[scored].argmax(axis=1) == y[scored]).mean())
                        for what, z in answers.items()
                    },
                }
            )
    return rows


def fit(rows: list[dict[str, Any]], pull: float) -> dict[str, dict[str, float]]:
    """The corners' weights with the least mean log-loss."""
    names = list(dict.fromkeys(name for row in rows for name in row["evidence"]))
    free = [corner for corner in rows[0]["corners"] if corner not in FIXED]
    stacks, shares, fixed = [], [], []
    for row in rows:
        none = np.zeros_like(row["evidence"]["model"])
        stacks.append(np.stack([row["evidence"].get(name, none) for name in names]))
        shares.append(np.array([row["corners"][corner] for corner in free]))
        fixed.append(
            sum(
                row["corners"][corner] * weight * row["evidence"][name]
                for corner, table in FIXED.items()
                for name, weight in table.items()
            )
        )

    def loss(point: Any) -> tuple[float, Any]:
        table = point.reshape(len(free), len(names))
        value, down = pull * (point @ point), 2 * pull * table
        for row, stack, share, start in zip(rows, stacks, shares, fixed, strict=True):
            z = np.tensordot(share @ table, stack, axes=1) + start
            z -= z.max(axis=1, keepdims=True)
            odds = np.exp(z)
            p = odds / odds.sum(axis=1, keepdims=True)
            each = np.arange(len(p))
            scale = 1.0 / (len(rows) * len(p))
            value -= scale * np.log(p[each, row["y"]]).sum()
            p[each, row["y"]] -= 1.0
            down = down + scale * np.outer(share, np.tensordot(stack, p, axes=([1, 2], [0, 1])))
        return value, down.ravel()

    allowed = [
        (0.0, None if corner != NO_LABEL or name in FROM_MODEL + FROM_ANSWER else 0.0)
        for corner in free
        for name in names
    ]
    start = np.array([0.0 if high == 0.0 else 0.05 for _, high in allowed])
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=allowed,
        options={"maxiter": 300, "ftol": 1e-9},
    )
    table = found.x.reshape(len(free), len(names))
    print(f"mean log-loss {found.fun:.4f}")
    return {
        corner: {name: round(float(w), 3) for name, w in zip(names, row, strict=True) if w > 0.002}
        for corner, row in zip(free, table, strict=True)
    } | FIXED


def report(rows: list[dict[str, Any]]) -> None:
    print("accuracy on scored development nodes: untouched, then by labels")
    for name in dict.fromkeys(row["name"] for row in rows):
        mine = [row for row in rows if row["name"] == name]
        counts = dict.fromkeys(row["count"] for row in mine)
        means = {c: np.mean([r["accuracy"] for r in mine if r["count"] == c]) for c in counts}
        base = np.mean([row["untouched"] for row in mine])
        agreement = np.mean([row["agreement"] for row in mine])
        print(
            f"{name:28} h {agreement:5.2f} {base:6.1f} ",
            *(f"{c}: {a:.1f}" for c, a in means.items()),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pull", type=float, default=0.002)
    parser.add_argument("--cache", default="runs/prior")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    target = Path(rule.__file__).with_name("prior.json")
    memory = Memory(given.cache, verbose=0)
    rounds: list[Any] = []
    for _ in range(ROUNDS):
        rounds.append(fit(collect(memory, [*rounds, (rounds or [FIRST])[-1]]), given.pull))
    for table in rounds:
        for corner, weights in table.items():
            print(corner, weights)
    rows = collect(memory, rounds)
    report(rows)
    if given.write:
        study = {
            "script": "benchmarks/fit_prior.py",
            "in_graph": IN_GRAPH,
            "seeds": list(SEEDS),
            "cut": CUT,
            "cut_seeds": list(CUT_SEEDS),
            "pairs": PAIRS,
            "pair_seeds": list(PAIR_SEEDS),
            "cases": len(rows),
        }
        target.write_text(json.dumps({"study": study, "rounds": rounds}, indent=1) + "\n")


NO_LABEL = "homophilous, no label"
FIXED = {"heterophilous, no label": {"model": 1.0}}  # nothing else is believed there
FIRST = {corner: {"model": 1.0} for corner in rule.CORNERS}

if __name__ == "__main__":
    main()
