"""Labels that arrive after deployment, batch by batch: the features follow, the weights stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphkeel.core.digests import json_sha256
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.tensors import save_tensors
from graphkeel.graph import GraphTask
from graphkeel.graph.labels import checked_labels
from graphkeel.label.files import Batch
from graphkeel.models import accuracy
from graphkeel.reconstruct.reconstructor import Reconstructor, load_reconstructor
from graphkeel.report.fit_facts import suggested
from graphkeel.runs.methods import reconstructor_of
from graphkeel.runs.run import SCORED, TRAINED, VALIDATION, Prepared, node_columns, prepare
from graphkeel.runs.specs import RunSpec
from graphkeel.store.store import FILE as STORE


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
    first."""
    if out is not None and (out / STORE).is_file():
        raise ConfigError(f"{out} holds a run of several seeds", fix="Choose another --out.")
    prepared = prepare(spec, seed)
    arriving = list(batches(prepared.task))
    sizes = (prepared.task.n_nodes, prepared.task.n_classes)
    for batch in arriving:  # wrong ones are refused before the fit
        checked_labels(*batch, *sizes)
    fed_back = torch.cat([batch.nodes for batch in arriving])
    nodes = torch.arange(prepared.task.n_nodes)
    scored = prepared.task.test_mask & ~torch.isin(nodes, fed_back)
    if not scored.any():
        raise ConfigError("no test node is left to score on", fix="Feed back fewer labels.")
    subject = _subject(spec, seed, prepared, arriving)
    steps = [] if out is None else _finished(out, subject)
    first = len(steps)
    yield from steps
    rec = reconstructor_of(spec.method, prepared.frozen.model, seed)
    for number in range(first, len(arriving) + 1):
        start = time.perf_counter()
        if number == first:
            rec.fit(prepared.task.to_data())
        # Batches that were finished before go in with the next one, in the same order.
        fresh = arriving[:number] if number == first else arriving[number - 1 : number]
        if fresh:
            rec.feedback(torch.cat([b.nodes for b in fresh]), torch.cat([b.labels for b in fresh]))
        steps.append(_step(rec, prepared, scored, time.perf_counter() - start))
        if out is not None:
            file = out / "nodes" / f"seed-{seed:04d}.safetensors"
            save_tensors(file, _nodes(rec, prepared, scored))
            # steps and features at once; from spec and seed `opened` makes model and graph again
            notes = {"subject": subject, "spec": asdict(spec), "seed": seed}
            notes["steps"] = [asdict(step) for step in steps]
            if number == len(arriving):
                notes["suggested"] = suggested(rec, prepared.base.argmax(dim=1).numpy())
            rec.save(out, notes)
        yield steps[-1]


def _finished(out: Path, subject: str) -> list[Step]:
    """The steps in a folder; none if it is empty, damaged or about something else."""
    try:
        notes = load_reconstructor(out).notes_
        if notes["subject"] != subject:
            return []
        return [Step(**step) for step in notes["steps"]]
    except (DataError, KeyError, TypeError):
        return []


def _subject(spec: RunSpec, seed: int, prepared: Prepared, arriving: Sequence[Batch]) -> str:
    """SHA-256 of all that decides the steps."""
    labels = [[batch.nodes.tolist(), batch.labels.tolist()] for batch in arriving]
    model = prepared.frozen.weights_hash
    return json_sha256([asdict(spec), seed, prepared.task.hash, model, *labels])


def _step(rec: Reconstructor, prepared: Prepared, scored: Tensor, seconds: float) -> Step:
    task = prepared.task
    after = prepared.frozen(rec.features_, task.edge_index)
    return Step(
        known=len(rec.labels_.nodes),
        base=accuracy(prepared.base, task, scored),
        accuracy=accuracy(after, task, scored),
        kept=rec.guard_.left_alone,
        reason=rec.guard_.reason,
        seconds=seconds,
    )


def _nodes(rec: Reconstructor, prepared: Prepared, scored: Tensor) -> dict[str, Tensor]:
    task = prepared.task
    split = torch.zeros(task.n_nodes, dtype=torch.int8)
    split[rec.labels_.nodes] = VALIDATION
    split[task.train_mask] = TRAINED
    split[scored] = SCORED
    after = prepared.frozen(rec.features_, task.edge_index)
    return node_columns(task, task.y, split, prepared.base, after)


def simulated(task: GraphTask, count: int, n_batches: int, seed: int) -> list[Batch]:
    """Random test nodes whose labels arrive in batches."""
    pool = task.test_mask.nonzero().flatten()
    if count >= len(pool):
        raise ConfigError(
            f"there are {len(pool)} test nodes to draw labels from, and some must stay", got=count
        )
    order = np.random.default_rng([seed, 3]).permutation(len(pool))[:count]
    nodes = pool[torch.from_numpy(order)]
    return [Batch(part, task.y[part]) for part in nodes.chunk(n_batches)]


def fitted(spec: RunSpec, seed: int) -> tuple[Reconstructor, Data]:
    """A reconstructor fitted to the split of a seed, and that split."""
    prepared = prepare(spec, seed)
    data = prepared.task.to_data()
    return reconstructor_of(spec.method, prepared.frozen.model, seed).fit(data), data
