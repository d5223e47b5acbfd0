"""Readings of the paper's own row that might explain its published gain, each under a name of its
own.

The paper's words (class of a random training node, its training nodes replaced, C(h*) = e_c) are
the method `replace-one`. These rows change one thing each: the class is picked on validation; the
validation nodes of the class are replaced as well; the equilibrium is m·e_c with a larger m, fixed
or picked on validation. For an affine head every controller that reaches its target gives the same
predictions, so the closed-form anchors stand for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphkeel.graph.labels import Labels
from graphkeel.reconstruct.context import Context
from graphkeel.reconstruct.correction import replace
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.rival import drawn_class, percent_right


class _Try(NamedTuple):
    label: int
    strength: float
    features: Tensor
    scores: Tensor


@dataclass(frozen=True)
class PaperReading(CheckedMethod):
    """One class replaced by its anchor.

    Args:
        name: of the row.
        strengths: the values of m tried; validation picks among several.
        pick_class: try every class and let validation pick, instead of drawing a training node.
        with_validation: also replace the validation nodes of the class, by their true label.
    """

    needs_labels = True
    name: str
    strengths: tuple[float, ...] = (1.0,)
    pick_class: bool = False
    with_validation: bool = False

    def _fit_predict(self, given: Given) -> MethodResult:
        tried = list(self._tries(given))
        right = [percent_right(one.scores, given.task, given.validation) for one in tried]
        best = tried[max(range(len(tried)), key=right.__getitem__)]  # the first on ties
        decision = {
            "class": best.label,
            "strength": best.strength,
            "tried": len(tried),
            "picked_on_validation": len(tried) > 1,
            "validation_labels_replaced": self.with_validation,
        }
        return MethodResult(best.scores, best.features, decision)

    def _tries(self, given: Given) -> Iterator[_Try]:
        task, nodes = given.task, given.labelled
        context = Context(given.frozen, task.x, task.edge_index, seed=given.seed)
        if self.with_validation:
            nodes = torch.cat([nodes, given.validation])
        labels = Labels(nodes, task.y[nodes], task.n_classes)
        drawn = drawn_class(task, given.labelled, given.seed)
        for strength in self.strengths:
            for label in range(task.n_classes) if self.pick_class else (drawn,):
                features = replace(task.x, labels, context.anchors(strength).features, label)
                yield _Try(label, strength, features, context.logits_for(features))
