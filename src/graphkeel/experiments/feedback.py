"""Labels that arrive after deployment, batch by batch: the features follow, the weights stay."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphkeel.data import GraphTask
from graphkeel.errors import ConfigError, DataError
from graphkeel.experiments.run import Prepared, RunSpec, prepare
from graphkeel.reconstructor import Reconstructor

MAX_LABELS = 10_000_000


@dataclass(frozen=True, eq=False)
class Batch:
    """Labels that arrive together."""

    nodes: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Step:
    """The state after a batch; accuracies in percent, on test nodes whose label never arrives."""

    known: int  # labels in use
    base: float
    accuracy: float
    kept: bool  # features left alone
    reason: str
    seconds: float


def run_feedback(
    spec: RunSpec, seed: int, batches: Callable[[GraphTask], Sequence[Batch]]
) -> Iterator[tuple[Step, Reconstructor]]:
    """Fit on the training labels, then take in each batch; yields the state after each, the fit first.

    `batches` is asked once, with the task, so that labels can be drawn from it or checked against it.
    """
    prepared = prepare(spec, seed)
    arriving = list(batches(prepared.task))
    told = torch.cat([batch.nodes for batch in arriving])
    scored = prepared.task.test_mask & ~torch.isin(torch.arange(prepared.task.n_nodes), told)
    if not scored.any():
        raise ConfigError("no test node is left to score on", fix="Feed back fewer labels.")
    rec = Reconstructor(prepared.frozen.model, method=spec.method, seed=seed)
    data = prepared.task.to_data()
    start = time.perf_counter()
    rec.fit(data)
    yield _step(rec, prepared, scored, time.perf_counter() - start), rec
    for batch in arriving:
        start = time.perf_counter()
        rec.feedback(batch.nodes, batch.labels)
        yield _step(rec, prepared, scored, time.perf_counter() - start), rec


def _step(rec: Reconstructor, prepared: Prepared, scored: Tensor, seconds: float) -> Step:
    task = prepared.task
    after = prepared.frozen.predict(rec.features_, task.edge_index)
    right = [float((p[scored] == task.y[scored]).float().mean()) for p in (prepared.base.argmax(dim=-1), after)]
    return Step(
        len(rec.labels_.nodes), 100 * right[0], 100 * right[1], rec.guard_.left_alone, rec.guard_.reason, seconds
    )


def simulated(task: GraphTask, count: int, n_batches: int, seed: int) -> list[Batch]:
    """`count` random test nodes whose labels arrive in `n_batches` batches."""
    pool = task.test_mask.nonzero().flatten()
    if count >= len(pool):
        raise ConfigError(f"there are {len(pool)} test nodes to draw labels from, and some must stay", got=count)
    order = np.random.default_rng([seed, 3]).permutation(len(pool))[:count]
    nodes = pool[torch.from_numpy(order)]
    return [Batch(part, task.y[part]) for part in nodes.chunk(n_batches)]


def read_labels(path: Path) -> Batch:
    """A CSV file with a header line `node,label`."""
    try:
        with path.open(newline="") as file:
            rows = list(csv.reader(_limited(file, path)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"the labels {path} cannot be read", got=str(error)) from error
    if not rows or [cell.strip() for cell in rows[0]] != ["node", "label"]:
        raise DataError(f"{path} must begin with the line node,label", got=rows[0] if rows else "an empty file")
    try:
        pairs = [(int(node), int(label)) for node, label in rows[1:]]
    except ValueError as error:
        raise DataError(f"every line of {path} after the first must be two integers", got=str(error)) from error
    if not pairs:
        raise DataError(f"{path} holds no label", fix="Add a line such as 17,3.")
    nodes, labels = torch.tensor(pairs).T
    return Batch(nodes, labels)


def _limited(lines: Iterator[str], path: Path) -> Iterator[str]:
    for i, line in enumerate(lines):
        if i > MAX_LABELS:
            raise DataError(f"{path} has more than {MAX_LABELS} lines")
        yield line
