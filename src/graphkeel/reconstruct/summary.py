"""Summary of the graph a model was trained on: how sure the rule was there without labels, and how
right. It holds no feature, label or edge, so it may be passed on where the graph may not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphkeel.core.errors import DataError
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import Rule
from graphkeel.reconstruct.decide import Known, decide


@dataclass(frozen=True)
class SourceSummary:
    """Facts of a source graph.

    Attributes:
        n_features, n_classes: d and C.
        n_labels: that the rest rests on; the model was not trained on them.
        accuracy: percent of them right by the rule, all labels hidden from it.
        confidence: percent that the rule itself expected.
    """

    n_features: int
    n_classes: int
    n_labels: int = 0
    accuracy: float | None = None
    confidence: float | None = None

    @property
    def correction(self) -> float:
        """Points by which the rule was too modest; 0 where no label said so."""
        if self.accuracy is None or self.confidence is None:
            return 0.0
        return self.accuracy - self.confidence

    def check(self, context: Context) -> None:
        """Refuse a target whose classes or features are others."""
        if self.n_classes != context.n_classes:
            raise DataError(
                f"the source has {self.n_classes} classes, the model answers with another number",
                got=context.n_classes,
            )
        if context.x.shape[1] != self.n_features:
            raise DataError(
                f"the target must have the source's {self.n_features} features",
                got=int(context.x.shape[1]),
                fix="Prepare them in the same way: the same words, the same fitted PCA.",
            )


def summarise(context: Context, known: Known, rule: Rule) -> SourceSummary:
    """The rule on the source, as if no label of it were known, against the labels that the model
    was not trained on."""
    sizes = (int(context.x.shape[1]), context.n_classes)
    fresh = known.chosen(known.judging)
    if not len(fresh.nodes):
        return SourceSummary(*sizes)
    nobody = replace(known.chosen(np.zeros(len(known.nodes), bool)), cross_fitted=True)
    posterior = decide(context.scene, nobody, settings=rule.decide).posterior[fresh.nodes]
    right = posterior.argmax(axis=1) == fresh.classes
    return SourceSummary(
        *sizes,
        n_labels=len(right),
        accuracy=100.0 * float(right.mean()),
        confidence=100.0 * float(posterior.max(axis=1).mean()),
    )
