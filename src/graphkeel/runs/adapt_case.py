"""A case: source and target in one feature space, the model trained on the source, and the labels
that are known on the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.names import check_name
from graphkeel.graph import UNLABELLED, GraphTask
from graphkeel.graph.datasets.raw import RawGraph
from graphkeel.graph.features import Features, FittedPca, dense, row_normalise
from graphkeel.graph.splits import make_split
from graphkeel.models import train_model
from graphkeel.models.frozen import FrozenModel
from graphkeel.models.own_model import OWN
from graphkeel.runs.feedback import read_labels
from graphkeel.runs.run import own_model_of
from graphkeel.runs.specs import AdaptSpec
from graphkeel.store.job import sha256_of


@dataclass(frozen=True)
class _Settings:
    """How a case is made.

    Attributes:
        trained_share: of the source's labelled nodes, in the split `most`.
        sparse_below: share of entries that are not zero, below which a sparse matrix is faster.
    """

    trained_share: float = 0.8
    sparse_below: float = 0.1


_SETTINGS = _Settings()


@dataclass(frozen=True, eq=False)
class Case:
    """The input of every method.

    Attributes:
        frozen: the model, trained on the source.
        source: with its split.
        target: with the known labels and no others; its masks select nothing.
        nodes: ids of the target's labelled nodes, int64, shape (L,).
        seed: of everything random.
    """

    frozen: FrozenModel
    source: GraphTask
    target: GraphTask
    nodes: Tensor
    seed: int

    def union(self) -> tuple[GraphTask, Tensor]:
        """Source and target as one graph of two parts, and the ids of the target's nodes in it.

        The source's training nodes are its training set."""
        source, target = self.source, self.target
        shift = source.n_nodes
        nobody = torch.zeros(target.n_nodes, dtype=torch.bool)
        known = torch.where(
            source.train_mask | source.val_mask, source.y, torch.full_like(source.y, UNLABELLED)
        )
        task = GraphTask(
            x=torch.cat([source.x, target.x]),
            edge_index=torch.cat([source.edge_index, target.edge_index + shift], dim=1),
            y=torch.cat([known, target.y]),
            train_mask=torch.cat([source.train_mask, nobody]),
            val_mask=torch.cat([torch.zeros_like(source.val_mask), nobody]),
            test_mask=torch.cat([torch.zeros_like(source.test_mask), nobody]),
            n_classes=source.n_classes,
        )
        return task, torch.arange(shift, shift + target.n_nodes)


@dataclass(frozen=True, eq=False)
class ScoredCase:
    """A case, and what only the scoring may see: the target's labels, and which nodes count."""

    case: Case
    labels: Tensor  # int64, shape (N,)
    scored: Tensor  # bool, shape (N,)
    base: Tensor  # scores of the untouched model on the target, shape (N, n_classes)


def make_case(spec: AdaptSpec, seed: int) -> ScoredCase:
    """Source, target, model and labels of one seed."""
    trained = replace(spec, method="none", keep="model", target_labels=0, reserve=0)
    source, target, frozen, base = _trained(sha256_of(asdict(trained)), _Hidden(trained), seed)
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


class _Hidden:
    """Carries a specification past `lru_cache`, which goes by the key beside it."""

    def __init__(self, spec: AdaptSpec) -> None:
        self.spec = spec

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hidden)


@lru_cache(maxsize=2)
def _trained(
    key: str,  # noqa: ARG001 - what the cache goes by
    hidden: _Hidden,
    seed: int,
) -> tuple[GraphTask, GraphTask, FrozenModel, Tensor]:
    spec = hidden.spec
    source, target = tasks(spec, seed)
    if spec.model == OWN:
        model = own_model_of(spec.model_options, source)
    else:
        model = train_model(spec.model, source, seed=seed, **spec.model_options)
    frozen = FrozenModel(model, n_classes=source.n_classes)
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
    masks = _split(source, spec.split, seed)
    nobody = torch.zeros(target.n_nodes, dtype=torch.bool)
    return (
        _task(source, source_x, masks, n_classes),
        _task(target, target_x, (nobody, nobody, nobody), n_classes),
    )


def data_hash(spec: AdaptSpec, seed: int) -> str:
    """SHA-256 of source, target and the file of labels, where there is one."""
    source, target = tasks(spec, seed)
    parts = [source.hash, target.hash]
    if isinstance(spec.target_labels, str):
        batch = read_labels(Path(spec.target_labels))
        parts.append(sha256_of([batch.nodes.tolist(), batch.labels.tolist()]))
    return sha256_of(parts)


@lru_cache(maxsize=4)
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


def _compact(x: Features) -> Features:
    """Words are mostly zeros: a sparse matrix of them is many times faster to work with."""
    if sparse.issparse(x) or np.count_nonzero(x) > _SETTINGS.sparse_below * x.size:
        return x
    return sparse.csr_matrix(x)


def _split(graph: RawGraph, kind: str, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    if kind == "most":
        known = np.flatnonzero(graph.y != UNLABELLED)
        order = np.random.default_rng([seed, 4]).permutation(known)
        n_train = int(_SETTINGS.trained_share * len(order))
        ids = (order[:n_train], order[n_train:], order[:0])
    else:
        split = make_split(graph, kind, seed)
        ids = (split.train, split.val, split.test)
    masks = []
    for part in ids:
        mask = torch.zeros(graph.n_nodes, dtype=torch.bool)
        mask[torch.from_numpy(part)] = True
        masks.append(mask)
    return masks[0], masks[1], masks[2]


def _task(
    graph: RawGraph,
    x: NDArray[np.float32],
    masks: tuple[Tensor, Tensor, Tensor],
    n_classes: int,
) -> GraphTask:
    return GraphTask(
        x=torch.from_numpy(np.ascontiguousarray(x)),
        edge_index=torch.from_numpy(graph.edge_index),
        y=torch.from_numpy(graph.y),
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
        n_classes=n_classes,
        name=graph.name,
    )


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
    _check_batch(batch.nodes, batch.labels, target)
    return batch.nodes, batch.labels, drawn[: spec.reserve]


def _check_batch(nodes: Tensor, labels: Tensor, target: GraphTask) -> None:
    if int(nodes.min()) < 0 or int(nodes.max()) >= target.n_nodes:
        raise DataError(
            f"the labels must name nodes in 0..{target.n_nodes - 1}",
            got=f"ids from {int(nodes.min())} to {int(nodes.max())}",
        )
    if int(labels.min()) < 0 or int(labels.max()) >= target.n_classes:
        raise DataError(
            f"the labels must lie in 0..{target.n_classes - 1}",
            got=f"from {int(labels.min())} to {int(labels.max())}",
        )
    if len(nodes.unique()) != len(nodes):
        raise DataError("the labels name a node twice", fix="Keep one line a node.")
