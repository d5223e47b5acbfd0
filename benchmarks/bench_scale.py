"""What grows with the graph, and how: every step of a run on `sbm` graphs of rising size.

    python benchmarks/bench_scale.py [--max-nodes 1e7] [--json FILE] [--fresh] [--skip-run]

Edges are undirected pairs, ten a node. Two series, 100 features up to a million nodes and 16 up to
ten million nodes, so that no exponent compares graphs of different width; features are mapped from
disk. Each size has two fresh processes: one for the single steps, one for those of the facade (fit,
feedback, certify), which finds the task and the model on disk and no other state in memory. For
each step wall-clock seconds, processor seconds (of all threads: what the step costs when the
machine is shared) and the peak of resident memory while it ran. A step below a tenth of a second is
repeated, and counts with the median. The growth exponent is the slope of a least-squares line
through log(processor seconds) over log(edges), over all sizes of a series."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WIDE, NARROW = 100, 16  # features
SERIES = {WIDE: (10**4, 10**5, 10**6), NARROW: (10**4, 10**5, 10**6, 10**7)}
PAIRS_PER_NODE = 10
HOPS, FEEDBACK = 3, 100
PROOFS = ("certify", "verification alone")
SHORT, REPEATS = (
    0.1,
    9,
)  # processor seconds below which a step is repeated, and how often it then runs in all
MASKS, MODEL = ("train_mask", "val_mask", "test_mask"), "model.safetensors"
DIFFICULTY: dict[str, Any] = {"homophily": 0.3, "signal": 0.3}

Row = dict[str, Any]


# ---- one size, in processes of its own


class Meter:
    """Seconds, processor seconds and peak memory of named steps."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}

    def step(self, name: str, work: Callable[[], Any], *, again: bool = True) -> Any:
        """Do the work, once or, where it is short and can be done again, several times; returns
        what it returned."""
        result, first = _metered(work)
        runs = [first]
        if again and first["processor"] < SHORT:
            runs += [_metered(work)[1] for _ in range(REPEATS - 1)]
        self.steps[name] = {key: statistics.median(run[key] for run in runs) for key in first}
        print(f"  {name}: {self.steps[name]}", file=sys.stderr, flush=True)
        return result


def _metered(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    from graphkeel.core.memory import peak_mb, reset_peak

    reset_peak()
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    seconds = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    return result, {**seconds, "peak_mb": peak_mb()}


def single_steps(n_nodes: int, width: int, folder: Path) -> Row:
    """Generation to steering; leaves the graph, its split and the trained model in the folder."""
    meter = Meter()
    meter.step("generation", lambda: _generate(n_nodes, width, folder))
    task = _graph_steps(meter, folder)
    _model_steps(meter, task, folder)
    return {"nodes": n_nodes, "pairs": task.n_edges // 2, "features": width, "steps": meter.steps}


def _graph_steps(meter: Meter, folder: Path) -> Any:
    """From the files to a task; what was read and made on the way is let go of."""
    from graphkeel.graph.datasets.registry import make_task, prepare_features
    from graphkeel.graph.propagate import normalise, propagate
    from graphkeel.graph.splits import scalable_sampler
    from graphkeel_paper.datasets import load_graph

    graph = meter.step(
        "loading", lambda: load_graph.__wrapped__(f"{folder}/")
    )  # itself, not what it remembers
    meter.step("biased sampling", lambda: scalable_sampler(graph).draw(0))
    matrix = meter.step("normalisation", lambda: normalise(graph.edge_index, graph.n_nodes))
    meter.step(
        f"propagation, {HOPS} hops", lambda: propagate(matrix, graph.x, HOPS, out=folder / "z.npy")
    )
    (folder / "z.npy").unlink()
    task = meter.step("split and checks", lambda: make_task(graph, seed=0))
    prepare_features.cache_clear()  # it remembers the graph
    for field in MASKS:
        np.save(folder / f"{field}.npy", getattr(task, field).numpy())
    return task


def _model_steps(meter: Meter, task: Any, folder: Path) -> None:
    from graphkeel.graph.labels import known_labels
    from graphkeel.models import save_model, train_model
    from graphkeel.models.frozen import FrozenModel
    from graphkeel.reconstruct.correction import known_from, written
    from graphkeel.reconstruct.decide import decide
    from graphkeel.reconstruct.steer import SteerSettings

    model = meter.step(
        "training", lambda: _with_a_new_matrix(task, lambda: train_model("sgc", task))
    )
    save_model(folder / MODEL, model, "sgc", task.n_features, task.n_classes)
    frozen = FrozenModel(model)
    meter.step("prediction", lambda: frozen(task.x, task.edge_index))
    visible = task.without_test_labels()
    labels, held = (
        known_labels(visible, m.nonzero().flatten()) for m in (task.train_mask, task.val_mask)
    )
    known = known_from(labels, held, task.train_mask)
    # a context of its own each time: it keeps what evidence is drawn from
    decision = meter.step("decision", lambda: decide(_context(frozen, task).scene, known))
    context = _context(frozen, task)
    meter.step("steering", lambda: written(context, decision, SteerSettings()))


def _context(frozen: Any, task: Any) -> Any:
    from graphkeel.reconstruct.context import Context

    return Context(frozen, task.x, task.edge_index)


def _generate(n_nodes: int, width: int, folder: Path) -> None:
    from graphkeel.graph import make_sbm

    graph = make_sbm(n_nodes, PAIRS_PER_NODE * n_nodes, n_features=width, **DIFFICULTY)
    for key in ("x", "edge_index", "y"):
        np.save(folder / f"{key}.npy", getattr(graph, key))


def _with_a_new_matrix(task: Any, work: Callable[[], Any]) -> Any:
    """A training that is repeated must make its matrix again, as the first one does."""
    from graphkeel.models import networks

    networks._matrices.pop(task.edge_index, None)
    return work()


def facade_steps(folder: Path, fresh: bool) -> Row:
    """A fit, labels that arrive, a certificate: in a process that holds the graph and nothing
    else."""
    import torch

    from graphkeel import Reconstructor
    from graphkeel.core.errors import MemoryLimitError
    from graphkeel.lyapunov.training import ask_engine
    from graphkeel.models import load_model

    meter, model, data = Meter(), load_model(folder / MODEL), _data(folder)
    found: Row = {"steps": meter.steps, "labels": int(data.train_mask.sum())}
    try:
        rec = meter.step("full fit", lambda: Reconstructor(model).fit(data), again=False)
    except (
        MemoryLimitError
    ) as error:  # a machine too small for this size: the steps before it stand
        return {**found, "refused": str(error)}
    pool = data.test_mask.nonzero().flatten()
    drawn = pool[torch.from_numpy(np.random.default_rng(1).permutation(len(pool))[: 2 * FEEDBACK])]
    first, second = drawn[FEEDBACK:], drawn[:FEEDBACK]
    rec.feedback(first, data.y[first])
    meter.step(
        f"feedback, {FEEDBACK} labels", lambda: rec.feedback(second, data.y[second]), again=False
    )
    found["reason"] = rec.guard_.reason
    found["change"] = float(rec.change_.median())
    # controllers, their proofs, and the equilibrium of the loop on the whole graph, enclosed
    result = meter.step("certify", rec.certify, again=False)
    found["certificate"] = result.certificate is not None
    counted = ("nodes", "certain", "labelled", "labelled_certain", "residual", "written")
    found["graph"] = {key: result.equilibrium.get(key) for key in counted}
    problems = [outcome.problem for outcome in result.outcomes]
    if problems:
        ask = ask_engine("auto")
        meter.step(
            "verification alone",
            lambda: [ask(problem, seconds=5.0, complete=True) for problem in problems],
        )
    if fresh:
        found["difference"] = _against_fresh(rec, model, data, drawn)
    return found


def _data(folder: Path) -> Any:
    """The graph as a user holds it; what lies on disk is mapped, except what `fit` may change."""
    import torch
    from torch_geometric.data import Data

    mapped = {
        key: torch.from_numpy(np.load(folder / f"{key}.npy", mmap_mode="c"))
        for key in ("x", "edge_index")
    }
    return Data(
        **mapped, **{key: torch.from_numpy(np.load(folder / f"{key}.npy")) for key in ("y", *MASKS)}
    )


def _same_code_at_every_size() -> None:
    """Small graphs would take other paths: exact sampling, one message per edge."""
    from graphkeel.graph import splits
    from graphkeel.models import networks

    splits._SPLITTING = splits._Splitting(exact_nodes=1000)
    networks.MESSAGES = networks.Messages(most=10**6)


def _warm_up() -> None:
    """Compile and import on a tiny graph, so that the smallest size is not charged for it."""
    from graphkeel import Reconstructor
    from graphkeel.graph import make_sbm, make_task
    from graphkeel.graph.propagate import propagate
    from graphkeel.graph.splits import scalable_sampler
    from graphkeel.models import train_model

    graph = make_sbm(2000, 20_000, n_features=8)
    scalable_sampler(graph, label_ratio=0.1).draw(0)
    propagate(graph.edge_index, graph.x)
    task = make_task(graph, split="random")
    Reconstructor(train_model("sgc", task)).fit(task.to_data())


def _against_fresh(rec: Any, model: Any, data: Any, fed_back: Any) -> Row:
    """The features after feedback against those of a fit that knew all labels from the start."""
    from graphkeel import Reconstructor

    rec.reset()
    for part in fed_back.chunk(2):
        rec.feedback(part, data.y[part])
    other = Reconstructor(model).fit(data, nodes=fed_back, labels=data.y[fed_back])
    largest = float((rec.features_ - other.features_).abs().max() / other.features_.abs().max())
    return {
        "same_decision": rec.guard_ == other.guard_,
        "largest_relative_difference": largest,
    }


# ---- all sizes


def child(n_nodes: int, width: int, fresh: bool) -> Row:
    """One size: its two processes, one after the other, with a folder between them."""
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
        alone = _process("--one", str(n_nodes), "--width", str(width), "--folder", folder)
        facade = _process("--facade", "--folder", folder, *(["--fresh"] if fresh else []))
    return {**alone, **facade, "steps": {**alone["steps"], **facade["steps"]}}


def _process(*arguments: str) -> Row:
    # threads that wait must not count as work, nor take it from others
    env = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
    command = [sys.executable, "-W", "ignore", __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=env)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def run_command(n_nodes: int) -> Row:
    """`keel run --method auto` as users run it, with what the system says it used."""
    name = f"sbm:nodes={n_nodes},edges={PAIRS_PER_NODE * n_nodes},features={WIDE}"
    name += "".join(f",{key}={value}" for key, value in DIFFICULTY.items())
    command = [
        sys.executable,
        "-m",
        "graphkeel.cli.main",
        "run",
        "--dataset",
        name,
        "--seeds",
        "1",
        "--json",
    ]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    row = json.loads(output)["rows"][0] if status == 0 else {}
    seconds, processor = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return {
        "dataset": name,
        "seconds": seconds,
        "processor": processor,
        "peak_mb": usage.ru_maxrss / 1024,
        "row": row,
    }


def exponent(rows: list[Row], step: str) -> float | None:
    """Slope of log(processor seconds) over log(pairs)."""
    kept = [(row["pairs"], row["steps"][step]["processor"]) for row in rows if step in row["steps"]]
    if len(kept) < 2:
        return None
    sizes, values = np.log(np.array(kept)).T
    return float(np.polyfit(sizes, values, 1)[0])


def total(rows: list[Row]) -> list[Row]:
    """The rows with a step `total`: the sum of all but the proofs."""
    for row in rows:
        if "refused" in row:
            continue
        parts = [value for name, value in row["steps"].items() if name not in (*PROOFS, "total")]
        row["steps"]["total"] = {
            key: sum(part[key] for part in parts) for key in ("seconds", "processor")
        }
        row["steps"]["total"]["peak_mb"] = max(part["peak_mb"] for part in parts)
    return rows


def report(found: Row) -> None:
    from rich.console import Console
    from rich.table import Table

    rows, console = total(found["sizes"]), Console(width=200)
    for width in SERIES:
        series = [row for row in rows if row["features"] == width]
        head = [f"{row['nodes']:.0e} nodes, {row['pairs']:.1e} pairs" for row in series]
        table = Table(f"{width} features: seconds | processor seconds | peak MB", *head, "exponent")
        for step in dict.fromkeys(name for row in series for name in row["steps"]):
            cells = [row["steps"].get(step) for row in series]
            texts = [
                f"{c['seconds']:.2f} | {c['processor']:.2f} | {c['peak_mb']:.0f}" if c else ""
                for c in cells
            ]
            slope = exponent(series, step)
            table.add_row(step, *texts, "" if slope is None else f"{slope:.2f}")
        console.print(table)
    for row in rows:
        if "refused" in row:
            console.print(f"{row['nodes']:.0e} nodes, {row['features']} features: {row['refused']}")
            continue
        fit, feedback = row["steps"]["full fit"], row["steps"][f"feedback, {FEEDBACK} labels"]
        ratios = ", ".join(
            f"{key} {fit[key] / feedback[key]:.0f}x" for key in ("seconds", "processor")
        )
        name = f"{row['nodes']:.0e} nodes, {row['features']} features"
        console.print(f"{name}: feedback against a full fit: {ratios}; {row.get('difference', '')}")
    console.print(found.get("run", ""))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--max-nodes", type=float, default=1e7)
    parser.add_argument(
        "--run-nodes", type=float, default=1e6, help="size of the `keel run --method auto`"
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="keep the measurements here; sizes already there are not run again",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="compare the features after feedback with a fresh fit"
    )
    parser.add_argument("--skip-run", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--width", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--facade", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one or args.facade:
        _same_code_at_every_size()
        _warm_up()
        alone = single_steps(args.one, args.width, args.folder) if args.one else None
        print(json.dumps(alone or facade_steps(args.folder, args.fresh)))
        return
    found: Row = (
        json.loads(args.json.read_text()) if args.json and args.json.is_file() else {"sizes": []}
    )
    done = {(row["nodes"], row["features"]) for row in found["sizes"]}
    for size, width in sorted((size, width) for width, sizes in SERIES.items() for size in sizes):
        if size <= args.max_nodes and (size, width) not in done:
            print(f"{size} nodes, {width} features", file=sys.stderr)
            found["sizes"].append(child(size, width, args.fresh))
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
