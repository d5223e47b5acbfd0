"""Personalised PageRank of known labels, and of the model's probabilities with them set right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from graphkeel.graph.labels import known_labels
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
