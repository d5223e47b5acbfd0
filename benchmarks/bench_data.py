"""Sampler benchmarks: the published lists rebuilt, and a biased set drawn on a million nodes.

    GRAPHKEEL_DATA=… python benchmarks/bench_data.py

Prints agreement with the published lists, seconds, peak memory of the process, and the time of the
dense inverse that the exact sampler avoids, measured on Cora in the same run."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from graphkeel.graph import make_sbm
from graphkeel.graph.ppr import PprDistance
from graphkeel.graph.propagate import normalise
from graphkeel.graph.splits import biased_sampler
from graphkeel_paper.datasets import load_graph
from graphkeel_paper.datasets.files import published_seeds


def timed(job: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = job()
    return result, time.perf_counter() - start


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def rebuild(name: str) -> float | None:
    """Share of the published nodes that the exact sampler finds from each list's seed nodes."""
    published = published_seeds(name)
    if published is None:
        return None
    sampler = biased_sampler(load_graph(name))
    sampler = replace(sampler, distance=_without_cache(name).to_seed)
    drawn = [
        np.concatenate([sampler.around(int(p[i])) for i in range(0, len(p), 20)]) for p in published
    ]
    same = sum(len(np.intersect1d(a, b)) for a, b in zip(drawn, published, strict=True))
    return same / sum(len(p) for p in published)


def _without_cache(name: str) -> PprDistance:
    graph = load_graph(name)
    matrix = normalise(
        graph.edge_index, graph.n_nodes, dtype=np.float64, self_links=graph.self_links
    )
    return PprDistance(matrix, graph.biased.teleport)


def dense_inverse(name: str) -> None:
    graph = load_graph(name)
    matrix = normalise(graph.edge_index, graph.n_nodes, dtype=np.float64).toarray()
    np.linalg.inv(np.eye(graph.n_nodes) - 0.99 * matrix)


def main() -> None:
    table = Table("what", "result", "seconds", "peak GB", title="samplers")
    for name in ("cora", "citeseer", "pubmed"):
        share, seconds = timed(lambda name=name: rebuild(name))
        result = (
            "published lists not found" if share is None else f"{100 * share:.2f}% of the nodes"
        )
        table.add_row(
            f"100 published lists of {name}", result, f"{seconds:.1f}", f"{peak_gb():.2f}"
        )
    _, seconds = timed(lambda: dense_inverse("cora"))
    table.add_row("dense inverse, cora (what is avoided)", "", f"{seconds:.1f}", f"{peak_gb():.2f}")
    graph, seconds = timed(lambda: make_sbm(1_000_000, 10_000_000, n_features=16))
    table.add_row(
        "sbm of 1e6 nodes",
        f"{graph.edge_index.shape[1] // 2:,} edges",
        f"{seconds:.1f}",
        f"{peak_gb():.2f}",
    )
    drawn, seconds = timed(lambda: biased_sampler(graph, large=True).draw(0))
    table.add_row("biased set on it", f"{len(drawn):,} nodes", f"{seconds:.1f}", f"{peak_gb():.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
