"""T3A (Iwasawa & Matsuo 2021): class templates rebuilt from the test embeddings the model is surest
of; no labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkeel.runs.method import Given
from graphkeel_paper.baselines.frozen.embeddings import Embedding, classified_embedding
from graphkeel_paper.baselines.rival import Candidate, Rival, scored


@dataclass(frozen=True)
class T3A(Rival):
    """Templates of as many embeddings per class as `supports` says; None keeps all."""

    name = "t3a"
    uses_labels = False
    supports: tuple[int | None, ...] = (None, 1, 5, 20, 50, 100)

    def candidates(self, given: Given) -> Iterator[Candidate]:
        embedding = classified_embedding(given.frozen, given.task)
        for supports in self.supports:
            yield scored({"supports": supports}, template_scores(embedding, supports))


def template_scores(embedding: Embedding, supports: int | None) -> Tensor:
    """Scores against templates: the class's weight and its surest nodes, as unit vectors,
    summed."""
    weights = torch.nn.functional.normalize(embedding.weights, dim=1)
    nodes = torch.nn.functional.normalize(embedding.nodes, dim=1)
    beliefs = embedding.logits.softmax(dim=-1)
    entropy = -(beliefs * beliefs.clamp_min(1e-30).log()).sum(dim=1)
    predicted = beliefs.argmax(dim=1)
    templates = []
    for label, weight in enumerate(weights):
        members = (predicted == label).nonzero().flatten()
        surest = members[entropy[members].argsort()][:supports]
        templates.append(weight + nodes[surest].sum(dim=0))
    return nodes @ torch.nn.functional.normalize(torch.stack(templates), dim=1).T
