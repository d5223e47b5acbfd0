"""Correct & Smooth (Huang et al. 2021): spread the error seen at labelled nodes, take it out,
spread the result."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.baselines.rival import Candidate, Rival, scored
from graphkeel.reconstruct.labels import Labels, known_labels

# α of the correcting and of the smoothing step: three published choices and a mild one
ALPHAS = ((0.979, 0.756), (0.87, 0.81), (0.98, 0.65), (0.8, 0.8))
STEPS = 50
LARGEST_SCALE = 1000.0


class CorrectAndSmooth(Rival):
    name = "cs"

    def _candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]:
        beliefs = frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        labels = known_labels(task, labelled)
        propagator = Propagator(task.edge_index, task.n_nodes)
        for correct_alpha, smooth_alpha in ALPHAS:
            corrected = correct(beliefs, labels, propagator, correct_alpha)
            scores = propagator.smooth(labels.clamp(corrected), 1.0 - smooth_alpha, STEPS)
            yield scored({"correct": correct_alpha, "smooth": smooth_alpha}, scores)


def correct(beliefs: Tensor, labels: Labels, propagator: Propagator, alpha: float) -> Tensor:
    """Beliefs plus the spread error, scaled so that each node's correction is as large as labelled
    errors are.

    Args:
        beliefs: class probabilities, shape (N, n_classes).
        labels: the known ones.
        propagator: of the graph.
        alpha: how far errors spread.
    """
    error = torch.zeros_like(beliefs)
    error[labels.nodes] = labels.one_hot() - beliefs[labels.nodes]
    typical = float(error.abs().sum()) / max(1, len(labels))
    spread = propagator.smooth(error, 1.0 - alpha, STEPS)
    scale = typical / spread.abs().sum(dim=1, keepdim=True)
    scale[~torch.isfinite(scale) | (scale > LARGEST_SCALE)] = 1.0
    corrected = beliefs + scale * spread
    return torch.where(torch.isnan(corrected), beliefs, corrected)
