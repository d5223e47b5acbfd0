"""A controller as a method: find the anchors h*_c, write them over labelled nodes (Eq. 13), ask the
frozen model.

As in the paper, the class of a random training node is replaced; `classes="all"` replaces every
class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from graphkeel.control import LQR, MFAC, PID, Deadbeat, NeuralController, Regulation
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name
from graphkeel.models.head import extract_head
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel_paper.baselines.rival import drawn_class

CLASSICAL: dict[str, Any] = {  # each is a `Controller`
    "deadbeat": Deadbeat(),
    "lqr": LQR(),
    "pid": PID(),
    "mfac-blind": MFAC(initial="blind"),
    # Its error shrinks by a constant factor a step, nearly one for an ill-conditioned head: 200
    # steps leave 2e-3.
    "mfac-probed": MFAC(initial="probed", steps=2000),
}
NEURAL = {"neural": "anchored", "neural-paper": "paper"}  # the form of f and V that each trains
CONTROLLERS = (*NEURAL, *CLASSICAL)


@dataclass(frozen=True)
class ControllerMethod(CheckedMethod):
    """Replace the labelled nodes of one class (or of `all`) by the anchor that a controller finds
    for C(h*) = e_c."""

    needs_labels = True
    controller: str = "deadbeat"
    classes: str = "one"

    def __post_init__(self) -> None:
        check_name("the controller", self.controller, CONTROLLERS)
        if self.classes not in ("one", "all"):
            raise ConfigError("classes must be 'one' or 'all'", got=repr(self.classes))

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.controller}-{self.classes}"

    def _fit_predict(self, given: Given) -> MethodResult:
        task, labelled = given.task, given.labelled
        drawn = drawn_class(task, labelled, given.seed)
        chosen = [drawn] if self.classes == "one" else list(range(task.n_classes))
        found = self._regulate(given, chosen)
        features, labels = task.x.clone(), task.y[labelled]
        for label, (regulation, _) in zip(chosen, found, strict=True):
            features[labelled[labels == label]] = regulation.anchor
        return MethodResult(
            given.frozen(features, task.edge_index), features, self._decision(chosen, found)
        )

    def _regulate(self, given: Given, chosen: list[int]) -> list[tuple[Regulation, dict[str, Any]]]:
        head = extract_head(given.frozen.model, given.task.n_features)  # type: ignore[arg-type]
        targets = torch.eye(given.task.n_classes, dtype=torch.float64)[chosen]
        if self.controller in CLASSICAL:
            return [(CLASSICAL[self.controller].regulate(head, target), {}) for target in targets]
        trained = _train_neural(given, chosen, NEURAL[self.controller])
        return [
            (f.regulate(head, target), proof)
            for (f, proof), target in zip(trained, targets, strict=True)
        ]

    def _decision(
        self, chosen: list[int], found: list[tuple[Regulation, dict[str, Any]]]
    ) -> dict[str, Any]:
        regulations = [regulation for regulation, _ in found]
        return {
            "controller": self.controller,
            "classes": chosen,
            "residual": max(one.residual for one in regulations),  # ‖C(h*) − Y‖, of the worst class
            "anchor_norm": max(float(one.anchor.norm()) for one in regulations),
            "steps": max(one.steps for one in regulations),
            **({"proofs": [proof for _, proof in found]} if self.controller in NEURAL else {}),
        }


def _train_neural(
    given: Given, classes: list[int], form: str
) -> list[tuple[NeuralController, dict[str, Any]]]:
    """Algorithm 1; each class's controller, with the verdict on it."""
    from graphkeel.lyapunov import LyapunovConfig, certify

    config = LyapunovConfig(form=form, seed=given.seed, seconds=60.0)
    if form == "paper":  # has never ended in a proof
        config = replace(config, rounds=5, seconds=20.0, verify_seconds=1.0)
    task = given.task
    result = certify(given.frozen, task.x, task.edge_index, config, classes=classes)
    rounds = len(result.log)
    return [
        (NeuralController(outcome.control), {"verdict": outcome.verdict.value, "rounds": rounds})
        for outcome in result.outcomes
    ]
