"""A case: source and target in one feature space, the model trained on the source, and the labels
that are known on the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphkeel.core.digests import json_sha256
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.names import check_name
from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.graph.datasets.registry import assemble
from graphkeel.graph.features import Features, FittedPca, dense, row_normalise
from graphkeel.graph.labels import checked_labels
from graphkeel.graph.splits import Split, make_split
from graphkeel.label.files import read_labels
from graphkeel.models.frozen import FrozenModel
from graphkeel.runs.run import model_of
from graphkeel.runs.specs import AdaptSpec


@dataclass(frozen=True, eq=False)
class Case:
    """The input of every method."""

    frozen: FrozenModel  # the model, trained on the source
    source: GraphTask  # with its split
    target: GraphTask  # with the known labels and no others; its masks select nothing
    nodes: Tensor  # ids of the target's labelled nodes, int64, shape (L,)
    seed: int  # of everything random


@dataclass(frozen=True, eq=False)
class ScoredCase:
    """A case, and what only the scoring may see: the target's labels, and which nodes count."""

    case: Case
    labels: Tensor  # int64, shape (N,)
    scored: Tensor  # bool, shape (N,)
    base: Tensor  # scores of the untouched model on the target, shape (N, n_classes)


def make_case(spec: AdaptSpec, seed: int) -> ScoredCase:
    source, target, frozen, base = _trained(spec.before_labels(), seed)
    nodes, classes, unscored = _known(spec, target, seed)
    y = torch.full_like(target.y, UNLABELLED)
    y[nodes] = classes
    scored = target.y != UNLABELLED
    scored[nodes] = False
    scored[unscored] = False
    if not scored.any():
        raise ConfigError(
            "no labelled node of the target is left to score on",
            got=f"{len(nodes)} labels in use, {target.n_nodes} nodes",
            fix="Use fewer target labels; a graph without any label is for Reconstructor.adapt.",
        )
    hidden = replace(target, y=y)
    return ScoredCase(Case(frozen, source, hidden, nodes, seed), target.y, scored, base)


@lru_cache(maxsize=2)
def _trained(spec: AdaptSpec, seed: int) -> tuple[GraphTask, GraphTask, FrozenModel, Tensor]:
    source, target = tasks(spec, seed)
    frozen = FrozenModel(model_of(spec, source, seed), n_classes=source.n_classes)
    return source, target, frozen, frozen(target.x, target.edge_index)


def tasks(spec: AdaptSpec, seed: int) -> tuple[GraphTask, GraphTask]:
    """Source with its split and target without one, in the source's feature space."""
    source = spec.graph(spec.source)
    target = spec.graph(spec.target)
    if source.x.shape[1] != target.x.shape[1]:
        raise DataError(
            "source and target must have the same features",
            got=f"{source.x.shape[1]} and {target.x.shape[1]} columns",
        )
    n_classes = max(source.n_classes, target.n_classes)
    source_x, target_x = _features(source, target, spec.features, spec.components)
    nobody = np.empty(0, dtype=np.int64)
    return (
        assemble(source, _split(source, spec.split, seed), source_x, n_classes),
        assemble(target, Split(nobody, nobody, nobody), target_x, n_classes),
    )


def data_hash(spec: AdaptSpec, seed: int) -> str:
    """SHA-256 of source, target and the file of labels, where there is one."""
    source, target = tasks(spec, seed)
    parts = [source.hash, target.hash]
    if isinstance(spec.target_labels, str):
        batch = read_labels(Path(spec.target_labels))
        parts.append(json_sha256([batch.nodes.tolist(), batch.labels.tolist()]))
    return json_sha256(parts)


@lru_cache(maxsize=1)  # dense, so half a gigabyte for two graphs of words
def _features(
    source: RawGraph, target: RawGraph, kind: str, components: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Both graphs' features; what is fitted is fitted on the source and travels."""
    check_name("features", kind, ("auto", "raw", "rownorm"))
    both = [_compact(graph.x) for graph in (source, target)]
    if kind == "rownorm":
        both = [row_normalise(x) for x in both]
    if kind == "auto" and both[0].shape[1] > components:
        fitted = FittedPca.fit(both[0], components)
        return fitted.transform(both[0]), fitted.transform(both[1])
    return dense(both[0]), dense(both[1])


def _compact(x: Features, share: float = 0.1) -> Features:
    """Words are mostly zeros: a sparse matrix of them is many times faster to work with."""
    if sparse.issparse(x) or np.count_nonzero(x) > share * x.size:
        return x
    return sparse.csr_matrix(x)


def _split(graph: RawGraph, kind: str, seed: int, trained_share: float = 0.8) -> Split:
    if kind != "most":
        return make_split(graph, kind, seed)
    known = np.flatnonzero(graph.y != UNLABELLED)
    order = np.random.default_rng([seed, 4]).permutation(known)
    n_train = int(trained_share * len(order))
    return Split(order[:n_train], order[n_train:], order[:0])


def _known(spec: AdaptSpec, target: GraphTask, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """(labelled nodes, their classes, nodes of the same draw that are not scored)."""
    labelled = (target.y != UNLABELLED).nonzero().flatten()
    order = np.random.default_rng([seed, 5]).permutation(len(labelled))
    drawn = labelled[torch.from_numpy(order)]
    if isinstance(spec.target_labels, int):
        if spec.target_labels >= len(labelled) > 0:
            raise ConfigError(
                f"the target has {len(labelled)} labelled nodes, and some must stay to score on",
                got=spec.target_labels,
            )
        nodes = drawn[: spec.target_labels]
        return nodes, target.y[nodes], drawn[: spec.reserve]
    batch = read_labels(Path(spec.target_labels))
    nodes, classes = checked_labels(batch.nodes, batch.labels, target.n_nodes, target.n_classes)
    if len(nodes.unique()) != len(nodes):
        raise DataError("the labels name a node twice", fix="Keep one line a node.")
    return nodes, classes, drawn[: spec.reserve]
