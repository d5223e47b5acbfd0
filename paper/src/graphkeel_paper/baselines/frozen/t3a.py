"""T3A (Iwasawa & Matsuo 2021): class templates rebuilt from the test embeddings the model is surest
of; no labels, unless asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.graph.labels import Labels, known_labels
from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.embeddings import Embedding, classified_embedding
from graphkeel_paper.baselines.rival import Candidate, Rival, scored


@dataclass(frozen=True)
class T3A(Rival):
    """Templates of as many embeddings per class as `supports` says; None keeps all. With `known`,
    labelled nodes stand in the templates of their own classes, before all others."""

    supports: tuple[int | None, ...] = (None, 1, 5, 20, 50, 100)
    known: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "t3a-known" if self.known else "t3a"

    @property
    def uses_labels(self) -> bool:  # type: ignore[override]
        return self.known

    def candidates(self, given: Given) -> Iterator[Candidate]:
        embedding = classified_embedding(given.frozen, given.task)
        known = known_labels(given.task, given.labelled if self.known else given.labelled[:0])
        for supports in self.supports:
            yield scored({"supports": supports}, template_scores(embedding, supports, known))


def template_scores(
    embedding: Embedding, supports: int | None, known: Labels | None = None
) -> Tensor:
    """Scores against templates: the class's weight and its surest nodes, as unit vectors,
    summed."""
    weights = torch.nn.functional.normalize(embedding.weights, dim=1)
    nodes = torch.nn.functional.normalize(embedding.nodes, dim=1)
    beliefs = embedding.logits.softmax(dim=-1)
    entropy = -(beliefs * beliefs.clamp_min(1e-30).log()).sum(dim=1)
    predicted = beliefs.argmax(dim=1)
    if known is not None and len(known):
        predicted[known.nodes] = known.classes
        entropy[known.nodes] -= math.log(len(weights))  # before all others
    templates = []
    for label, weight in enumerate(weights):
        members = (predicted == label).nonzero().flatten()
        surest = members[entropy[members].argsort()][:supports]
        templates.append(weight + nodes[surest].sum(dim=0))
    return nodes @ torch.nn.functional.normalize(torch.stack(templates), dim=1).T
