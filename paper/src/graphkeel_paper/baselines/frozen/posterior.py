"""What `auto` decided, before it steers: the answers that the frozen model is then led to."""

from __future__ import annotations

from dataclasses import dataclass

from graphkeel.runs.method import MethodResult
from graphkeel.runs.methods import OURS
from graphkeel_paper.baselines.rival import Baseline, Given
from graphkeel_paper.baselines.training import as_split


@dataclass(frozen=True)
class PosteriorAlone(Baseline):
    """The posterior of `auto` itself, kept or not by its guard: what steering, and the test before
    it, cost or add."""

    name: str = "posterior-alone"
    retrains: bool = False

    def _fit_predict(self, given: Given) -> MethodResult:
        frozen, task, labelled = given.frozen, given.task, given.labelled
        auto = OURS["auto"]
        rec = auto.reconstructor(
            frozen.model,
            given.seed,
            risk=auto.risk,
            labels="train",
            return_type=frozen.return_type.value,
        )
        trained_on = task.train_mask[labelled]
        fresh = labelled[~trained_on]
        data = as_split(task, labelled[trained_on], given.validation).to_data()
        rec.fit(data, nodes=fresh, labels=task.y[fresh])
        return MethodResult(rec.posterior_, None, rec.guard_.to_dict())
