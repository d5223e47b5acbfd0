"""Propagation along the edges: known labels, the model's probabilities with them set right, and
the error at labelled nodes (Correct & Smooth)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphkeel.graph.labels import Labels, known_labels
from graphkeel.graph.propagate import neighbours
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.rival import Candidate, Rival, clamped, left_alone, scored


@dataclass(frozen=True)
class LabelPropagation(Rival):
    """Zhou et al. 2004: Y ← αŜY + (1−α)Y₀ for several α; the model is not asked at all."""

    name = "lp"
    alphas: tuple[float, ...] = (0.9, 0.5, 0.8, 0.95, 0.99)
    steps: int = 50

    def candidates(self, given: Given) -> Iterator[Candidate]:
        task = given.task
        if not len(given.labelled):
            yield left_alone("there is no label to spread")
            return
        nothing = torch.zeros(task.n_nodes, task.n_classes)
        known = clamped(nothing, known_labels(task, given.labelled))
        propagator = Propagator(task.edge_index, task.n_nodes)
        for alpha in self.alphas:
            yield scored({"alpha": alpha}, propagator.smooth(known, 1.0 - alpha, self.steps))


@dataclass(frozen=True)
class ClampedSmoothing(Rival):
    """The model's probabilities, known labels clamped, with several teleports."""

    name = "smooth"
    teleports: tuple[float, ...] = (0.1, 0.05, 0.2)
    steps: int = 50

    def candidates(self, given: Given) -> Iterator[Candidate]:
        task = given.task
        beliefs = given.frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        start = clamped(beliefs, known_labels(task, given.labelled))
        propagator = Propagator(task.edge_index, task.n_nodes)
        for teleport in self.teleports:
            yield scored({"teleport": teleport}, propagator.smooth(start, teleport, self.steps))


# ---- Correct & Smooth (Huang et al. 2021): spread the error seen at labelled nodes, take it out,
# spread the result.
#
# The authors' normalisations (D^-½AD^-½, D^-1A, AD^-1, all without self-loops), their clamping,
# and their three forms: the error scaled node by node, scaled by a constant, and smoothing alone.
# Seventeen settings.


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

    def candidates(self, given: Given) -> Iterator[Candidate]:
        task = given.task
        beliefs = given.frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        labels = known_labels(task, given.labelled)
        norms = normalisations(task.edge_index, task.n_nodes)
        for setting in SETTINGS:
            start = clamped(correct(beliefs, labels, norms, setting), labels)
            scores = spread(norms[setting.second], start, setting.smooth, _unit_interval)
            yield scored(setting._asdict(), scores)


def normalisations(edge_index: Tensor, n_nodes: int) -> dict[str, sparse.csr_matrix]:
    """The authors' three, without self-loops; a node without edges keeps an empty row."""
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


def correct(
    beliefs: Tensor, labels: Labels, norms: Mapping[str, sparse.csr_matrix], setting: Setting
) -> Tensor:
    """Beliefs plus the spread error."""
    if setting.scale == 0.0 or not len(labels):
        return beliefs
    seen = labels.one_hot() - beliefs[labels.nodes]
    error = torch.zeros_like(beliefs)
    error[labels.nodes] = seen

    def keep_seen(values: Tensor) -> Tensor:
        values[labels.nodes] = seen
        return values

    by_node = setting.scale is None
    after = _unit_ball if by_node else keep_seen
    reached = spread(norms[setting.first], error, setting.correct, after)
    if by_node:
        return _scaled_by_node(beliefs, reached, float(error.abs().sum()) / len(labels))
    return beliefs + (setting.scale or 0.0) * reached


def spread(
    matrix: sparse.csr_matrix,
    start: Tensor,
    alpha: float,
    after: Callable[[Tensor], Tensor],
    steps: int = 50,
) -> Tensor:
    """Z ← after(α·A·Z + (1−α)·start), `steps` times, from the start (N, n_classes)."""
    kept = (1.0 - alpha) * start
    result = start
    for _ in range(steps):
        result = after(alpha * torch.from_numpy(matrix @ result.numpy()) + kept)
    return result


def _scaled_by_node(
    beliefs: Tensor, reached: Tensor, typical: float, largest: float = 1000.0
) -> Tensor:
    scale = typical / reached.abs().sum(dim=1, keepdim=True)
    scale[~torch.isfinite(scale) | (scale > largest)] = 1.0
    corrected = beliefs + scale * reached
    return torch.where(torch.isnan(corrected), beliefs, corrected)


def _unit_ball(values: Tensor) -> Tensor:
    return values.clamp(-1.0, 1.0)


def _unit_interval(values: Tensor) -> Tensor:
    return values.clamp(0.0, 1.0)
