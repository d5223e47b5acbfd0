"""Records of a training run: its log, its result, and the state that it resumes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from graphkeel.control.neural import NeuralWeights
from graphkeel.lyapunov.config import ResolvedConfig
from graphkeel.lyapunov.domain import Domain
from graphkeel.lyapunov.function import LyapunovWeights
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

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TrainState:
    """Tensors (for safetensors) and the log (for JSON) after a round; `train(resume=…)` takes it
    back."""

    tensors: dict[str, Tensor]
    log: tuple[RoundLog, ...]


@dataclass(frozen=True)
class ClassOutcome:
    """One class: the shipped weights, the question asked about exactly these, and the answer."""

    label: int
    control: NeuralWeights
    function: LyapunovWeights
    domain: Domain
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
    config: ResolvedConfig
    seconds: float
    stopped: str

    @property
    def verdict(self) -> Verdict:
        return Verdict.all_of([outcome.verdict for outcome in self.outcomes])
