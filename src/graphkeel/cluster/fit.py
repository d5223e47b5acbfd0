"""The rule on a graph that no machine has to hold: decide, test, steer, on a Dask cluster.

The functions are those of one machine (`graphkeel.reconstruct`): they are given arrays that live on
the cluster."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphkeel.cluster.fields import FieldModel
from graphkeel.cluster.graph import Matrices, ShardedGraph, known_nodes, make_matrices
from graphkeel.cluster.lazy import Lazy
from graphkeel.cluster.work import Cluster, ClusterSettings, check_shared, connected
from graphkeel.core.errors import ConfigError, DataError, ModelError
from graphkeel.core.steps import stage, step
from graphkeel.graph.label_sets import Known
from graphkeel.graph.propagate.local import row_blocks
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.linear_map import LinearMap, Propagation
from graphkeel.models.narrowed import Narrowed
from graphkeel.models.units import check_finite
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import Correction, Rule, correct
from graphkeel.reconstruct.guard import GuardDecision
from graphkeel.reconstruct.scene import Scene

SUMMARY = "fit.json"


@dataclass(frozen=True)
class ClusterFit:
    """The result of a fit on a cluster; arrays are in its folder.

    Attributes:
        out: the folder: `x` with the features to use, `posterior` with what was decided and
            `answers` with what the model says on these features, in shards as those that were read.
        guard: whether the change was kept, and why.
        weights: of each source of evidence, by name.
        fall: V of the steering, as `Reconstructor.fall_`.
        agreement: share of nodes that the model answers as decided; None where nothing was steered.
        n_nodes: N.
        parts: of the rows, a task each.
        tasks: that the cluster has done.
        seconds: that it took.
    """

    out: Path
    guard: GuardDecision
    weights: dict[str, float]
    fall: tuple[float, ...]
    agreement: float | None
    n_nodes: int
    parts: int
    tasks: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As `fit.json` has it."""
        return {
            **vars(self),
            "out": str(self.out),
            "guard": self.guard.to_dict(),
            "fall": list(self.fall),
        }


def fit_shards(
    folder: Path | str,
    model: Any,
    out: Path | str,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    balanced: bool = False,
    risk: float = 0.5,
    seed: int = 0,
    settings: ClusterSettings | None = None,
) -> ClusterFit:
    """`Reconstructor.fit` for a graph in shards, on a Dask cluster.

    Folder and output lie on storage that all workers see under the same path. The result is that of
    one machine, to float accuracy.

    Args:
        folder: the graph, as `save_shards` writes it.
        model: the trained model; if it is not linear (`SGConv`), layers of PyG must tell how many
            hops away its answers come from, and every worker asks it about its part of the nodes
            with their receptive fields.
        out: a folder to write to; it must be new or empty.
        scheduler: address of a running cluster, such as `tcp://10.0.0.1:8786`; None: workers of
            this machine.
        workers: of this machine, where no scheduler is given; None: two.
        balanced: classes count alike, however large.
        risk: the probability of harm up to which a change is kept.
        seed: of everything random.
        settings: how work is cut; None: as it is by default.
    """
    start = time.monotonic()
    settings = settings or ClusterSettings()
    graph = ShardedGraph.open(folder)
    frozen = FrozenModel(model)
    rule = Rule(balanced=balanced, risk=risk, seed=seed)
    target = _empty(Path(out).resolve())
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=target))
    try:
        with step("fit on a cluster") as facts, connected(scheduler, workers, settings) as client:
            cluster = Cluster(client, scratch, len(graph.x), graph.x.shape[1], settings)
            check_shared(cluster)
            context = _context(cluster, graph, frozen, seed)
            found = correct(context, _known(graph, cluster, context.n_classes), rule)
            _write(cluster, graph, context, found, target)
            result = _result(cluster, target, found, time.monotonic() - start)
            facts.update(nodes=len(cluster), reason=result.guard.reason)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    (target / SUMMARY).write_text(json.dumps(result.to_dict(), indent=1) + "\n")
    return result


def _empty(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        full = next(out.iterdir(), None)
    except OSError as error:
        raise ConfigError(
            "the output folder cannot be made",
            got=f"{out}: {error.strerror}",
            fix="Choose another.",
        ) from error
    if full is not None:
        raise ConfigError(
            "the output folder must be new or empty", got=str(full), fix="Choose another."
        )
    return out


class _ClusterContext(Context):
    """A frozen model on a graph that lives on a cluster."""

    cluster: Cluster
    matrices: Matrices

    @cached_property
    def read(self) -> tuple[int, Tensor, Tensor] | None:
        """The numbers of a linear model."""
        return LinearMap.read(self.frozen)

    @property
    def propagation(self) -> Propagation:
        hops = 2 if self.read is None else self.read[0]
        made = self.matrices
        return Propagation.made(made.forth, made.back, made.norm_bound, hops)

    @cached_property
    def linear(self) -> LinearMap | None:  # type: ignore[override]
        """The model as a matrix product, where it is one."""
        return None if self.read is None else LinearMap(self.propagation, *self.read)

    @cached_property
    def fields(self) -> FieldModel:
        """Any other model."""
        x: Any = self.x
        return FieldModel(self.cluster, self.frozen.model, x, self.matrices.given)

    @cached_property
    def logits(self) -> Any:
        """The untouched model's."""
        x: Any = self.x
        if self.read is None:
            return self.fields.logits(x).stored()
        hops, weight, bias = self.read
        answers: Any = torch.nn.functional.linear(x, weight)
        for _ in range(hops):
            answers = self.matrices.given @ answers
        return (answers + bias).stored()

    @cached_property
    def answers(self) -> Any:
        """The untouched model's classes, shape (N,)."""
        return self.logits.argmax(dim=1).numpy()

    @cached_property
    def scene(self) -> Scene:
        """The answers, features and graph that evidence is drawn from."""
        x: Any = self.x
        return Scene(self.logits.numpy(), x.numpy(), self.matrices.smooth, seed=self.seed)

    def logits_for(self, features: Any) -> Any:
        """The frozen model's logits with these features in place of its own."""
        model: Any = self.fields if self.linear is None else self.linear
        return model.logits(features)

    differentiable_logits_for = logits_for

    def narrowed(self, rank: int, logits: Tensor | None = None) -> Narrowed:
        """The model as a function of what it reads of the features."""
        return self.fields.narrowed()

    def tensor(self, array: Any) -> Any:
        """The array as the model takes it."""
        return self.cluster.tensor(array)


def _context(
    cluster: Cluster, graph: ShardedGraph, frozen: FrozenModel, seed: int
) -> _ClusterContext:
    x: Any = cluster.tensor(cluster.at_home(graph.x))
    check_finite(x, "features")
    context = _ClusterContext(frozen, x, torch.zeros(2, 0, dtype=torch.int64), seed=seed)
    context.cluster = cluster
    if context.read is not None and context.read[1].shape[1] != graph.x.shape[1]:
        raise ModelError(
            f"the model takes {context.read[1].shape[1]} features",
            got=f"{graph.x.shape[1]} in the shards",
        )
    stage("normalising the graph")
    context.matrices = make_matrices(cluster, graph.edges, linear=context.read is not None)
    return context


def _known(graph: ShardedGraph, cluster: Cluster, n_classes: int) -> Known:
    nodes, classes, judging = known_nodes(graph, cluster)
    if len(classes) and not 0 <= classes.min() <= classes.max() < n_classes:
        raise DataError(
            f"labels in a mask must lie in 0..{n_classes - 1}, as the model has classes",
            got=f"{classes.min()} to {classes.max()}",
        )
    return Known(nodes, classes, judging, n_classes)


def _write(
    cluster: Cluster, graph: ShardedGraph, context: _ClusterContext, found: Correction, out: Path
) -> None:
    """Features, what was decided and what is answered, in shards as those of the features."""
    stage("writing the features")
    decision, steered = found.decision, found.steered
    kept = found.guard.kept
    answers = steered.answer if kept and steered is not None else cluster.tensor(context.answers)
    made = cluster.folder()
    arrays: dict[str, Any] = {"x": found.features if kept else context.x, "answers": answers}
    if decision is not None:
        arrays["posterior"] = cluster.tensor(decision.posterior)  # type: ignore[arg-type]
    bounds = graph.x.bounds
    spans = [(i, bounds[i], bounds[i + 1]) for i in range(len(bounds) - 1)]
    for name, values in arrays.items():
        (made / name).mkdir()
        cluster.each(partial(_write_shard, values, made / name, cluster.block), spans)
    for name in arrays:
        (made / name).replace(out / name)


def _write_shard(values: Lazy, folder: Path, block_rows: int, span: tuple[int, int, int]) -> None:
    """One block after the other, so that a shard may be larger than a worker's memory."""
    number, first, last = span
    probe = values.rows(slice(first, first + 1)).numpy()
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        shape = (last - first, *probe.shape[1:])
        header = {"descr": probe.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for rows in row_blocks(last, block_rows, first):
            file.write(np.ascontiguousarray(values.rows(rows).numpy()).data)
    Path(file.name).replace(folder / f"{number:05d}.npy")


def _result(cluster: Cluster, out: Path, found: Correction, seconds: float) -> ClusterFit:
    decision, steered = found.decision, found.steered
    return ClusterFit(
        out=out,
        guard=found.guard,
        weights={} if decision is None else decision.weights,
        fall=() if steered is None else steered.fall,
        agreement=None if steered is None else steered.agreement,
        n_nodes=len(cluster),
        parts=cluster.n_parts,
        tasks=cluster.tasks,
        seconds=seconds,
    )
