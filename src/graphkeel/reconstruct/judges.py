"""Where held-back labels come from: validation nodes, or, without any, the known labels by cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphkeel.reconstruct.candidates import Builder, Candidate
from graphkeel.reconstruct.guard import FEWEST, Judge, Trial
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.scene import Scene

FOLDS = 5


class ValidationJudge:
    """Judges on validation nodes, whose labels enter no candidate."""

    source = "validation labels"

    def __init__(self, builder: Builder, validation: Labels) -> None:
        self.builder, self.validation = builder, validation
        self.untouched = builder.scene.logits.argmax(dim=1)

    def try_out(self, members: Sequence[Candidate]) -> Trial:
        predicted = _predict(self.builder, members)
        correct = predicted[self.validation.nodes] == self.validation.classes
        return Trial(correct, int((predicted != self.untouched).sum()))


class CrossFitJudge:
    """Judges on known labels: each fold is predicted by candidates made from the other folds' labels."""

    def __init__(self, scene: Scene, labels: Labels, judged: Tensor, source: str, seed: int) -> None:
        self.scene, self.labels, self.source = scene, labels, source
        generator = torch.Generator().manual_seed(seed)
        shuffled = judged[torch.randperm(len(judged), generator=generator)]
        self.folds = [fold for fold in shuffled.chunk(FOLDS) if len(fold)]
        self.builders = [Builder(scene, labels.without(fold)) for fold in self.folds]
        self.untouched = scene.logits.argmax(dim=1)

    def try_out(self, members: Sequence[Candidate]) -> Trial:
        parts, changed = [torch.zeros(0, dtype=torch.bool)], 0
        for fold, builder in zip(self.folds, self.builders, strict=True):
            predicted = _predict(builder, members)
            parts.append(predicted[self.labels.nodes[fold]] == self.labels.classes[fold])
            changed += int((predicted != self.untouched).sum())
        return Trial(torch.cat(parts), changed)


def choose_judge(builder: Builder, validation: Labels, trained_on: Tensor, seed: int) -> Judge:
    """Validation labels where there are any; else known labels, those the model was not trained on if possible.

    Args:
        trained_on: bool mask over the nodes: the labels that the model has seen in training.
    """
    if len(validation):
        return ValidationJudge(builder, validation)
    labels = builder.labels
    fresh = (~trained_on[labels.nodes]).nonzero().flatten()
    if len(fresh) >= FEWEST:
        return CrossFitJudge(builder.scene, labels, fresh, "fed-back labels, cross-fitted", seed)
    every = torch.arange(len(labels))
    source = "training labels, cross-fitted (the model was trained on them, which favours leaving it alone)"
    return CrossFitJudge(builder.scene, labels, every, source, seed)


def _predict(builder: Builder, members: Sequence[Candidate]) -> Tensor:
    if not members:
        return builder.scene.logits.argmax(dim=1)
    return builder.scene.ask(builder.features(members)).argmax(dim=1)
