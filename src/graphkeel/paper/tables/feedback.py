"""Labels that arrive after deployment, batch by batch: the features follow, the weights stay."""

from __future__ import annotations

import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.statistics import percent
from graphkeel.graph import GraphTask
from graphkeel.paper.tables.run import Prepared, RunSpec, prepare
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor

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
    spec: RunSpec,
    seed: int,
    batches: Callable[[GraphTask], Sequence[Batch]],
    *,
    out: Path | None = None,
) -> Iterator[Step]:
    """Fit on the training labels, then take in each batch; yields the state after each, the fit
    first.

    `batches` is asked once, with the task, so that labels can be drawn from it or checked against
    it. After every step the reconstruction goes to `out`; steps that an interrupted run has
    finished there are not taken again."""
    prepared = prepare(spec, seed)
    arriving = list(batches(prepared.task))
    told = torch.cat([batch.nodes for batch in arriving])
    scored = prepared.task.test_mask & ~torch.isin(torch.arange(prepared.task.n_nodes), told)
    if not scored.any():
        raise ConfigError("no test node is left to score on", fix="Feed back fewer labels.")
    journal = _Journal(out, _subject(spec, seed, prepared, arriving))
    first = len(journal.steps)
    yield from journal.steps
    rec = Reconstructor(prepared.frozen.model, method=spec.method, seed=seed)
    for number in range(first, len(arriving) + 1):
        start = time.perf_counter()
        if number == first:
            rec.fit(prepared.task.to_data())
        # Batches that were finished before go in with the next one: the labels are the same in the
        # same order.
        news = arriving[:number] if number == first else arriving[number - 1 : number]
        if news:
            rec.feedback(torch.cat([b.nodes for b in news]), torch.cat([b.labels for b in news]))
        journal.keep(_step(rec, prepared, scored, time.perf_counter() - start), rec)
        yield journal.steps[-1]


class _Journal:
    """The steps taken so far, kept in the notes of the reconstruction that they led to: both are
    saved at once."""

    def __init__(self, out: Path | None, subject: str) -> None:
        self.out, self.subject = out, subject
        self.steps = [] if out is None else _finished(out, subject)

    def keep(self, step: Step, rec: Reconstructor) -> None:
        self.steps.append(step)
        if self.out is not None:
            rec.save(
                self.out, {"subject": self.subject, "steps": [asdict(step) for step in self.steps]}
            )


def _finished(out: Path, subject: str) -> list[Step]:
    """The steps in a folder; none if it is empty, damaged or about something else."""
    try:
        notes = load_reconstructor(out).notes_
        return [Step(**step) for step in notes["steps"]] if notes["subject"] == subject else []
    except (DataError, KeyError, TypeError):
        return []


def _subject(spec: RunSpec, seed: int, prepared: Prepared, arriving: Sequence[Batch]) -> str:
    """SHA-256 of all that decides the steps."""
    told = [asdict(spec), seed, prepared.task.hash, prepared.frozen.weights_hash]
    labels = [[batch.nodes.tolist(), batch.labels.tolist()] for batch in arriving]
    return hashlib.sha256(json.dumps([*told, *labels], sort_keys=True).encode()).hexdigest()


def _step(rec: Reconstructor, prepared: Prepared, scored: Tensor, seconds: float) -> Step:
    task = prepared.task
    after = prepared.frozen.predict(rec.features_, task.edge_index)
    before = prepared.base.argmax(dim=-1)
    wanted = task.y[scored]
    return Step(
        len(rec.labels_.nodes),
        percent(before[scored] == wanted),
        percent(after[scored] == wanted),
        rec.guard_.left_alone,
        rec.guard_.reason,
        seconds,
    )


def simulated(task: GraphTask, count: int, n_batches: int, seed: int) -> list[Batch]:
    """`count` random test nodes whose labels arrive in `n_batches` batches."""
    pool = task.test_mask.nonzero().flatten()
    if count >= len(pool):
        raise ConfigError(
            f"there are {len(pool)} test nodes to draw labels from, and some must stay", got=count
        )
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
        raise DataError(
            f"{path} must begin with the line node,label", got=rows[0] if rows else "an empty file"
        )
    try:
        pairs = torch.tensor([(int(node), int(label)) for node, label in rows[1:]])
    except (ValueError, RuntimeError) as error:  # no integer; one that has more than 64 bits
        raise DataError(
            f"every line of {path} after the first must be two integers", got=str(error)
        ) from error
    if not len(pairs):
        raise DataError(f"{path} holds no label", fix="Add a line such as 17,3.")
    nodes, labels = pairs.T
    return Batch(nodes, labels)


def _limited(lines: Iterator[str], path: Path) -> Iterator[str]:
    for i, line in enumerate(lines):
        if i > MAX_LABELS:
            raise DataError(f"{path} has more than {MAX_LABELS} lines")
        yield line
