"""The answers of engines: a verdict that is a sentence, never a bare bool."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from graphkeel.verify.problem import Array, Problem


class Verdict(Enum):
    """`proved` and `refuted` are final; `unknown` always comes with its reason."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def exit_code(self) -> int:
        return {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNKNOWN: 3}[self]

    @staticmethod
    def all_of(verdicts: list[Verdict]) -> Verdict:
        """The verdict on a conjunction: one refutation refutes it, one gap leaves it unknown.

        Args:
            verdicts: of the parts.

        >>> Verdict.all_of([Verdict.PROVED, Verdict.UNKNOWN])
        <Verdict.UNKNOWN: 'unknown'>
        """
        for worst in (Verdict.REFUTED, Verdict.UNKNOWN):
            if worst in verdicts:
                return worst
        return Verdict.PROVED


_SENTENCES = {
    Verdict.PROVED: "The condition holds for every state of the domain, over real arithmetic.",
    Verdict.REFUTED: "A state of the domain violates the condition; it was replayed and confirmed.",
    Verdict.UNKNOWN: "Neither a proof nor a confirmed counterexample was found.",
}


@dataclass(frozen=True)
class Progress:
    """Where a search is: the row's name, boxes explored and open, seconds since its start."""

    row: str
    nodes: int
    open: int
    seconds: float


@dataclass(frozen=True)
class Budget:
    """Where an engine has to stop and answer `unknown`.

    Args:
        seconds: for all conditions together.
        nodes: boxes that may be explored for one condition.
        threads: workers; 0 means every core.
        clock: of which clock the seconds are, "wall" or "processor" (all threads together).
        first_refutation: whether a refuted condition ends the work on the others.
        on_progress: called about once a second during long searches.
    """

    seconds: float = 60.0
    nodes: int = 50_000_000
    threads: int = 0
    clock: str = "wall"
    first_refutation: bool = False
    on_progress: Callable[[Progress], None] | None = None

    def now(self) -> float:
        """The time on the budget's clock."""
        return time.process_time() if self.clock == "processor" else time.monotonic()


@dataclass(frozen=True)
class ConditionReport:
    """The answer to one condition."""

    condition: str
    verdict: Verdict
    engine: str
    reason: str = ""  # why unknown; how proved
    counterexample: Array | None = None  # a state y, confirmed in exact arithmetic
    seconds: float = 0.0
    nodes: int = 0
    proof: dict[str, Any] | None = None  # for the independent checker; docs/formats.md


@dataclass(frozen=True)
class VerifyReport:
    """The answers to all the conditions of one call."""

    conditions: tuple[ConditionReport, ...]
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        return Verdict.all_of([c.verdict for c in self.conditions])

    @property
    def counterexample(self) -> Array | None:
        return next(
            (c.counterexample for c in self.conditions if c.counterexample is not None), None
        )

    @property
    def nodes(self) -> int:
        return sum(c.nodes for c in self.conditions)

    def __getitem__(self, condition: str) -> ConditionReport:
        return next(c for c in self.conditions if c.condition == condition)


class Verifier(Protocol):
    """One engine. `supports` is called before any work and returns the reason against, or None."""

    name: str

    def supports(self, problem: Problem) -> str | None:
        """Why the engine cannot take the problem, or None.

        Args:
            problem: the problem.
        """

    def solve(
        self, problem: Problem, budget: Budget | None = None, conditions: Sequence[str] = ...
    ) -> VerifyReport:
        """Decide the conditions.

        Args:
            problem: the problem.
            budget: for all conditions together.
            conditions: their names; the report has them in this order.
        """
