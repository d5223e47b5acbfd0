"""A whole fit on a Dask cluster (`graphkeel.cluster`): the size it takes, workers that are killed,
equality with one machine, and what larger graphs would take.

    python benchmarks/bench_cluster.py                  # all of it; the figures are cluster.txt's
    python benchmarks/bench_cluster.py large --folder /scratch
    python benchmarks/bench_cluster.py equal --model sage

`large` writes a graph of 6 GB, features by blocks, and fits it on four workers of 1 GB; the folder
must have room for 15 GB. In a network namespace of its own (`unshare -n sh -c "ip link set lo up;
python …"`) the loopback device carries this cluster's messages alone."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphkeel import Reconstructor
from graphkeel.cluster import ClusterSettings, fit_shards, save_shards
from graphkeel.cluster.work import local_cluster
from graphkeel.models import build_model

CLASSES = 5
LABELS = 500
SHIFT = 0.5  # of every feature's mean, since the model was trained
NEAR = 0.7  # share of edges within a class
DEGREE = 5  # edges that a node begins
BLOCK = 1 << 14

Row = dict[str, Any]


# ---- graphs


def edges_of(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Edges both ways, seven in ten within a class, by target."""
    n_nodes = len(y)
    order = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[order], np.arange(CLASSES + 1))
    source = np.repeat(np.arange(n_nodes), DEGREE)
    label = y[source]
    place = rng.random(len(source)) * (starts[label + 1] - starts[label])
    alike = order[starts[label] + place.astype(np.int64)]
    target = np.where(rng.random(len(source)) < NEAR, alike, rng.integers(0, n_nodes, len(source)))
    keys = np.concatenate([target * n_nodes + source, source * n_nodes + target])
    keys = np.unique(keys)
    return np.stack([keys % n_nodes, keys // n_nodes])


def means_of(n_features: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    return rng.normal(size=(CLASSES, n_features)) * (2.4 / n_features**0.5)


def features_of(y: np.ndarray, n_features: int, seed: int, shift: float) -> np.ndarray:
    """Class means, noise, and a shift that is the same for all."""
    noise = np.random.default_rng(seed).standard_normal((len(y), n_features), dtype=np.float32)
    moved = shift * np.random.default_rng(8).normal(size=n_features)
    return noise + (means_of(n_features) + moved).astype(np.float32)[y]


def graph_of(n_nodes: int, n_features: int) -> Data:
    """A graph in memory."""
    rng = np.random.default_rng(n_nodes)
    y = rng.integers(0, CLASSES, n_nodes)
    edges = edges_of(y, rng)
    known = np.zeros(n_nodes, bool)
    known[rng.permutation(n_nodes)[:LABELS]] = True
    return Data(
        x=torch.from_numpy(features_of(y, n_features, 1, SHIFT)),
        edge_index=torch.from_numpy(edges),
        y=torch.from_numpy(y),
        val_mask=torch.from_numpy(known),
    )


def write_graph(folder: Path, n_nodes: int, n_features: int, rows: int) -> None:
    """Such a graph in shards, without ever holding the features."""
    rng = np.random.default_rng(n_nodes)
    y = rng.integers(0, CLASSES, n_nodes)
    source, target = edges_of(y, rng)
    known = np.zeros(n_nodes, bool)
    known[rng.permutation(n_nodes)[:LABELS]] = True
    for name in ("x", "edge_index", "y", "val_mask"):
        (folder / name).mkdir(parents=True)
    for number, first in enumerate(range(0, n_nodes, rows)):
        last = min(first + rows, n_nodes)
        name = f"{number:05d}.npy"
        here = slice(*np.searchsorted(target, [first, last]))
        np.save(folder / "edge_index" / name, np.stack([source[here], target[here]]))
        np.save(folder / "y" / name, y[first:last])
        np.save(folder / "val_mask" / name, known[first:last])
        shape = (last - first, n_features)
        path = folder / "x" / name
        with path.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(first, last, BLOCK):
                part = y[start : min(start + BLOCK, last)]
                file.write(features_of(part, n_features, start, SHIFT).data)


def trained(n_features: int, name: str = "sgc") -> torch.nn.Module:
    """Two hops, trained on a graph of 10,000 nodes before the shift."""
    torch.manual_seed(0)
    rng = np.random.default_rng(3)
    y = rng.integers(0, CLASSES, 10_000)
    x = torch.from_numpy(features_of(y, n_features, 5, 0.0))
    edges = torch.from_numpy(edges_of(y, rng))
    model = build_model(name, n_features, CLASSES, **({"k": 2} if name == "sgc" else {}))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, edges), torch.from_numpy(y))
        loss.backward()
        optimiser.step()
    return model.eval()


# ---- what is measured


def read(folder: Path, name: str) -> np.ndarray:
    return np.concatenate([np.load(path) for path in sorted((folder / name).glob("*.npy"))])


def peak(dask_worker: Any = None) -> float:
    """GB that this process has held at most."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 2**20


def forget_peak() -> None:
    """Let `peak` count from here: writing and training took more than the fit's client."""
    Path("/proc/self/clear_refs").write_text("5")


def spent(dask_worker: Any = None) -> float:
    """Processor seconds of this process."""
    return time.process_time()


def transferred(dask_worker: Any) -> int:
    """Bytes that this worker has sent to other workers, by Dask's counter."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def large(folder: Path, n_nodes: int, n_features: int, workers: int, limit: str) -> None:
    graph, out = folder / "graph", folder / "out"
    start = time.monotonic()
    write_graph(graph, n_nodes, n_features, 1 << 17)
    size = sum(path.stat().st_size for path in graph.rglob("*.npy"))
    told(f"graph: {n_nodes:,} nodes, {n_features:,} features, {size / 1e9:.2f} GB on disk"
         f" (written in {time.monotonic() - start:.0f} s)")  # fmt: skip
    model = trained(n_features)
    with local_cluster(workers, memory_limit=limit) as cluster, cluster.get_client() as client:
        before, used, own = client.run(peak), client.run(spent), spent()
        forget_peak()
        with Sampler(out) as sampler:
            found = fit_shards(graph, model, out, scheduler=cluster.scheduler_address)
        own = spent() - own
        peaks, moved = client.run(peak), sum(client.run(transferred).values())
        restarted = set(peaks) != set(before)
        used = {name: now - used.get(name, 0.0) for name, now in client.run(spent).items()}
    told(f"fit on {workers} workers of {limit}: {found.seconds:.0f} s, {found.tasks} tasks on"
         f" {found.parts} parts; {found.guard.reason}")  # fmt: skip
    told(f"processor seconds: workers {', '.join(f'{u:.0f}' for u in used.values())}, in all"
         f" {sum(used.values()):.0f}; client and scheduler {own:.0f}")  # fmt: skip
    told(f"peak memory a worker: {', '.join(f'{p:.2f}' for p in sorted(peaks.values()))} GB"
         f" (before any task {max(before.values()):.2f}); client {peak():.2f} GB;"
         f" workers restarted: {'yes' if restarted else 'no'}")  # fmt: skip
    told(f"network: {moved / 1e6:.2f} MB between workers (Dask's counter); all that crossed the"
         f" loopback device {sampler.network / 1e6:.0f} MB;"
         f" scratch at most {sampler.disk / 1e9:.2f} GB")  # fmt: skip
    y = read(graph, "y")
    free = ~read(graph, "val_mask")
    after = 100 * float((read(out, "answers") == y)[free].mean())
    told(f"right at nodes without a label: {after:.2f} %; at labels {found.guard.untouched:.1f} ->"
         f" {found.guard.accuracy:.1f} %")  # fmt: skip


class Sampler:
    """The size of the scratch folder, and bytes over loopback, while a fit runs."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.disk = 0
        self.network = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sampler:
        self._start = _loopback()
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._ended.set()
        self._thread.join()
        self.network = _loopback() - self._start

    def _run(self) -> None:
        while not self._ended.wait(5.0):
            done = subprocess.run(["du", "-sb", *map(str, self.out.glob("scratch-*"))],
                                  capture_output=True, text=True, check=False)  # fmt: skip
            sizes = [int(line.split()[0]) for line in done.stdout.splitlines()]
            self.disk = max(self.disk, sum(sizes))


def _loopback() -> int:
    """Bytes received on the loopback device: those of a cluster on one machine."""
    line = next(one for one in Path("/proc/net/dev").read_text().splitlines() if "lo:" in one)
    return int(line.split(":")[1].split()[0])


def equal(folder: Path, n_nodes: int, n_features: int, name: str) -> None:
    data, model = graph_of(n_nodes, n_features), trained(n_features, name)
    save_shards(data, folder / "graph", rows=n_nodes // 3)
    rec = Reconstructor(model).fit(data)
    found = fit_shards(folder / "graph", model, folder / "out", workers=2)
    differences = {
        name: float(np.abs(read(folder / "out", name) - mine.numpy()).max())
        for name, mine in (("posterior", rec.posterior_), ("x", rec.features_))
    }
    others = int((read(folder / "out", "answers") != rec.predict(data).numpy()).sum())
    told(f"{name}: {n_nodes:,} nodes, {n_features} features, {found.parts} parts, beside"
         f" Reconstructor.fit: largest difference of a probability"
         f" {differences['posterior']:.1e}, of a feature {differences['x']:.1e}; other answers"
         f" {others}; change kept {found.guard.kept}, median |x'-x|/|x|"
         f" {float(rec.change_.median()):.2f}")  # fmt: skip


def kills(folder: Path, times: int = 5) -> None:
    """One fit that nobody disturbs, and one in which workers are killed at random times."""
    data, model = graph_of(3_000, 20), trained(20)
    save_shards(data, folder / "graph", rows=1_000)
    settings = ClusterSettings(rows=1024)
    draw = random.Random(0)
    outs = folder / "out", folder / "killed"
    with local_cluster(3) as cluster:
        call = {"scheduler": cluster.scheduler_address, "settings": settings}
        first = fit_shards(folder / "graph", model, outs[0], **call)
        waits = sorted(draw.uniform(0.05, 0.9) * first.seconds for _ in range(times))
        killed: list[int] = []
        timers = [threading.Timer(wait, kill_one, (cluster, killed, draw)) for wait in waits]
        for timer in timers:
            timer.start()
        found = fit_shards(folder / "graph", model, outs[1], **call)
        for timer in timers:
            timer.cancel()
    same = all(
        np.array_equal(*(read(out, name) for out in outs)) for name in ("x", "posterior", "answers")
    )
    told(f"{found.n_nodes:,} nodes, three workers, {found.tasks} tasks: {len(killed)} workers"
         f" killed (SIGKILL), {', '.join(f'{wait:.0f}' for wait in waits)} s after the start of a"
         f" fit of {found.seconds:.0f} s (undisturbed {first.seconds:.0f} s): every bit of"
         f" features, posterior and answers the same: {same}")  # fmt: skip


def kill_one(cluster: Any, killed: list[int], draw: random.Random) -> None:
    """SIGKILL to one worker process."""
    there = [one.process.pid for one in cluster.workers.values() if one.process]
    pids = [pid for pid in there if pid is not None and pid not in killed]
    if pids:
        killed.append(draw.choice(pids))
        os.kill(killed[-1], signal.SIGKILL)


def told(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="*", choices=["large", "equal", "kills", []], default=[])
    parser.add_argument("--model", default="sgc", help="of `equal`: sgc, sage, gcn or gat")
    parser.add_argument("--folder", type=Path, default=None, help="where graphs are written")
    parser.add_argument("--nodes", type=int, default=250_000, help="of the large graph")
    parser.add_argument("--features", type=int, default=6_000, help="of the large graph")
    args = parser.parse_args()
    torch.set_num_threads(1)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    command = " ".join(["python benchmarks/bench_cluster.py", *sys.argv[1:]])
    for kind in args.kind or ("equal", "kills", "large"):
        folder = Path(tempfile.mkdtemp(prefix="bench-cluster-", dir=args.folder))
        told(f"# {command}: {kind} (commit {commit})")
        try:
            if kind == "equal":
                equal(folder, 100_000, 100, args.model)
            elif kind == "kills":
                kills(folder)
            else:
                large(folder, args.nodes, args.features, 4, "1GB")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
