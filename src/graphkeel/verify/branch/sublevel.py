"""A condition on a sublevel set, decided in turns as a property of y -> (V(y), V(F(y)), F(y))."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkeel.verify.problem import Problem
from graphkeel.verify.proof import head
from graphkeel.verify.property.decide import NOT_STORED, SAT, UNSAT, Answer, Decision
from graphkeel.verify.property.sublevel import sublevel_network, sublevel_property
from graphkeel.verify.rational import violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict

_DIFFERS = "the violating state is not confirmed by a second replay"


class SublevelRun:
    """Attack, then branch and bound over boxes; `proved` comes with a tree for every case."""

    def __init__(self, problem: Problem, condition: str, budget: Budget) -> None:
        self.problem = problem
        self.condition = condition
        self.budget = budget
        self.prop = sublevel_property(problem, condition)
        self.decision = Decision(sublevel_network(problem), self.prop, budget)

    def quick_check(self) -> ConditionReport | None:
        """The answer, if the attack gives one."""
        return self._report(self.decision.attack(self.budget.now() + self.decision.turn))

    def advance(self, end: float, last: float) -> ConditionReport | None:
        """Go on until the turn is over; the answer, if there is one."""
        return self._report(self.decision.advance(end))

    def out_of_time(self) -> ConditionReport:
        """The answer when there is no time left."""
        return self._answered(Verdict.UNKNOWN, self.decision.out_of_time().reason)

    def _report(self, answer: Answer | None) -> ConditionReport | None:
        if answer is None:
            return None
        if answer.verdict == UNSAT:
            return self._proved(answer)
        if answer.verdict != SAT:
            return self._answered(Verdict.UNKNOWN, answer.reason)
        point = np.array(answer.inputs)
        if not violates(self.problem, self.condition, point):  # the problem's own replay
            return self._answered(Verdict.UNKNOWN, _DIFFERS)
        return self._answered(Verdict.REFUTED, "", counterexample=point)

    def _proved(self, answer: Answer) -> ConditionReport:
        cases = len(self.prop.cases)
        if answer.proof is None:
            vacuous = "vacuous: no state of the box is outside the hole"
            return self._answered(Verdict.PROVED, NOT_STORED if cases else vacuous)
        # the roots and trees: the checker compiles its question itself
        kept = ("lower", "upper", "tree")
        trees = [{name: case[name] for name in kept} for case in answer.proof["cases"]]
        proof = head("sublevel", self.condition) | {"cases": trees}
        reason = f"no state satisfies any of {cases} case(s) of a violation"
        return self._answered(Verdict.PROVED, reason, proof=proof)

    def _answered(self, verdict: Verdict, reason: str, **more: Any) -> ConditionReport:
        nodes = self.decision.nodes
        return ConditionReport(self.condition, verdict, "", reason, nodes=nodes, **more)
