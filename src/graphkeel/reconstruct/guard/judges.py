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

    def scores(self, members: Sequence[Candidate]) -> Tensor:
        """The frozen model's logits of every node, shape (N, n_classes).

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """


Make = Callable[[Labels], Predictor]


class ValidationJudge:
    """Judges on validation nodes, whose labels enter no candidate.

    Args:
        builder: makes the candidates.
        validation: the labels to judge by.
    """

    source = "validation labels"
    served = 1.0  # they judge and never serve

    def __init__(self, builder: Builder, validation: Labels) -> None:
        self.builder = builder
        self.validation = validation
        self.untouched = builder.context.logits.argmax(dim=1)
        self.folds = shuffled_folds(len(validation), 0)

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        scores = self.builder.scores(members)
        predicted = scores.argmax(dim=1)
        correct = predicted[self.validation.nodes] == self.validation.classes
        changed = int((predicted != self.untouched).sum())
        return Evaluation(correct, changed, self.validation.classes, scores[self.validation.nodes])


class CrossFitJudge:
    """Judges on known labels: each fold is predicted by candidates made from the other folds'
    labels.

    Args:
        make: makes a builder from labels.
        labels: all that are known.
        judged: positions among them that judge, int64, shape (k,).
        source: what to call them.
        seed: of the folds.
    """

    def __init__(self, make: Make, labels: Labels, judged: Tensor, source: str, seed: int) -> None:
        self.labels = labels
        self.source = source
        parts = [judged[fold] for fold in shuffled_folds(len(judged), seed)]
        order = torch.cat([judged[:0], *parts])
        self.nodes = labels.nodes[order]
        self.classes = labels.classes[order]
        # labels are judged in the order of the folds, so these are ranges
        self.folds = list(torch.arange(len(order)).split([len(part) for part in parts]))
        self.served = 1.0 - len(judged) / (len(parts) * len(labels)) if parts else 1.0
        self.builders = [make(labels.without(part)) for part in parts]
        self.untouched = self.builders[0].scores(()).argmax(dim=1) if self.builders else judged

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        parts = [torch.zeros(0, self.labels.n_classes)]
        changed = 0
        for fold, builder in zip(self.folds, self.builders, strict=True):
            scores = builder.scores(members)
            parts.append(scores[self.nodes[fold]])
            changed += int((scores.argmax(dim=1) != self.untouched).sum())
        judged = torch.cat(parts)
        return Evaluation(judged.argmax(dim=1) == self.classes, changed, self.classes, judged)


class PropagatedRowsJudge:
    """Judges on validation nodes, looking at no others: for linear models on large graphs.

    The model is linear, so what the mean of several prototypes leads to is the mean of what they
    lead to."""

    source = ValidationJudge.source
    served = ValidationJudge.served

    def __init__(self, builder: LocalBuilder, validation: Labels, rows: PropagatedRows) -> None:
        self.validation = validation
        self.folds = shuffled_folds(len(validation), 0)
        self._base = builder.context.logits[validation.nodes]
        carried = (builder.carried((one,), rows.looked_at) for one in LOCAL)
        self._logits = dict(zip(LOCAL, rows.each(carried), strict=True))

    def evaluate(self, members: Sequence[Candidate]) -> Evaluation:
        """How the candidates do on the held-back labels.

        Args:
            members: the candidates; several are averaged, none means the untouched features.
        """
        scores = self._base
        if members:
            scores = torch.stack([self._logits[one] for one in members]).mean(dim=0)
        predicted = scores.argmax(dim=1)
        correct = predicted == self.validation.classes
        changed = int((predicted != self._base.argmax(dim=1)).sum())
        return Evaluation(correct, changed, self.validation.classes, scores)


def shuffled_folds(n_labels: int, seed: int) -> list[Tensor]:
    """Positions 0..n_labels-1 in a random order, in up to `FOLDS` parts.

    Args:
        n_labels: how many labels there are.
        seed: of the order.
    """
    generator = torch.Generator().manual_seed(int(seed))
    order = torch.randperm(n_labels, generator=generator)
    return [fold for fold in order.chunk(FOLDS) if len(fold)]


def choose_judge(
    builder: Builder,
    validation: Labels,
    trained_on: Tensor,
    seed: int,
    make: Make | None = None,
) -> Judge:
    """Validation labels where there are any; else known labels, those the model was not trained on
    if possible.

    Args:
        builder: makes the candidates.
        validation: the labels to judge by.
        seed: of the folds.
        trained_on: bool mask over the nodes: the labels that the model has seen in training.
        make: makes a builder of the same kind from other labels.
    """
    if len(validation):
        return ValidationJudge(builder, validation)
    again = make or (lambda labels: Builder(builder.context, labels))
    return cross_fit(again, builder.labels, trained_on, seed)


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
