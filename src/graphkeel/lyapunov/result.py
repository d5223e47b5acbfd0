"""Records of a run of Algorithm 1, and the result of certify."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphkeel.certificate import sealed
from graphkeel.certificate.equilibrium import graph_sentences
from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.config import LyapunovConfig
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.models.aggregation import Aggregation
from graphkeel.models.head import Head
from graphkeel.verify.problem import Problem
from graphkeel.verify.result import Verdict, VerifyReport


@dataclass(frozen=True)
class RoundLog:
    """One round of Algorithm 1; every list follows `classes`, those that were still open."""

    round: int
    classes: list[int]
    losses: dict[str, list[float]]  # every term of the last step, by name
    steps: int
    verdicts: list[str]
    engines: list[str]
    counterexamples: list[int]
    not_reproduced: list[int]  # counterexamples that the shipped float model does not confirm
    fit_seconds: float
    verify_seconds: float


@dataclass(frozen=True)
class ClassOutcome:
    """One class: the shipped weights, the question asked about exactly these, and the answer."""

    label: int
    control: NeuralWeights
    function: LyapunovWeights
    problem: Problem
    report: VerifyReport
    seconds: float  # of asking the verifier about this class, over all rounds
    note: str = ""  # how Y or f differ from what was asked for; empty where they do not

    @property
    def verdict(self) -> Verdict:
        return self.report.verdict


@dataclass(frozen=True)
class TrainResult:
    """All classes; `stopped` says why the loop ended: "proved", "rounds", "seconds", or
    "unreachable" where the head answers no feature with some class."""

    outcomes: tuple[ClassOutcome, ...]
    log: tuple[RoundLog, ...]
    config: LyapunovConfig
    seconds: float
    stopped: str


def anchor_of(control: NeuralWeights) -> np.ndarray:
    """h* = f(Y) as a float32 feature; in the anchored forms that is the offset, to the bit."""
    anchor = control(control.equilibrium).float() if control.form == "paper" else control.offset
    return anchor.numpy()


@dataclass(frozen=True, eq=False)
class CertifyResult:
    """Controllers, their proofs and the certificate; false unless every class is proved.

    Attributes:
        head: the plant C that was taken out of the model.
        certificate: the JSON object, or None where the head cannot be proved anything about.
        training: controllers, answers and log of Algorithm 1, or None likewise.
        reason: why there is no certificate, or an empty text.
        seconds: for everything but the model's own training.
        remark: whether the certificate is about the anchors in use, where there are any.
        states: of the graph at its equilibrium, `states` (N, n), with the labelled `nodes` and
            their `labels`; None where that was not asked for or cannot be proved.
        passing: the model with its message passing.
        steering: the `features` that ship (N, d) and the decided classes `wanted` (N,), where the
            certificate speaks of them.
    """

    head: Head
    certificate: dict[str, Any] | None
    training: TrainResult | None
    reason: str
    seconds: float
    remark: str = ""
    states: dict[str, Tensor] | None = None
    passing: Aggregation = field(default_factory=Aggregation)
    steering: dict[str, Tensor] | None = None

    def __repr__(self) -> str:
        proved = len(self.verdicts) - len(self.reasons)
        said = f"{proved} of {len(self.verdicts)} classes proved" if self.verdicts else self.reason
        return f"CertifyResult({said}, {self.seconds:.1f} s)"

    def __bool__(self) -> bool:
        return bool(self.verdicts) and set(self.verdicts.values()) == {"proved"}

    def with_remark(self, remark: str) -> CertifyResult:
        """This result with a remark, which the certificate carries too.

        Args:
            remark: whether the certificate is about the anchors in use.
        """
        if self.certificate is None:
            return replace(self, remark=remark)
        provenance = {**self.certificate["provenance"], "anchors": remark}
        certificate = sealed({**self.certificate, "provenance": provenance})
        return replace(self, remark=remark, certificate=certificate)

    @property
    def verdicts(self) -> dict[int, str]:
        """Proved, refuted or unknown, by class."""
        entries = self.certificate["classes"] if self.certificate else []
        return {entry["class"]: entry["verdict"] for entry in entries}

    @property
    def graph(self) -> dict[str, Any]:
        """The claim about message passing, with `contraction` first, then κ or the reason."""
        unknown = {"contraction": "unknown", "reason": self.reason or "not looked at"}
        return dict((self.certificate or {}).get("graph", unknown))

    @property
    def equilibrium(self) -> dict[str, Any]:
        """The claim about this graph, with certain nodes counted, uncertain ones listed and the
        distance of the features; empty where no equilibrium was enclosed."""
        return dict(self.graph.get("equilibrium", {}))

    def sentences(self) -> list[str]:
        """Sentences about message passing and steering."""
        steering = (self.certificate or {}).get("steering")
        words = graph_sentences(self.graph)
        return words if steering is None else [*words, f"Steering: {steering['sentence']}"]

    @property
    def reasons(self) -> dict[int, str]:
        """For each class that is not proved the conditions that fail, in words."""
        entries = self.certificate["classes"] if self.certificate else []
        notes = {outcome.label: outcome.note for outcome in self.outcomes}
        return {
            entry["class"]: _reason(entry, notes.get(entry["class"], ""))
            for entry in entries
            if entry["verdict"] != "proved"
        }

    @property
    def outcomes(self) -> tuple[ClassOutcome, ...]:
        """Controller, V, question and answers of each class."""
        return self.training.outcomes if self.training else ()

    @property
    def log(self) -> tuple[RoundLog, ...]:
        """One entry a round of Algorithm 1."""
        return self.training.log if self.training else ()

    def anchors(self) -> Tensor:
        """h* of every class, float32, shape (classes, d)."""
        return torch.stack(
            [torch.from_numpy(anchor_of(outcome.control)).float() for outcome in self.outcomes]
        )


def _reason(entry: dict[str, Any], note: str) -> str:
    """Which conditions fail, and why; the note of the class first."""
    parts = [note] if note else []
    for name, answer in entry["conditions"].items():
        if answer["verdict"] != "proved":
            why = answer.get("reason") or answer.get("kind") or f"off by {answer.get('distance')}"
            parts.append(f"{name} {answer['verdict']} ({why})")
    return "; ".join(parts)
