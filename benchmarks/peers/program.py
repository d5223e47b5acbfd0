"""The formulation that every mixed-integer solver gets, and what is made of its answer.

The program is that of graphkeel's own `milp` engine: big-M ReLUs with bounds by intervals and
backward substitution, F's last layer and V's first one as a single map, and the violation
maximised; asking for feasibility alone was measured to be 3 to 14 times slower. A solver may stop
once its bound or its best state decides. One thread; a refutation is replayed in rationals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from graphkeel.verify import Budget, ConditionReport, Problem
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.engines.milp import (
    Linear,
    Outcome,
    Program,
    judge,
    violation_program,
)
from graphkeel.verify.settings import MILP

ENOUGH_BELOW = -100 * MILP.tolerance  # a bound below this proves, and
ENOUGH_ABOVE = MILP.tolerance  # a state above this refutes


@dataclass(frozen=True)
class Found:
    """A solver's answer: its best state (all columns), its bound, nodes, and why it ended."""

    values: np.ndarray | None
    bound: float
    nodes: int
    timed_out: bool
    empty: bool = False


class MilpPeer(ConditionwiseEngine):
    """A mixed-integer solver; subclasses write `maximise`."""

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Maximise the violation.

        Args:
            problem: the problem.
            condition: the name of one of its conditions.
            budget: this condition's own share.
        """
        program, state, objective = violation_program(problem, condition)
        found = self.maximise(program, objective, budget.seconds)
        scale = max(1.0, *map(abs, program.lower), *map(abs, program.upper))
        bound = found.bound if np.isfinite(found.bound) else float("inf")
        outcome = Outcome(found.values, bound, found.nodes, found.timed_out, scale, found.empty)
        verdict, reason, point = judge(problem, condition, outcome, state)
        return ConditionReport(
            condition, verdict, self.name, reason, counterexample=point, nodes=found.nodes
        )

    @abstractmethod
    def maximise(self, program: Program, objective: Linear, seconds: float) -> Found:
        """Solve the program with one thread.

        Args:
            program: columns and rows.
            objective: terms and constant, to be maximised.
            seconds: the limit.
        """
