"""One method on one dataset over many seeds: train, freeze, reconstruct, score; row by row into a
run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphkeel import __version__
from graphkeel.core.statistics import sample_std
from graphkeel.core.tensor_files import save_tensors
from graphkeel.graph import GraphTask
from graphkeel.models import accuracy, train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.tables.methods import find_method
from graphkeel.paper.tables.spec import LABELS, RunSpec
from graphkeel.paper.tables.store import RunFolder
from graphkeel.reconstruct.method import MethodResult

__all__ = [
    "LABELS",
    "Prepared",
    "RunResult",
    "RunSpec",
    "apply_method",
    "label_budget",
    "prepare",
    "run_seed",
    "run_seeds",
]

Row = dict[str, Any]


@dataclass(frozen=True)
class RunResult:
    """The rows of a run, in the order of their seeds."""

    spec: RunSpec
    rows: list[Row]

    def summary(self) -> dict[str, Any]:
        base = np.array([row["base"] for row in self.rows])
        ours = np.array([row["accuracy"] for row in self.rows])
        gain = ours - base
        return {
            "base_mean": float(base.mean()),
            "base_std": sample_std(base.tolist()),
            "accuracy_mean": float(ours.mean()),
            "accuracy_std": sample_std(ours.tolist()),
            "gain_mean": float(gain.mean()),
            "gain_min": float(gain.min()),
        }


def run_seeds(
    spec: RunSpec,
    seeds: Iterable[int],
    *,
    out: Path | None = None,
    on_row: Callable[[Row], None] = lambda _: None,
) -> RunResult:
    """Run every seed that the run folder does not hold yet; `on_row` hears of each row, stored or
    new."""
    folder = RunFolder(
        out, {"spec": asdict(spec), "graphkeel": __version__, "torch": str(torch.__version__)}
    )
    rows = []
    for seed in seeds:
        row = folder.row(seed)
        if row is None:
            row = run_seed(
                spec, seed, features_to=folder.array_path(seed), nodes_to=folder.nodes_path(seed)
            )
            folder.keep(seed, row)
        rows.append(row)
        on_row(row)
    return RunResult(spec, rows)


def run_seed(
    spec: RunSpec, seed: int, *, features_to: Path | None = None, nodes_to: Path | None = None
) -> Row:
    """One split, one trained model, one reconstruction."""
    prepared = prepare(spec, seed)
    row, outcome = apply_method(spec, seed, prepared)
    if features_to is not None and outcome.features is not None:
        save_tensors(features_to, {"x": outcome.features})
    if nodes_to is not None:
        save_tensors(nodes_to, node_changes(prepared, outcome))
    return row


@dataclass(frozen=True, eq=False)
class Prepared:
    """A split and the model trained on it, frozen; `base` are its scores, untouched."""

    task: GraphTask
    frozen: FrozenModel
    base: Tensor


def prepare(spec: RunSpec, seed: int) -> Prepared:
    """What every method of a table is given for one seed."""
    task = spec.task(seed)
    frozen = FrozenModel(
        train_model(spec.model, task, seed=seed, **spec.model_options), n_classes=task.n_classes
    )
    return Prepared(task, frozen, frozen(task.x, task.edge_index))


def apply_method(spec: RunSpec, seed: int, prepared: Prepared) -> tuple[Row, MethodResult]:
    """Run the method and score it; test labels are used here, to score, and nowhere else."""
    task, base = prepared.task, prepared.base
    start = time.perf_counter()
    outcome = _apply(spec, prepared, seed)
    seconds = time.perf_counter() - start
    scores = base if outcome.scores is None else outcome.scores
    row = {
        "seed": seed,
        "base": round(accuracy(base, task, task.test_mask), 6),
        "accuracy": round(accuracy(scores, task, task.test_mask), 6),
        "kept": outcome.features is None and outcome.scores is None,
        "decision": outcome.decision,
        "seconds": seconds,
        "data": task.hash,
        "weights": prepared.frozen.weights_hash,
    }
    return row, outcome


def _apply(spec: RunSpec, prepared: Prepared, seed: int) -> MethodResult:
    if spec.method == "none":
        return MethodResult()
    labelled, validation = label_budget(prepared.task, spec.labels, seed)
    method = find_method(spec.method, spec.method_options)
    return method.fit_predict(
        prepared.frozen, prepared.task.without_test_labels(), labelled, validation, seed
    )


def node_changes(prepared: Prepared, outcome: MethodResult) -> dict[str, Tensor]:
    """Label, split, and class before and after, of every node: what the report lists."""
    task, base = prepared.task, prepared.base
    scores = base if outcome.scores is None else outcome.scores
    split = torch.zeros(task.n_nodes, dtype=torch.int8)
    for code, mask in enumerate((task.train_mask, task.val_mask, task.test_mask), start=1):
        split[mask] = code
    before, after = base.argmax(dim=-1), scores.argmax(dim=-1)
    return {"y": task.y, "split": split, "before": before, "after": after, "degree": _degree(task)}


def _degree(task: GraphTask) -> Tensor:
    return torch.bincount(task.edge_index[1], minlength=task.n_nodes)


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
