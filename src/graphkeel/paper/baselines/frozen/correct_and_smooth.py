"""Correct & Smooth (Huang et al. 2021): spread the error seen at labelled nodes, take it out,
spread the result.

The authors' normalisations (D^-½AD^-½, D^-1A, AD^-1, all without self-loops), their clamping, and
their three forms: the error scaled node by node, scaled by a constant, and smoothing alone.
Seventeen settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.propagate import neighbours
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.baselines.rival import Candidate, Rival, scored
from graphkeel.reconstruct.labels import Labels, known_labels

STEPS = 50
LARGEST_SCALE = 1000.0


class Setting(NamedTuple):
    """How far errors and results spread, over which normalisations, and how errors are scaled.

    `scale` None: node by node, so that each correction is as large as labelled errors are; 0: no
    correction at all."""

    correct: float
    smooth: float
    first: str = "DAD"
    second: str = "DAD"
    scale: float | None = None


_ALPHAS = ((0.979, 0.756), (0.87, 0.81), (0.98, 0.65))  # the authors' for MLP, plain and linear
_NORMS = (("DA", "AD"), ("AD", "DAD"), ("DAD", "DAD"))
SETTINGS = (
    *(Setting(*alphas, *norms) for norms in _NORMS for alphas in _ALPHAS),
    Setting(0.8, 0.8),
    Setting(1.0, 0.9, scale=20.0),
    Setting(1.0, 0.8, second="DA", scale=10.0),
    Setting(1.0, 0.9, scale=1.0),
    Setting(1.0, 0.8, scale=1.0),
    Setting(0.0, 0.8, scale=0.0),  # smoothing alone, as the authors do for GAT
    Setting(0.0, 0.9, scale=0.0),
    Setting(0.0, 0.5, scale=0.0),
)


class CorrectAndSmooth(Rival):
    name = "cs"

    def _candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]:
        beliefs = frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        labels = known_labels(task, labelled)
        norms = normalisations(task.edge_index, task.n_nodes)
        for setting in SETTINGS:
            corrected = correct(beliefs, labels, norms[setting.first], setting)
            start = labels.clamp(corrected)
            scores = spread(norms[setting.second], start, setting.smooth, _unit_interval)
            yield scored(setting._asdict(), scores)


def normalisations(edge_index: Tensor, n_nodes: int) -> dict[str, sparse.csr_matrix]:
    """The authors' three, without self-loops; a node without edges keeps an empty row.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
    """
    adjacency = neighbours(edge_index.numpy(), n_nodes).astype(np.float32)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    root = sparse.diags(np.sqrt(inverse).astype(np.float32))
    full = sparse.diags(inverse.astype(np.float32))
    return {
        "DAD": sparse.csr_matrix(root @ adjacency @ root),
        "DA": sparse.csr_matrix(full @ adjacency),
        "AD": sparse.csr_matrix(adjacency @ full),
    }


def spread(
    matrix: sparse.csr_matrix, start: Tensor, alpha: float, after: Callable[[Tensor], Tensor]
) -> Tensor:
    """Z ← after(α·A·Z + (1−α)·start), fifty times.

    Args:
        matrix: A, shape (N, N).
        start: shape (N, n_classes).
        alpha: how far it spreads.
        after: applied after every step.
    """
    result = start
    for _ in range(STEPS):
        stepped = torch.from_numpy(matrix @ result.numpy())
        result = after(alpha * stepped + (1.0 - alpha) * start)
    return result


def correct(beliefs: Tensor, labels: Labels, matrix: sparse.csr_matrix, setting: Setting) -> Tensor:
    """Beliefs plus the spread error.

    Args:
        beliefs: class probabilities, shape (N, n_classes).
        labels: the known ones.
        matrix: A, shape (N, N).
        setting: how far errors spread, and how they are scaled.
    """
    if setting.scale == 0.0 or not len(labels):
        return beliefs
    error = torch.zeros_like(beliefs)
    seen = labels.one_hot() - beliefs[labels.nodes]
    error[labels.nodes] = seen
    if setting.scale is not None:

        def keep_seen(values: Tensor) -> Tensor:
            values[labels.nodes] = seen
            return values

        return beliefs + setting.scale * spread(matrix, error, setting.correct, keep_seen)
    typical = float(error.abs().sum()) / len(labels)
    reached = spread(matrix, error, setting.correct, lambda values: values.clamp(-1.0, 1.0))
    scale = typical / reached.abs().sum(dim=1, keepdim=True)
    scale[~torch.isfinite(scale) | (scale > LARGEST_SCALE)] = 1.0
    corrected = beliefs + scale * reached
    return torch.where(torch.isnan(corrected), beliefs, corrected)


def _unit_interval(values: Tensor) -> Tensor:
    return values.clamp(0.0, 1.0)
