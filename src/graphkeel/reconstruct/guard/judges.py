"""Where held-back labels come from: validation nodes, or, without any, the known labels by
cross-fitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from graphkeel.reconstruct.candidates.builder import Builder, Candidate
from graphkeel.reconstruct.guard.decision import MIN_LABELS, Evaluation, Judge
from graphkeel.reconstruct.labels import Labels
from graphkeel.reconstruct.large.linear import PropagatedRows
from graphkeel.reconstruct.large.local import LOCAL, LocalBuilder

FOLDS = 5


class Predictor(Protocol):
    """A builder, as judges see it."""

    def predict(self, members: Sequence[Candidate]) -> Tensor:
        """The class of every node, shape (N,).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """


Make = Callable[[Labels], Predictor]


class ValidationJudge:
    """Judges on validation nodes, whose labels enter no candidate."""

    source = "validation labels"

    def __init__(self, builder: Builder, validation: Labels) -> None:
        self.builder = builder
        self.validation = validation
        self.untouched = builder.context.logits.argmax(dim=1)

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        predicted = self.builder.predict(members)
        correct = predicted[self.validation.nodes] == self.validation.classes
        changed = int((predicted != self.untouched).sum())
        return Evaluation(correct, changed, self.validation.classes)


class CrossFitJudge:
    """Judges on known labels: each fold is predicted by candidates made from the other folds'
    labels."""

    def __init__(self, make: Make, labels: Labels, judged: Tensor, source: str, seed: int) -> None:
        self.labels = labels
        self.source = source
        generator = torch.Generator().manual_seed(seed)
        shuffled = judged[torch.randperm(len(judged), generator=generator)]
        self.folds = [fold for fold in shuffled.chunk(FOLDS) if len(fold)]
        self.classes = labels.classes[torch.cat([judged[:0], *self.folds])]
        self.builders = [make(labels.without(fold)) for fold in self.folds]
        self.untouched = self.builders[0].predict(()) if self.builders else judged

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        parts = [torch.zeros(0, dtype=torch.bool)]
        changed = 0
        for fold, builder in zip(self.folds, self.builders, strict=True):
            predicted = builder.predict(members)
            parts.append(predicted[self.labels.nodes[fold]] == self.labels.classes[fold])
            changed += int((predicted != self.untouched).sum())
        return Evaluation(torch.cat(parts), changed, self.classes)


class PropagatedRowsJudge:
    """Judges on validation nodes, looking at no others: for linear models on large graphs.

    The model is linear, so what the mean of several prototypes leads to is the mean of what they
    lead to."""

    source = ValidationJudge.source

    def __init__(self, builder: LocalBuilder, validation: Labels, rows: PropagatedRows) -> None:
        self.validation = validation
        self.untouched = builder.context.logits[validation.nodes].argmax(dim=1)
        carried = (builder.carried((one,), rows.looked_at) for one in LOCAL)
        self._logits = dict(zip(LOCAL, rows.each(carried), strict=True))

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        predicted = self.untouched
        if members:
            predicted = (
                torch.stack([self._logits[one] for one in members]).mean(dim=0).argmax(dim=1)
            )
        correct = predicted == self.validation.classes
        changed = int((predicted != self.untouched).sum())
        return Evaluation(correct, changed, self.validation.classes)


def choose_judge(builder: Builder, validation: Labels, trained_on: Tensor, seed: int) -> Judge:
    """Validation labels where there are any; else known labels, those the model was not trained on
    if possible.

    Args:
        trained_on: bool mask over the nodes: the labels that the model has seen in training.
    """
    if len(validation):
        return ValidationJudge(builder, validation)
    return cross_fit(
        lambda labels: Builder(builder.context, labels), builder.labels, trained_on, seed
    )


def cross_fit(make: Make, labels: Labels, trained_on: Tensor, seed: int) -> CrossFitJudge:
    """A judge where there is no validation label.

    Args:
        make: makes a builder from labels.
        labels: the labels to use.
        trained_on: bool, shape (N,): labels the model has seen in training.
        seed: of everything random.
    """
    fresh = (~trained_on[labels.nodes]).nonzero().flatten()
    if len(fresh) >= MIN_LABELS:
        return CrossFitJudge(
            make, labels, fresh, "labels the model was not trained on, cross-fitted", seed
        )
    every = torch.arange(len(labels))
    source = (
        "training labels, cross-fitted (the model was trained on them, which favours leaving it "
        "alone)"
    )
    return CrossFitJudge(make, labels, every, source, seed)
