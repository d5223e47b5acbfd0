"""A controller as a method: find the anchors h*_c, write them over labelled nodes (Eq. 13), ask the
frozen model.

As in the paper, the class of a random training node is replaced; `classes="all"` replaces every
class. `literal` trains by Algorithm 1 as it is printed: one initial node, one gradient step a
round, and a verifier that is asked V > 0 and ΔV < 0 alone. What the paper's form does ends by
rounds and by the solver's own steps, never by the clock: the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from graphkeel.control import LQR, MFAC, PID, Deadbeat, NeuralController, Regulation
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name
from graphkeel.core.optional import import_optional
from graphkeel.models.head import extract_head
from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel.verify import (
    CONDITIONS,
    Budget,
    ConditionReport,
    Problem,
    Verdict,
    VerifyReport,
    verify,
)
from graphkeel_paper.baselines.rival import drawn_class, drawn_node

CLASSICAL: dict[str, Any] = {  # each is a `Controller`
    "deadbeat": Deadbeat(),
    "lqr": LQR(),
    "pid": PID(),
    "mfac-blind": MFAC(initial="blind"),
    # Its error shrinks by a constant factor a step, nearly one for an ill-conditioned head: 200
    # steps leave 2e-3.
    "mfac-probed": MFAC(initial="probed", steps=2000),
}
# the form of f and V that each trains
NEURAL = {"neural": "anchored", "neural-paper": "paper", "literal": "paper"}
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
        trained = _train_neural(given, chosen, self.controller)
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


@dataclass(frozen=True)
class _PaperLimits:
    """When the paper's form, which has never ended in a proof, is given up."""

    rounds: int = 5  # of many states and many gradient steps each
    boxes: int = 400  # of a proof, in each of its rounds
    literal_rounds: int = 100  # of one gradient step each
    solver_steps: int = 5_000_000  # of Z3 a question, in its own unit
    seconds: float = 1e9  # more than any of it takes


_LIMITS = _PaperLimits()


def _train_neural(
    given: Given, classes: list[int], controller: str
) -> list[tuple[NeuralController, dict[str, Any]]]:
    """Algorithm 1; each class's controller, with the verdict on it."""
    from graphkeel.lyapunov import LyapunovConfig, certify

    task, seconds = given.task, _LIMITS.seconds
    config = LyapunovConfig(form=NEURAL[controller], seed=given.seed, seconds=60.0)
    verifier: Any = "auto"
    if controller == "neural-paper":
        config = replace(config, rounds=_LIMITS.rounds, seconds=seconds, verify_seconds=seconds)
        verifier = boxes_oracle
    elif controller == "literal":
        config = replace(config, rounds=_LIMITS.literal_rounds, seconds=seconds, steps=1)
        node = drawn_node(given.labelled, given.seed)
        config = replace(config, start_node=node, falsify_rounds=0, verify_seconds=seconds)
        verifier = _solver_oracle
    result = certify(
        given.frozen, task.x, task.edge_index, config, classes=classes, verifier=verifier
    )
    rounds = len(result.log)
    goals = config.goals
    return [
        (NeuralController(outcome.control), _proof(outcome.report, goals, rounds))
        for outcome in result.outcomes
    ]


def _proof(report: VerifyReport, goals: tuple[str, ...], rounds: int) -> dict[str, Any]:
    """The verdict on a class, and on the conditions that training works for."""
    conditions = {c.condition: c.verdict.value for c in report.conditions if c.condition in goals}
    return {"verdict": report.verdict.value, "conditions": conditions, "rounds": rounds}


def boxes_oracle(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:
    """The portfolio, with a number of boxes instead of seconds; no box is searched where a
    violation is found without."""
    from graphkeel.verify.portfolio import AutoVerifier

    budget = Budget(seconds=seconds, nodes=_LIMITS.boxes, threads=1)
    report = AutoVerifier(complete=False).solve(problem, budget)
    if report.counterexample is not None or not complete:
        return report
    return AutoVerifier().solve(problem, budget)


def _solver_oracle(problem: Problem, *, seconds: float, complete: bool) -> VerifyReport:  # noqa: ARG001
    """Algorithm 1's question: a violation of either of its two conditions. Z3 is asked where a
    search finds none."""
    z3 = import_optional("z3", extra="smt")
    goals = ("positivity", "decrease")
    budget = Budget(seconds=seconds, first_refutation=True)
    report = verify(problem, "falsify", budget, goals)
    if report.counterexample is None:
        z3.set_param("rlimit", _LIMITS.solver_steps)
        try:
            report = verify(problem, "smt", budget, goals)
        finally:
            z3.set_param("rlimit", 0)
    unasked = [name for name in CONDITIONS if name not in goals]
    others = [ConditionReport(name, Verdict.UNKNOWN, "smt", "not asked") for name in unasked]
    return VerifyReport((*report.conditions, *others), report.seconds)
