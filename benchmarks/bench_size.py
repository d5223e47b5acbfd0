"""Cost of a fit and of the week after it on large graphs, for several models.

    python benchmarks/bench_size.py [models|million|growth|week|again] [--only MODEL] [--scale 1.0]

Stochastic block graphs with 100 features. The model was trained on a past graph of 20,000 nodes
with the same classes; since then every feature has moved by a constant of its own. 500 labels of
the graph as it is now are known, and the model has seen none of them.

- `models`: GraphSAGE, GCN and GAT on 300,000 nodes, 3 million edges (both ways), 40 classes;
- `million`: SGC and GraphSAGE on 10⁶ nodes, 10⁷ edges, 5 classes;
- `growth`: SGC on 10⁴, 10⁵ and 10⁶ nodes, 5 classes: the slope of log(seconds) over log(nodes);
- `week`: save, load in a new process, update with 5 % new nodes, suggest, feedback of 20 labels,
  predict and report, for GraphSAGE on the graph of `models`;
- `again`: the same on 20,000 nodes, taken up from the last round as on large graphs, beside an
  update by all rounds with the same weights, and beside feedback that chooses all anew.

`--scale` multiplies the nodes, `--only` leaves out other models. Each case has a process of its
own, on one thread. Seconds are those of the processor; memory is the peak of resident memory while
a step ran, graph, model and Python included."""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = 100
LABELS = 500
NEW = 0.05  # nodes that come within the week, of those there were
FED_BACK = 20
DRAWN: dict[str, Any] = {"n_features": FEATURES, "homophily": 0.6, "signal": 1.0}
PAST, EPOCHS = 20_000, 60  # nodes that a model was trained on, and for how long
DRIFT = 0.15  # standard deviation of what every feature has moved by, in those of its noise
MODEL = "model.safetensors"
KINDS = ("decided", "answered")

Row = dict[str, Any]


# ---- one case, in a process of its own


def drift() -> Any:
    """The move of every feature since the model was trained, in this week and the next."""
    import torch

    return DRIFT * torch.randn(FEATURES, generator=torch.Generator().manual_seed(2))


def graph_of(case: Row, share: float = 1.0) -> Any:
    """The first nodes of a graph, with its labels hidden but for some."""
    import torch
    from torch_geometric.data import Data

    from graphkeel.graph import make_sbm

    n_all = int(case["nodes"] * (1 + NEW))
    graph = make_sbm(n_all, 5 * n_all, n_classes=case["classes"], **DRAWN)
    n = int(n_all * share)
    edges = torch.from_numpy(graph.edge_index)
    data = Data(
        x=torch.from_numpy(graph.x[:n]) + drift(),
        edge_index=edges[:, (edges < n).all(dim=0)].contiguous(),
        y=torch.from_numpy(graph.y[:n]),
    )
    labelled = np.random.default_rng(1).permutation(case["nodes"])[:LABELS]
    data.val_mask = torch.zeros(n, dtype=torch.bool)
    data.val_mask[labelled] = True
    return data


def train(case: Row, data: Any) -> Any:
    """A model of the past graph, from which the features of this one have moved away."""
    import torch

    from graphkeel.graph import make_sbm
    from graphkeel.models import build_model

    torch.manual_seed(0)
    past = make_sbm(PAST, 5 * PAST, n_classes=case["classes"], seed=1, **DRAWN)
    y = torch.from_numpy(past.y)
    means = torch.stack([data.x[data.y == c].mean(dim=0) for c in range(case["classes"])])
    x = torch.randn(PAST, FEATURES) + means[y] - drift()
    edges = torch.from_numpy(past.edge_index)
    model = build_model(case["model"], FEATURES, case["classes"])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x, edges), y).backward()
        optimiser.step()
    return model.eval()


def metered(work: Callable[[], Any]) -> tuple[Any, Row]:
    """Result of the work, its processor seconds and its peak memory in GB."""
    from graphkeel.core.memory import peak_mb, reset_peak

    reset_peak()
    start = time.process_time()
    result = work()
    return result, {"seconds": time.process_time() - start, "peak": peak_mb() / 1024}


def fit_case(case: Row) -> Row:
    """A forward pass and a fit; what `week` needs is left in the folder."""
    import torch

    from graphkeel import Reconstructor
    from graphkeel.models import save_model

    torch.set_num_threads(1)
    data = graph_of(case, 1 / (1 + NEW))
    model = train(case, data)
    free = ~data.val_mask
    with torch.no_grad():
        before, forward = metered(lambda: model(data.x, data.edge_index).argmax(dim=1))
    rec, fit = metered(lambda: Reconstructor(model).fit(data))
    after = rec.predict(data)
    decided = rec.posterior_.argmax(dim=1)
    found = {
        **case,
        "edges": data.num_edges,
        "forward": forward,
        "fit": fit,
        "passes": rec._passes,
        "change": float(rec.change_.median()),
        "kept": rec.guard_.kept,
    }
    for name, answer in (("before", before), ("after", after), ("decided", decided)):
        found[name] = 100 * float((answer == data.y)[free].float().mean())
    if "folder" in case:
        save_model(Path(case["folder"]) / MODEL, model, case["model"], FEATURES, case["classes"])
        _, found["save"] = metered(lambda: rec.save(Path(case["folder"]) / "run"))
    return found


def week_case(case: Row) -> Row:
    """The week after, in a process that has never seen the graph of then."""
    import torch

    import graphkeel as gk
    from graphkeel.models import load_model

    torch.set_num_threads(1)
    folder = Path(case["folder"])
    model, later = load_model(folder / MODEL), graph_of(case)
    found: Row = {}
    _, found["importing"] = metered(lambda: import_module("graphkeel.reconstruct.reconstructor"))
    rec, found["load"] = metered(lambda: gk.load(folder / "run", model))
    _, found["update"] = metered(lambda: rec.update(later))
    found["update"] |= right(rec, later)
    nodes, found["suggest"] = metered(lambda: rec.suggest(FED_BACK))
    name = f"feedback of {FED_BACK}"
    _, found[name] = metered(lambda: rec.feedback(nodes, later.y[nodes]))
    found[name] |= right(rec, later)
    _, found["predict"] = metered(lambda: rec.predict(later))
    _, found["report"] = metered(lambda: rec.report(folder / "report.html"))
    return found


def right(rec: Any, data: Any) -> Row:
    """Percent of nodes decided and answered rightly."""
    free = ~data.val_mask
    answers = {"decided": rec.posterior_.argmax(dim=1), "answered": rec.predict(data)}
    return {k: 100 * float((a == data.y)[free].float().mean()) for k, a in answers.items()}


def again_case(case: Row) -> Row:
    """Update and feedback as large graphs have them, beside those made from nothing."""
    import torch

    from graphkeel.reconstruct.reconstructor import Reconstructor

    torch.set_num_threads(1)
    whole_rule = Reconstructor._rule

    def rule(rec: Reconstructor) -> Any:
        chosen = whole_rule(rec)
        return replace(chosen, decide=replace(chosen.decide, large=0))

    Reconstructor._rule = rule  # type: ignore[method-assign]
    data, later = graph_of(case, 1 / (1 + NEW)), graph_of(case)
    rec, fit = metered(lambda: Reconstructor(train(case, data)).fit(data))
    whole = copy.deepcopy(rec)
    _, update = metered(lambda: rec.update(later))
    whole._resumable = None
    _, from_nothing = metered(lambda: whole.update(later))
    found: Row = {"fit": fit, "update": [update, from_nothing, alike(rec, whole, later)]}
    nodes = rec.suggest(FED_BACK)
    _, feedback = metered(lambda: rec.feedback(nodes, later.y[nodes]))
    whole._resumable = None
    _, from_nothing = metered(lambda: whole.feedback(nodes, later.y[nodes]))
    found["feedback"] = [feedback, from_nothing, alike(rec, whole, later)]
    return found


def alike(one: Any, other: Any, data: Any) -> Row:
    """How far two reconstructions of a graph agree, and how right each is."""
    free = ~data.val_mask
    decided = [rec.posterior_.argmax(dim=1) for rec in (one, other)]
    answers = [rec.predict(data) for rec in (one, other)]
    return {
        "decided alike": 100 * float((decided[0] == decided[1]).float().mean()),
        "mean difference": float((one.posterior_ - other.posterior_).abs().mean()),
        "decided": [100 * float((d == data.y)[free].float().mean()) for d in decided],
        "answered": [100 * float((a == data.y)[free].float().mean()) for a in answers],
    }


# ---- all cases


def run(case: Row, kind: str = "fit") -> Row:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-W", "ignore", __file__, "--case", kind, json.dumps(case)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | threads)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def told(row: Row) -> Row:
    """The row, printed."""
    forward, fit = row["forward"]["seconds"], row["fit"]["seconds"]
    print(
        f"{row['model']}, {row['nodes']:,} nodes, {row['edges']:,} edges, {row['classes']} classes:"
        f" forward {forward:.2f} s, {row['forward']['peak']:.2f} GB; fit {fit:.1f} s ="
        f" {fit / forward:.0f} forward passes ({row['passes']} passes of steering),"
        f" {row['fit']['peak']:.2f} GB; accuracy"
        f" {row['before']:.1f} -> {row['after']:.1f} (decided {row['decided']:.1f}), median change"
        f" {row['change']:.2f}",
        flush=True,
    )
    return row


def models(scale: float, only: str | None) -> None:
    for name in [only] if only else ("sage", "gcn", "gat"):
        told(run({"model": name, "nodes": int(300_000 * scale), "classes": 40}))


def million(scale: float, only: str | None) -> None:
    for name in [only] if only else ("sgc", "sage"):
        told(run({"model": name, "nodes": int(1_000_000 * scale), "classes": 5}))


def growth(scale: float, _: str | None) -> None:
    sizes = [int(10**power * scale) for power in (4, 5, 6)]
    rows = [told(run({"model": "sgc", "nodes": n, "classes": 5})) for n in sizes]
    seconds = [row["fit"]["seconds"] for row in rows]
    for a, b, name in ((0, 1, "small"), (1, 2, "large"), (0, 2, "all")):
        slope = np.log(seconds[b] / seconds[a]) / np.log(sizes[b] / sizes[a])
        print(f"growth exponent, {name} sizes: {slope:.2f}", flush=True)


def again(scale: float, _: str | None) -> None:
    found = run({"model": "sage", "nodes": int(20_000 * scale), "classes": 40}, "again")
    print(f"again, sage, {int(20_000 * scale):,} nodes: fit {found['fit']['seconds']:.1f} s")
    for name in ("update", "feedback"):
        resumed, whole, same = found[name]
        decided, answered = (" / ".join(f"{part:.2f}" for part in same[k]) for k in KINDS)
        print(
            f"  {name}: {resumed['seconds']:.2f} s, from nothing {whole['seconds']:.2f} s; decided"
            f" alike {same['decided alike']:.2f} %, mean difference of probabilities"
            f" {same['mean difference']:.1e}; right as decided {decided}, as answered {answered}",
            flush=True,
        )


def week(scale: float, _: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-size-") as folder:
        case = {"model": "sage", "nodes": int(300_000 * scale), "classes": 40, "folder": folder}
        row = told(run(case))
        parts = {"save": row["save"], **run(case, "week")}
        size = sum(file.stat().st_size for file in (Path(folder) / "run").iterdir())
    for name, part in parts.items():
        after = "; ".join(
            f"{kind} {part[kind]:.1f}" for kind in ("decided", "answered") if kind in part
        )
        print(f"  {name}: {part['seconds']:.2f} s, {part['peak']:.2f} GB {after}", flush=True)
    both = parts["load"]["seconds"] + parts["update"]["seconds"]
    share = both / row["fit"]["seconds"]
    print(f"  load + update: {share:.2f} of the fit; stored {size / 1e6:.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = {
        "models": models,
        "million": million,
        "growth": growth,
        "week": week,
        "again": again,
    }
    parser.add_argument("kind", nargs="*", choices=[*kinds, []], default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the nodes")
    parser.add_argument("--only", help="one model of `models` and `million`")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        kind, case = args.case
        work = {"fit": fit_case, "week": week_case, "again": again_case}[kind]
        print(json.dumps(work(json.loads(case))))
        return
    for kind in args.kind or kinds:
        kinds[kind](args.scale, args.only)


if __name__ == "__main__":
    main()
