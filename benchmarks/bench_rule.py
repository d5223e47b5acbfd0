"""The rule beside another version of graphkeel: accuracy and processor seconds on the same splits.

    python benchmarks/bench_rule.py protocol --seeds 0-9 --other ../v0.2/src
    python benchmarks/bench_rule.py few --seeds 0-2 --other ../v0.2/src
    python benchmarks/bench_rule.py unseen --seeds 0-9
    python benchmarks/bench_rule.py pairs --seeds 2-11
    python benchmarks/bench_rule.py citations --seeds 60-69 --other ../v0.2/src
    python benchmarks/bench_rule.py cost --other ../v0.2/src

`--other` names the sources of the other version; without it only this one runs. Each version works
in a process of its own, on one thread, and is asked in turn, case by case. Test labels are looked
at here and nowhere else."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

PAPER = [
    (name, "sgc", "pca", "biased") for name in ("cora", "citeseer", "pubmed", "photo", "computers")
]
GCN = [
    ("chameleon", "gcn", "raw", "random"),
    ("wisconsin", "gcn", "raw", "random"),
    ("cora", "gcn", "rownorm", "public"),
    ("citeseer", "gcn", "rownorm", "public"),
]
WORDS = [(name, "gcn", "rownorm", "biased") for name in ("cora", "citeseer", "photo")]
FEW = [
    ("cora", "sgc", "pca", "biased"),
    ("cora", "gcn", "rownorm", "public"),
    ("cora", "sage", "pca", "biased"),
    ("cora", "gat", "pca", "random"),
    ("digits", "sgc", "auto", "biased"),
    ("digits", "gat", "auto", "biased"),
    ("digits", "sage", "auto", "random"),
    ("cora_ml", "gcn", "pca", "random"),
    ("chameleon", "sgc", "raw", "random"),
    ("chameleon", "gcn", "raw", "random"),
    ("wisconsin", "gcn", "raw", "random"),
    ("wisconsin", "sage", "raw", "random"),
]
KINDS = ("protocol", "gcn", "few", "unseen", "pairs", "citations", "cost")
UNSEEN = [  # graphs whose own labels nothing was tuned on
    ("dblpv7", "sgc", "auto", "random"),
    ("twitch_ENGB", "gcn", "auto", "random"),
    ("sbm", "sgc", "auto", "random"),
]
WARM_UP = {
    "kind": "graph",
    "graph": "digits",
    "model": "sgc",
    "features": "auto",
    "split": "biased",
    "seed": 0,
    "labels": "all",
    "options": {},
}
CITATIONS = ("acmv9", "citationv1", "dblpv7")
TWITCH = ("twitch_DE", "twitch_ENGB", "twitch_ES")


def found(name: str) -> str:
    """A graph of the data folder as a file, or a name that the package knows."""
    own = Path(os.environ.get("GRAPHKEEL_DATA", ".")) / "graphs" / f"{name}.npz"
    return str(own) if own.exists() else name


# ---- a version at work


def work() -> None:
    """Answer cases, one a line, from standard input."""
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        case = json.loads(line)
        answer = pair_case(case) if case["kind"] == "pair" else graph_case(case)
        print("ANSWER " + json.dumps(answer), flush=True)


_KEPT: dict[str, Any] = {}


def part(before: str, now: str) -> Any:
    """A module of version 0.2, or where it is now: beside the library or in it."""
    if find_spec("graphkeel.paper") is not None:
        return import_module(f"graphkeel.{before}")
    home = "graphkeel" if now.startswith("runs") else "graphkeel_paper"
    return import_module(f"{home}.{now}")


def trained(case: dict[str, Any]) -> tuple[Any, Any, float]:
    """Graph and model of a case; kept for the next one of the same kind."""
    import time

    from graphkeel.models import train_model

    load = part("graph", "datasets").load
    key = json.dumps([case[k] for k in ("graph", "model", "features", "split", "seed")])
    if key not in _KEPT:
        _KEPT.clear()
        task = load(
            found(case["graph"]), seed=case["seed"], features=case["features"], split=case["split"]
        )
        start = time.process_time()
        model = train_model(case["model"], task, seed=case["seed"])
        _KEPT[key] = (task, model, time.process_time() - start)
    return _KEPT[key]


def graph_case(case: dict[str, Any]) -> dict[str, Any]:
    import torch

    import graphkeel as gk

    task, model, training = trained(case)
    data = task.to_data()
    scored = data.test_mask
    if case["labels"] not in ("train", "all"):
        draw = np.random.default_rng([case["seed"], 5]).permutation(
            data.val_mask.nonzero().flatten().numpy()
        )[: int(case["labels"])]
        data.val_mask = torch.zeros_like(data.val_mask)
        data.val_mask[draw] = True
    rec = gk.Reconstructor(
        model,
        labels="train" if case["labels"] == "train" else "all",
        seed=case["seed"],
        **case["options"],
    )
    return {"training": training, **measured(rec, lambda: rec.fit(data), data, scored)}


def pair_case(case: dict[str, Any]) -> dict[str, Any]:
    import torch

    import graphkeel as gk
    from graphkeel.models import train_model

    tasks = part("paper.adapt.case", "runs.adapt_case").tasks
    AdaptSpec = part("paper.adapt.spec", "specs").AdaptSpec
    key = json.dumps([case["graph"], case["target"], case["seed"]])
    if key not in _KEPT:
        _KEPT.clear()
        spec = AdaptSpec(found(case["graph"]), found(case["target"]), model_options={"k": 2})
        source, target = tasks(spec, case["seed"])
        _KEPT[key] = source, target, train_model("sgc", source, seed=case["seed"], k=2)
    source, target, model = _KEPT[key]
    order = np.random.default_rng([case["seed"], 9]).permutation(
        (target.y >= 0).nonzero().flatten()
    )
    data = target.to_data()
    nodes = torch.from_numpy(order[: case["labels"]])
    scored = torch.zeros(len(data.x), dtype=torch.bool)
    scored[torch.from_numpy(order[500:])] = True
    rec = gk.Reconstructor(model, seed=case["seed"], **case["options"])
    made: dict[str, Any] = {}

    def run() -> Any:
        given = {"nodes": nodes, "labels": data.y[nodes]} if len(nodes) else {}
        made["rec"] = rec.adapt(data, keep="model", **given)
        return made["rec"]

    return measured(rec, run, data, scored)


def measured(rec: Any, run: Any, data: Any, scored: Any) -> dict[str, Any]:
    import time

    start = time.process_time()
    fitted = run()
    seconds = time.process_time() - start
    y = data.y[scored].numpy()
    before = rec.model(data.x, data.edge_index).argmax(dim=1)[scored].numpy()
    after = fitted.predict(data)[scored].numpy()
    answer = {
        "seconds": seconds,
        "before": right(before, y),
        "after": right(after, y),
        "balanced_before": balanced(before, y),
        "balanced_after": balanced(after, y),
        "kept": not fitted.guard_.left_alone,
        "statement": getattr(fitted.guard_.statement, "__dict__", None),
    }
    if getattr(fitted, "posterior_", None) is not None:
        wanted = fitted.posterior_.argmax(dim=1)
        answer["decided"] = right(wanted[scored].numpy(), y)
        answer["agreement"] = 100.0 * float((fitted.predict(data) == wanted).float().mean())
        answer["change"] = float(fitted.change_.median())
        answer["expected"] = fitted.guard_.expected
        if fitted.guard_.n_labels:
            sets = fitted.predict_sets(data)[scored].numpy()
            answer["in_set"] = 100.0 * float(sets[np.arange(len(y)), y].mean())
    return answer


def right(predicted: Any, y: Any) -> float:
    return 100.0 * float((predicted == y).mean())


def balanced(predicted: Any, y: Any) -> float:
    return 100.0 * float(
        np.mean([(predicted[y == label] == label).mean() for label in np.unique(y)])
    )


# ---- both versions, side by side


class Version:
    """A process that works with one version's sources."""

    def __init__(self, name: str, sources: str) -> None:
        self.name = name
        threads = {f"{what}_NUM_THREADS": "1" for what in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "work"],
            env={**os.environ, **threads, "PYTHONPATH": sources},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self, case: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return dict(json.loads(line[7:]))
        raise SystemExit(f"{self.name} ended on {case}")


def cases_of(kind: str, seeds: list[int]) -> list[dict[str, Any]]:
    """Cases in an order in which neighbours share a model."""
    if kind in ("pairs", "citations"):
        both = list(permutations(CITATIONS, 2))
        both += permutations(TWITCH, 2) if kind == "pairs" else ()
        return [
            {"kind": "pair", "graph": a, "target": b, "seed": seed, "labels": n, "options": options}
            for a, b in both
            for seed in seeds
            for n in (0, 20, 50, 100, 500)
            for options in ([{}, {"class_weight": "balanced"}] if "twitch" in a else [{}])
        ]
    specs, labels = {
        "protocol": (PAPER, ["train", "all"]),
        "gcn": (GCN, ["train", "all"]),
        "few": (FEW, ["10", "20", "50", "100"]),
        "unseen": (UNSEEN, ["20", "50", "100"]),
        "cost": ([*PAPER, *WORDS], ["all"]),
    }[kind]
    return [
        {
            "kind": "graph",
            "graph": graph,
            "model": model,
            "features": features,
            "split": split,
            "seed": seed,
            "labels": label,
            "options": {},
        }
        for graph, model, features, split in specs
        for seed in seeds
        for label in labels
    ]


def compare(kind: str, seeds: list[int], other: str | None, out: str | None) -> None:
    root = Path(__file__).resolve().parents[1]
    here = os.pathsep.join([str(root / "src"), str(root / "paper" / "src")])
    versions = [Version("new", here)] + ([Version("other", other)] if other else [])
    rows = []
    for version in versions:  # imports and first calls are no part of any case
        version.answer(WARM_UP)
    for case in cases_of(kind, seeds):
        for version in versions:
            if version.name == "other" and "class_weight" in case["options"]:
                continue
            row = {**case, "version": version.name, **version.answer(case)}
            rows.append(row)
            shown = {k: round(v, 2) for k, v in row.items() if isinstance(v, float)}
            print(
                _name(case), case["labels"], version.name, "seed", case["seed"], shown, flush=True
            )
    if out:
        Path(out).write_text(json.dumps(rows, indent=0) + "\n")
    summarise(rows)
    if kind in ("few", "unseen"):
        ledger([row for row in rows if row["version"] == "new"])


def _name(case: dict[str, Any]) -> str:
    where = case.get("target") or f"{case['model']} {case['split']}"
    return " ".join([case["graph"], where, *case["options"].values()])


def summarise(rows: list[dict[str, Any]]) -> None:
    """Means over seeds, the worst seed's gain, and seconds."""
    print(
        "\ncase | labels | version | before | after (worst gain) | balanced | seconds | agreement"
    )
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((_name(row), str(row["labels"]), row["version"]), []).append(row)
    for key, mine in groups.items():
        mean = {k: float(np.mean([row[k] for row in mine])) for k in ("before", "after", "seconds")}
        gain = np.mean([row["balanced_after"] - row["balanced_before"] for row in mine])
        worst = min(row["after"] - row["before"] for row in mine)
        agreement = [row["agreement"] for row in mine if "agreement" in row and row["kept"]]
        stated = f"{np.mean(agreement):.1f}" if agreement else "-"
        print(
            " | ".join(key),
            f"| {mean['before']:.2f} | {mean['after']:.2f} ({worst:+.1f}) | {gain:+.1f}"
            f" | {mean['seconds']:.2f} | {stated}",
        )


def ledger(rows: list[dict[str, Any]]) -> None:
    """Points lost by keeping and by refusing, and how often intervals and sets cover."""
    gains = np.array([row["decided"] - row["before"] for row in rows])
    kept = np.array([row["kept"] for row in rows])
    shipped = np.array([row["after"] - row["before"] for row in rows])
    fair = np.array([row["balanced_after"] - row["balanced_before"] for row in rows])
    print(
        f"\n{len(rows)} cases, kept {kept.sum()}: mean gain {shipped.mean():.2f}, worst"
        f" {shipped.min():.1f} (balanced {fair.mean():.2f}, {fair.min():.1f}); lost by accepting"
        f" {np.maximum(-shipped, 0).mean():.3f}, by refusing"
        f" {(np.maximum(gains, 0) * ~kept).mean():.3f}; always keep: worst {gains.min():.1f}"
    )
    for name, mine in (("kept", kept), ("refused", ~kept), ("all", kept | ~kept)):
        chosen = [row for row, here in zip(rows, mine, strict=True) if here and row["statement"]]
        if not chosen:
            continue
        stated = [row["statement"] for row in chosen]
        right_of = [(row["after"], row["after"] - row["before"]) for row in chosen]
        accuracy = [
            t["accuracy_low"] <= a <= t["accuracy_high"]
            for t, (a, _) in zip(stated, right_of, strict=True)
        ]
        gain = [
            t["gain_low"] <= g <= t["gain_high"] for t, (_, g) in zip(stated, right_of, strict=True)
        ]
        sets = [row["in_set"] for row in chosen if "in_set" in row]
        print(
            f"{name} {len(chosen)}: accuracy covered {100 * np.mean(accuracy):.1f}, gain"
            f" {100 * np.mean(gain):.1f}, sets {np.mean(sets):.1f}"
        )


def main() -> None:
    if sys.argv[1:] == ["work"]:
        work()
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seeds", default="0", help="one, or first-last")
    parser.add_argument("--other", help="sources of the other version")
    parser.add_argument("--out", help="a JSON file for all rows")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    compare(given.kind, list(range(int(first), int(last or first) + 1)), given.other, given.out)


if __name__ == "__main__":
    main()
