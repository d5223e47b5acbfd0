"""One method on one dataset over many seeds: train, freeze, reconstruct, score; row by row into a
run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphkeel.core.errors import ConfigError
from graphkeel.core.statistics import percent
from graphkeel.core.tensors import save_tensors
from graphkeel.graph import GraphTask
from graphkeel.graph.task import graph_sha256
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.outputs import ReturnType
from graphkeel.models.zoo import OWN, own_model
from graphkeel.runs.method import MethodResult
from graphkeel.runs.specs import AnySpec, RunSpec
from graphkeel.store.job import DONE, Job, Measurement, package_versions
from graphkeel.store.statistics import summarise
from graphkeel.store.store import FILE, Store

Row = dict[str, Any]
TRAINED, VALIDATION, SCORED = 1, 2, 3  # codes of a node's split


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of one seed."""

    row: Row  # plain values
    features: Tensor | None  # the rewritten ones, shape (N, d); None where they were left alone
    nodes: dict[str, Tensor]  # what the report lists, a column a name, each of shape (N,)
    scores: Tensor  # the method's, else the untouched model's, shape (N, n_classes)


@dataclass(frozen=True)
class RunResult:
    spec: AnySpec
    rows: list[Row]
    reused: int = 0  # rows that the folder held already

    def summary(self) -> dict[str, Any]:
        """Means and sample deviations over the seeds, in percent; one seed has no deviation."""
        base = [row["base"] for row in self.rows]
        ours = [row["accuracy"] for row in self.rows]
        gains = [after - before for before, after in zip(base, ours, strict=True)]
        before = summarise(base)
        after = summarise(ours)
        return {
            "base_mean": before.mean,
            "base_std": before.std,
            "accuracy_mean": after.mean,
            "accuracy_std": after.std,
            "gain_mean": summarise(gains).mean,
            "gain_min": min(gains),
        }


def run_seeds(
    spec: AnySpec,
    seeds: Iterable[int],
    *,
    out: Path | None = None,
    on_row: Callable[[Row], None] = lambda _: None,
) -> RunResult:
    """Run every seed that the run folder does not hold yet."""
    store = None if out is None else _store_of(out, spec)
    rows = []
    reused = 0
    for seed in seeds:
        if store is None:
            row = spec.outcome(seed).row
        else:
            job = Job(spec.method, spec, seed, spec.data_hash(seed), spec.code_version())
            found = store.find(job)
            if found is not None and found.done:
                reused += 1
                row = found.result
            else:
                row = _stored_row(store, job, spec)
        rows.append(row)
        on_row(row)
    return RunResult(spec, rows, reused)


def _store_of(folder: Path, spec: AnySpec) -> Store:
    """The store of a run folder, which belongs to one run: that of another is refused."""
    if (folder / "reconstruction.json").is_file():
        raise ConfigError(f"{folder} holds a reconstruction", fix="Choose another --out.")
    store = Store(folder / FILE, versions=package_versions())
    manifest = {"spec": asdict(spec), "program": spec.PROGRAM, **package_versions()}
    published = spec.published()
    store.claim(manifest | ({"published": published} if published else {}))
    return store


def _stored_row(store: Store, job: Job, spec: AnySpec) -> Row:
    """The row of a seed, computed and stored; rewritten features and predictions lie beside it."""
    start = time.perf_counter()
    outcome = spec.outcome(job.seed)
    file = f"seed-{job.seed:04d}.safetensors"
    folder = store.path.parent
    if outcome.features is not None:
        save_tensors(folder / "features" / file, {"x": outcome.features})
    save_tensors(folder / "nodes" / file, outcome.nodes)
    # The row comes last: where it is stored, the files that belong to it are there.
    seconds = time.perf_counter() - start
    store.keep(job, Measurement(DONE, seconds, 0.0, outcome.row))
    return outcome.row


def run_seed(spec: RunSpec, seed: int) -> Outcome:
    """One split, one reconstruction; the model of a split is trained once for all methods."""
    prepared = _prepared(replace(spec, method="none", labels="train", method_options={}), seed)
    task = prepared.task
    split = torch.zeros(task.n_nodes, dtype=torch.int8)
    for code, mask in enumerate((task.train_mask, task.val_mask, task.test_mask), start=TRAINED):
        split[mask] = code
    known = (prepared.frozen, task, task.y, split, prepared.base)
    return measured(seed, *known, lambda: _apply(spec, prepared, seed))


def measured(
    seed: int,
    frozen: FrozenModel,
    task: GraphTask,
    labels: Tensor,
    split: Tensor,
    base: Tensor,
    method: Callable[[], MethodResult],
) -> Outcome:
    """Apply a method and score it, where the code of a node's split is `SCORED`.

    `labels` (N,) are used here, to score, and nowhere else; `base` are the untouched model's
    scores, shape (N, n_classes)."""
    start = time.perf_counter()
    result = method()
    seconds = time.perf_counter() - start
    scores = base if result.scores is None else result.scores
    nodes = node_columns(task, labels, split, base, scores)
    scored = split == SCORED
    right = (percent((nodes[name] == labels)[scored]) for name in ("before", "after"))
    before, after = (round(one, 6) for one in right)
    row = {
        "seed": seed,
        "base": before,
        "accuracy": after,
        "kept": result.scores is None,
        "decision": result.decision,
        "seconds": seconds,
        "data": task.hash,
        "graph": graph_sha256(task.x, task.edge_index),  # what a certificate names
        "weights": frozen.weights_hash,
    }
    return Outcome(row, result.features, nodes, scores)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A split and the model trained on it, frozen; `base` are its scores, untouched."""

    task: GraphTask
    frozen: FrozenModel
    base: Tensor


def prepare(spec: RunSpec, seed: int) -> Prepared:
    """Split, model and scores of one seed, as every method of a table gets them."""
    task = spec.task(seed)
    model = model_of(spec, task, seed)
    return_type = ReturnType.AUTO if spec.model == OWN else ReturnType.RAW
    frozen = FrozenModel(model, n_classes=task.n_classes, return_type=return_type)
    return Prepared(task, frozen, frozen(task.x, task.edge_index))


_prepared = lru_cache(maxsize=2)(prepare)


def model_of(spec: AnySpec, task: GraphTask, seed: int) -> nn.Module:
    """The frozen model of a seed: one of ours, trained now, or the user's own."""
    if spec.model != OWN:
        return spec.trained(task, seed)
    weights, factory = (str(spec.model_options[name]) for name in ("weights", "factory"))
    return own_model(weights, factory, task.n_features, task.n_classes)


def _apply(spec: RunSpec, prepared: Prepared, seed: int) -> MethodResult:
    if spec.method == "none":
        return MethodResult()
    labelled, validation = label_budget(prepared.task, spec.labels, seed)
    return spec.find_method().fit_predict(
        prepared.frozen, prepared.task.without_test_labels(), labelled, validation, seed
    )


def node_columns(
    task: GraphTask, labels: Tensor, split: Tensor, before: Tensor, after: Tensor
) -> dict[str, Tensor]:
    """The columns of the report's list of nodes, each of shape (N,), from labels, the code of each
    node's split (int8; 0: none), and the scores of the untouched model and of the method, shape
    (N, n_classes)."""
    return {
        "y": labels,
        "split": split,
        "before": before.argmax(dim=-1),
        "after": after.argmax(dim=-1),
        "degree": torch.bincount(task.edge_index[1], minlength=task.n_nodes),
    }


def label_budget(task: GraphTask, labels: str, seed: int) -> tuple[Tensor, Tensor]:
    """(nodes whose label the method may use, nodes it may select on); never a node in both, never a
    test node."""
    train, val = task.train_mask.nonzero().flatten(), task.val_mask.nonzero().flatten()
    if labels == "train":
        return train, val
    if labels == "train+val":
        return torch.cat([train, val]), val[:0]
    shuffled = val[torch.from_numpy(np.random.default_rng([seed, 2]).permutation(len(val)))]
    half = len(val) // 2
    return torch.cat([train, shuffled[:half].sort().values]), shuffled[half:].sort().values
