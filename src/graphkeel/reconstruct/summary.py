"""What is kept of the graph a model was trained on: class statistics and one judged trial.

No feature row and no edge of the source is in it, so it may leave the house where the graph may
not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphkeel.core.statistics import percent
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.reconstruct.candidates.builder import TRANSFER, Builder, Candidate
from graphkeel.reconstruct.candidates.evidence import ClassStatistics, class_statistics
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.labels import Labels, balanced_gain


@dataclass(frozen=True)
class SourceTrial:
    """How the transfer candidates, averaged, did on labels of the source that nothing saw.

    Attributes:
        n_labels: how many labels judged.
        wins: right where the untouched model is wrong.
        losses: wrong where the untouched model is right.
        untouched: percent right, untouched.
        balanced_gain: points of class-balanced accuracy gained.
        agreement: of neighbours' predicted classes at the source, beyond chance.
    """

    n_labels: int
    wins: int
    losses: int
    untouched: float
    balanced_gain: float
    agreement: float


@dataclass(frozen=True)
class SourceSummary:
    """Statistics of a source graph.

    Attributes:
        statistics: of its labelled nodes' smoothed features.
        centre: float32, shape (d,), and
        directions: float32, shape (d, k): how wide features are reduced; both empty where not.
        trial: how the candidates did at the source; None where it had no label to judge by.
    """

    statistics: ClassStatistics
    centre: Tensor
    directions: Tensor
    trial: SourceTrial | None

    def smoothed(self, x: Tensor, propagator: Propagator) -> Tensor:
        """Features of another graph as the statistics were taken.

        Args:
            x: shape (N, d).
            propagator: of that graph.
        """
        reduced = (x - self.centre) @ self.directions if len(self.centre) else x
        return propagator.smooth(reduced)

    def tensors(self) -> dict[str, Tensor]:
        """What `save` writes as safetensors."""
        return {
            "source_means": self.statistics.means,
            "source_covariance": self.statistics.covariance,
            "source_shares": self.statistics.shares,
            "source_centre": self.centre,
            "source_directions": self.directions,
        }

    def facts(self) -> dict[str, Any]:
        """What `save` writes as JSON."""
        return {"trial": None if self.trial is None else dict(self.trial.__dict__)}

    @classmethod
    def restored(cls, tensors: dict[str, Tensor], facts: dict[str, Any]) -> SourceSummary:
        """The summary from what `tensors` and `facts` gave.

        Args:
            tensors: by name.
            facts: JSON values.
        """
        statistics = ClassStatistics(
            tensors["source_means"], tensors["source_covariance"], tensors["source_shares"]
        )
        n_classes, width = statistics.means.shape
        shapes = (statistics.covariance.shape, statistics.shares.shape)
        if shapes != ((width, width), (n_classes,)):
            raise ValueError(f"statistics of shapes {shapes} for {n_classes} × {width} means")
        trial = None if facts["trial"] is None else SourceTrial(**facts["trial"])
        return cls(statistics, tensors["source_centre"], tensors["source_directions"], trial)


def edge_agreement(classes: Tensor, edge_index: Tensor, n_classes: int) -> float:
    """How much more often than by chance neighbours have the same class; 1 where always.

    Args:
        classes: predicted, int64, shape (N,).
        edge_index: int64, shape (2, E); loops are left out.
        n_classes: how many classes there are.
    """
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    if not len(source):
        return 0.0
    same = float((classes[source] == classes[target]).float().mean())
    ends = torch.bincount(classes[torch.cat([source, target])], minlength=n_classes).double()
    chance = float(((ends / ends.sum()) ** 2).sum())
    return (same - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def summarise(context: Context, train: Labels, validation: Labels) -> SourceSummary | None:
    """The summary of a graph; None where it has no label.

    Args:
        context: the model on the source graph.
        train: labels the model was trained on.
        validation: other labels of the source; they judge, then join the statistics.
    """
    known = train.with_more(validation.nodes, validation.classes)
    if not len(known):
        return None
    trial = None
    if len(train) and len(validation):
        trial = _trial(context, _summary(context, train, None), validation)
    return _summary(context, known, trial)


def _summary(context: Context, labels: Labels, trial: SourceTrial | None) -> SourceSummary:
    features = context.smoothed[labels.nodes]
    statistics = class_statistics(features, labels.one_hot())
    centre, directions = context.reduction or (torch.zeros(0), torch.zeros(0, 0))
    return SourceSummary(statistics, centre.clone(), directions.clone(), trial)


def _trial(context: Context, summary: SourceSummary, validation: Labels) -> SourceTrial:
    """The transfer candidates on the source itself, as if it were a target without labels."""
    asked = Context(
        context.frozen,
        context.x,
        context.edge_index,
        model_kwargs=context.model_kwargs,
        controller=context.controller,
        seed=context.seed,
        source=summary,
    )
    members: Sequence[Candidate] = TRANSFER
    after = Builder(asked, validation.none()).predict(members)[validation.nodes]
    untouched = context.logits.argmax(dim=1)
    before = untouched[validation.nodes]
    right_before = before == validation.classes
    right_after = after == validation.classes
    return SourceTrial(
        n_labels=len(validation),
        wins=int((right_after & ~right_before).sum()),
        losses=int((right_before & ~right_after).sum()),
        untouched=percent(right_before),
        balanced_gain=balanced_gain(right_after, right_before, validation.classes),
        agreement=edge_agreement(untouched, context.edge_index, context.n_classes),
    )
