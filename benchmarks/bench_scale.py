"""What grows with the graph, and how: every step of a run on `sbm` graphs of rising size, each in a fresh process.

    python benchmarks/bench_scale.py [--max-nodes 1e7] [--json FILE] [--fresh] [--skip-run]

Edges are undirected pairs, ten a node; 100 features up to a million nodes, 16 beyond, mapped from disk. For each step
wall-clock seconds, processor seconds (of all threads: what the step costs when the machine is shared) and the peak of
resident memory while it ran. The growth exponent is the slope of a least-squares line through log(processor seconds)
over log(edges), over the sizes where a step takes at least a tenth of a second: below that it is overhead.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (10**4, 10**5, 10**6, 10**7)
PAIRS_PER_NODE = 10
HOPS, FEEDBACK, WIDE, NARROW = 3, 100, 100, 16
SHORTEST = 0.1  # seconds below which a step's time says nothing about its growth
DIFFICULTY = {"homophily": 0.3, "signal": 0.3}

Row = dict[str, Any]


# ---- one size, in a process of its own


class Meter:
    """Seconds, processor seconds and peak memory of named steps."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        from graphkeel.experiments.memory import peak_mb, reset_peak

        reset_peak()
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.steps[name] = {
            "seconds": time.perf_counter() - wall,
            "processor": time.process_time() - processor,
            "peak_mb": peak_mb(),
        }
        print(f"  {name}: {self.steps[name]}", file=sys.stderr, flush=True)


def measure(n_nodes: int, folder: Path, fresh: bool) -> Row:
    """All steps on one graph."""
    from graphkeel.data import load_graph, make_sbm, scalable_sampler
    from graphkeel.data.registry import make_task
    from graphkeel.errors import MemoryLimitError
    from graphkeel.frozen import FrozenModel
    from graphkeel.models import train_model
    from graphkeel.propagate import normalise, propagate
    from graphkeel.reconstruct import chooser
    from graphkeel.reconstruct.diffuse import diffuse
    from graphkeel.reconstruct.labels import known_labels
    from graphkeel.reconstruct.scene import Scene

    _same_code_at_every_size()
    width = WIDE if n_nodes <= 10**6 else NARROW
    _warm_up()
    meter = Meter()
    with meter.step("generation"):
        graph = make_sbm(n_nodes, PAIRS_PER_NODE * n_nodes, n_features=width, **DIFFICULTY)
        for key in ("x", "edge_index", "y"):
            np.save(folder / f"{key}.npy", getattr(graph, key))
        del graph
    with meter.step("loading"):
        graph = load_graph(f"{folder}/")
    pairs = graph.edge_index.shape[1] // 2
    with meter.step("biased sampling"):
        scalable_sampler(graph).draw(0)
    with meter.step("normalisation"):
        matrix = normalise(graph.edge_index, n_nodes)
    with meter.step(f"propagation, {HOPS} hops"):
        propagate(matrix, graph.x, HOPS, out=folder / "z.npy")
    del matrix
    (folder / "z.npy").unlink()
    with meter.step("split and checks"):
        task = make_task(graph, seed=0)
    with meter.step("training"):
        model = train_model("sgc", task)
    frozen = FrozenModel(model)
    with meter.step("prediction"):
        frozen.predict(task.x, task.edge_index)
    scene = Scene(frozen, task.x, task.edge_index)
    with meter.step("diffusion"):
        diffuse(frozen(task.x, task.edge_index), scene.propagator, 0.9)
    del scene
    visible = task.without_test_labels()
    labels, held = (known_labels(visible, m.nonzero().flatten()) for m in (task.train_mask, task.val_mask))
    with meter.step("prototypes and guard"):
        choice = chooser.Chooser(Scene(frozen, task.x, task.edge_index), "auto", 0.05, task.train_mask, 0)
        choice.choose(labels, held)
        choice.features()
    del choice
    found: Row = {"nodes": n_nodes, "pairs": pairs, "features": width, "steps": meter.steps, "labels": len(labels)}
    try:
        _fit_and_feed_back(found, meter, task, model, fresh)
    except MemoryLimitError as error:  # a machine too small for this size: the steps before it stand
        found["refused"] = str(error)
    return found


def _fit_and_feed_back(found: Row, meter: Meter, task: Any, model: Any, fresh: bool) -> None:
    """The steps of the facade: a fit, labels that arrive, a certificate."""
    import torch

    from graphkeel import Reconstructor
    from graphkeel.reconstruct.proofs import proved_anchors

    data = task.to_data()
    with meter.step("full fit"):
        rec = Reconstructor(model).fit(data)
    pool = task.test_mask.nonzero().flatten()
    drawn = pool[torch.from_numpy(np.random.default_rng(1).permutation(len(pool))[: 2 * FEEDBACK])]
    rec.feedback(drawn[FEEDBACK:], task.y[drawn[FEEDBACK:]])
    with meter.step(f"feedback, {FEEDBACK} labels"):
        rec.feedback(drawn[:FEEDBACK], task.y[drawn[:FEEDBACK]])
    found["chosen"] = list(rec.guard_.chosen)
    with meter.step("certify"):  # training and proof of the controllers, without the choice that follows
        proved = proved_anchors(rec._scene, "auto", {"strength": rec._scene.typical_strength, "seed": 0})
    found["certificate"] = proved is not None
    if fresh:
        found["difference"] = _against_fresh(rec, model, data, drawn)


def _same_code_at_every_size() -> None:
    """Small graphs would take other paths: exact sampling, one message per edge, more candidates."""
    from graphkeel.data import splits
    from graphkeel.models import networks
    from graphkeel.reconstruct import chooser

    splits._EXACT_LIMIT = chooser.LARGE = 1000
    networks.MOST_MESSAGES = 10**7


def _warm_up() -> None:
    """Compile and import on a tiny graph, so that the smallest size is not charged for it."""
    from graphkeel import Reconstructor
    from graphkeel.data import make_sbm, make_task, scalable_sampler
    from graphkeel.models import train_model
    from graphkeel.propagate import propagate

    graph = make_sbm(2000, 20_000, n_features=8)
    scalable_sampler(graph, label_ratio=0.1).draw(0)
    propagate(graph.edge_index, graph.x)
    task = make_task(graph, split="random")
    Reconstructor(train_model("sgc", task)).fit(task.to_data())


def _against_fresh(rec: Any, model: Any, data: Any, told: Any) -> Row:
    """The features after feedback against those of a fit that knew all labels from the start."""
    from graphkeel import Reconstructor

    rec.reset()
    for part in told.chunk(2):
        rec.feedback(part, data.y[part])
    data.train_mask[told], data.test_mask[told] = True, False
    other = Reconstructor(model).fit(data)
    largest = float((rec.features_ - other.features_).abs().max() / other.features_.abs().max())
    return {"same_choice": rec.guard_.chosen == other.guard_.chosen, "largest_relative_difference": largest}


# ---- all sizes


def child(n_nodes: int, fresh: bool) -> Row:
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
        command = [sys.executable, "-W", "ignore", __file__, "--one", str(n_nodes), "--folder", folder]
        # threads that wait must not count as work, nor take it from others
        env = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
        done = subprocess.run([*command, *(["--fresh"] if fresh else [])], stdout=subprocess.PIPE, check=True, env=env)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def run_command(n_nodes: int) -> Row:
    """`keel run --method auto` as users run it, with what the system says it used."""
    name = f"sbm:nodes={n_nodes},edges={PAIRS_PER_NODE * n_nodes},features={WIDE}"
    name += "".join(f",{key}={value}" for key, value in DIFFICULTY.items())
    command = [sys.executable, "-m", "graphkeel.cli.main", "run", "--dataset", name, "--seeds", "1", "--json"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    row = json.loads(output)["rows"][0] if status == 0 else {}
    seconds, processor = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return {"dataset": name, "seconds": seconds, "processor": processor, "peak_mb": usage.ru_maxrss / 1024, "row": row}


def exponent(rows: list[Row], step: str) -> float | None:
    """Slope of log(processor seconds) over log(pairs)."""
    kept = [(row["pairs"], row["steps"][step]["processor"]) for row in rows if step in row["steps"]]
    kept = [point for point in kept if point[1] >= SHORTEST]
    if len(kept) < 2:
        return None
    sizes, values = np.log(np.array(kept)).T
    return float(np.polyfit(sizes, values, 1)[0])


def total(rows: list[Row]) -> list[Row]:
    """The rows with a step `total`: the sum of all but the certificate."""
    for row in rows:
        if "refused" in row:
            continue
        parts = [value for name, value in row["steps"].items() if name not in ("certify", "total")]
        row["steps"]["total"] = {key: sum(part[key] for part in parts) for key in ("seconds", "processor")}
        row["steps"]["total"]["peak_mb"] = max(part["peak_mb"] for part in parts)
    return rows


def report(found: Row) -> None:
    from rich.console import Console
    from rich.table import Table

    rows = total(found["sizes"])
    head = [f"{row['nodes']:.0e} nodes, {row['pairs']:.1e} pairs, d={row['features']}" for row in rows]
    table = Table("step: seconds | processor seconds | peak MB", *head, f"exponent, d={WIDE}", "exponent, all")
    for step in rows[0]["steps"]:
        cells = [row["steps"].get(step) for row in rows]
        wide = [row for row in rows if row["features"] == WIDE]
        slopes = ["" if slope is None else f"{slope:.2f}" for slope in (exponent(wide, step), exponent(rows, step))]
        texts = [f"{c['seconds']:.2f} | {c['processor']:.2f} | {c['peak_mb']:.0f}" if c else "" for c in cells]
        table.add_row(step, *texts, *slopes)
    console = Console(width=220)
    console.print(table)
    for row in rows:
        if "refused" in row:
            console.print(f"{row['nodes']:.0e} nodes: {row['refused']}")
            continue
        fit, feedback = row["steps"]["full fit"], row["steps"][f"feedback, {FEEDBACK} labels"]
        ratios = ", ".join(f"{key} {fit[key] / feedback[key]:.0f}x" for key in ("seconds", "processor"))
        console.print(f"{row['nodes']:.0e} nodes: feedback against a full fit: {ratios}; {row.get('difference', '')}")
    console.print(found.get("run", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-nodes", type=float, default=1e7)
    parser.add_argument("--run-nodes", type=float, default=1e6, help="size of the `keel run --method auto`")
    parser.add_argument("--json", type=Path, help="keep the measurements here; sizes already there are not run again")
    parser.add_argument("--fresh", action="store_true", help="compare the features after feedback with a fresh fit")
    parser.add_argument("--skip-run", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.folder, args.fresh)))
        return
    found: Row = json.loads(args.json.read_text()) if args.json and args.json.is_file() else {"sizes": []}
    done = {row["nodes"] for row in found["sizes"]}
    for size in SIZES:
        if size <= args.max_nodes and size not in done:
            print(f"{size} nodes", file=sys.stderr)
            found["sizes"].append(child(size, args.fresh))
            _keep(args.json, found)
    if not args.skip_run and "run" not in found:
        found["run"] = run_command(int(args.run_nodes))
        _keep(args.json, found)
    report(found)


def _keep(path: Path | None, found: Row) -> None:
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
