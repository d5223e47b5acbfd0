"""Smoothing with clamped labels: the model's probabilities, known labels set right, spread by
personalised PageRank."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from graphkeel.graph import GraphTask
from graphkeel.graph.propagate.propagator import Propagator
from graphkeel.models.frozen import FrozenModel
from graphkeel.paper.baselines.tuning import Setting, best_on_validation
from graphkeel.reconstruct.labels import known_labels
from graphkeel.reconstruct.method import MethodResult, check_nodes

TELEPORTS = (0.1, 0.05, 0.2)
STEPS = 50


class ClampedSmoothing:
    name = "smooth"
    retrains = False

    def fit_predict(
        self,
        frozen: FrozenModel,
        task: GraphTask,
        labelled: Tensor,
        validation: Tensor,
        seed: int = 0,
    ) -> MethodResult:
        check_nodes(task, labelled, validation)
        beliefs = frozen.logits(task.x, task.edge_index).softmax(dim=-1)
        start = known_labels(task, labelled).clamp(beliefs)
        propagator = Propagator(task.edge_index, task.n_nodes)

        def tried() -> Iterator[tuple[Setting, Tensor]]:
            for teleport in TELEPORTS:
                yield {"teleport": teleport}, propagator.smooth(start, teleport, STEPS)

        return best_on_validation(tried(), task, validation)
