"""One method on one dataset over many seeds: train, freeze, reconstruct, score; row by row into a run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphkeel import __version__
from graphkeel.data import GraphTask, load_graph, make_task
from graphkeel.errors import ConfigError
from graphkeel.experiments.store import RunFolder
from graphkeel.frozen import FrozenModel
from graphkeel.models import accuracy, train_model

LABELS = ("train", "train+half-val", "train+val")

Row = dict[str, Any]


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines the numbers of a run, apart from the seed."""

    dataset: str = "digits"
    model: str = "sgc"
    method: str = "none"
    labels: str = "train"  # which labels the method may use
    split: str = "biased"
    features: str = "auto"
    pca: int = 20
    model_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise ConfigError(f"labels must be one of {', '.join(LABELS)}", got=repr(self.labels))

    def task(self, seed: int) -> GraphTask:
        return make_task(load_graph(self.dataset), seed=seed, split=self.split, features=self.features, pca=self.pca)


@dataclass(frozen=True)
class RunResult:
    """The rows of a run, in the order of their seeds."""

    spec: RunSpec
    rows: list[Row]

    def summary(self) -> dict[str, float]:
        base = np.array([row["base"] for row in self.rows])
        ours = np.array([row["accuracy"] for row in self.rows])
        gain = ours - base
        return {
            "base_mean": float(base.mean()),
            "base_std": sample_std(base),
            "accuracy_mean": float(ours.mean()),
            "accuracy_std": sample_std(ours),
            "gain_mean": float(gain.mean()),
            "gain_min": float(gain.min()),
        }


def sample_std(values: np.ndarray) -> float:
    """Sample standard deviation (ddof 1); 0 for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def run_seeds(
    spec: RunSpec, seeds: Iterable[int], *, out: Path | None = None, on_row: Callable[[Row], None] = lambda _: None
) -> RunResult:
    """Run every seed that the run folder does not hold yet; `on_row` hears of each row, stored or new."""
    folder = RunFolder(out, {"spec": asdict(spec), "graphkeel": __version__, "torch": str(torch.__version__)})
    rows = []
    for seed in seeds:
        row = folder.row(seed)
        if row is None:
            row = run_seed(spec, seed, features_to=folder.array_path(seed))
            folder.keep(seed, row)
        rows.append(row)
        on_row(row)
    return RunResult(spec, rows)


def run_seed(spec: RunSpec, seed: int, *, features_to: Path | None = None) -> Row:
    """One split, one trained model, one reconstruction; test labels are used here, to score, and nowhere else."""
    task = spec.task(seed)
    model = train_model(spec.model, task, seed=seed, **spec.model_options)
    frozen = FrozenModel(model, n_classes=task.n_classes)
    base = frozen(task.x, task.edge_index)
    start = time.perf_counter()
    outcome = _apply(spec, frozen, task, seed)
    seconds = time.perf_counter() - start
    if features_to is not None and outcome.features is not None:
        _save_features(features_to, outcome.features)
    scores = base if outcome.scores is None else outcome.scores
    return {
        "seed": seed,
        "base": round(accuracy(base, task, task.test_mask), 6),
        "accuracy": round(accuracy(scores, task, task.test_mask), 6),
        "kept": outcome.features is None and outcome.scores is None,
        "decision": outcome.decision,
        "seconds": seconds,
        "data": task.hash,
        "weights": frozen.weights_hash,
    }


@dataclass(frozen=True)
class _Outcome:
    scores: Tensor | None = None  # None: the untouched model's
    features: Tensor | None = None
    decision: dict[str, Any] = field(default_factory=dict)


def _apply(spec: RunSpec, frozen: FrozenModel, task: GraphTask, seed: int) -> _Outcome:
    if spec.method == "none":
        return _Outcome()
    from graphkeel.reconstruct import get_method

    labelled, validation = label_budget(task, spec.labels, seed)
    result = get_method(spec.method).fit_predict(frozen, task.without_test_labels(), labelled, validation, seed)
    return _Outcome(result.scores, result.features, result.decision)


def label_budget(task: GraphTask, labels: str, seed: int) -> tuple[Tensor, Tensor]:
    """(nodes whose label the method may use, nodes it may select on); never a node in both, never a test node."""
    train, val = task.train_mask.nonzero().flatten(), task.val_mask.nonzero().flatten()
    if labels == "train":
        return train, val
    if labels == "train+val":
        return torch.cat([train, val]), val[:0]
    shuffled = val[torch.from_numpy(np.random.default_rng([seed, 2]).permutation(len(val)))]
    half = len(val) // 2
    return torch.cat([train, shuffled[:half].sort().values]), shuffled[half:].sort().values


def _save_features(path: Path, features: Tensor) -> None:
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".tmp")
    save_file({"x": features.contiguous()}, aside)
    aside.replace(path)
