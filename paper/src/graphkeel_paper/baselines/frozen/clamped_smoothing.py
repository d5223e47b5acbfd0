"""Smoothing with clamped labels: the model's probabilities, known labels set right, spread by
personalised PageRank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.labels import known_labels
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel_paper.baselines.rival import Candidate, Rival, clamped, scored


@dataclass(frozen=True)
class ClampedSmoothing(Rival):
    """Several teleports, each with so many steps."""

    name = "smooth"
    teleports: tuple[float, ...] = (0.1, 0.05, 0.2)
    steps: int = 50

    def candidates(
        self, frozen: FrozenModel, task: GraphTask, labelled: Tensor, seed: int
    ) -> Iterator[Candidate]:
        beliefs = frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        start = clamped(beliefs, known_labels(task, labelled))
        propagator = Propagator(task.edge_index, task.n_nodes)
        for teleport in self.teleports:
            yield scored({"teleport": teleport}, propagator.smooth(start, teleport, self.steps))
