"""Conditions on a sublevel set, decided as properties of y -> (V(y), V(F(y)), F(y))."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Problem
from graphkeel.verify.proof import Json, head
from graphkeel.verify.property.decide import NOT_STORED, SAT, UNSAT, Answer, decide
from graphkeel.verify.property.sublevel import sublevel_network, sublevel_property
from graphkeel.verify.rational import violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict
from graphkeel.verify.warm import load_kernels

_DIFFERS = "the violating state is not confirmed by a second replay"


class SublevelVerifier(ConditionwiseEngine):
    """Attack, then branch and bound over boxes; `proved` comes with a tree for every case."""

    name = "sublevel"
    sublevels = True

    def supports(self, problem: Problem) -> str | None:
        """None unless a layer is the rounded result of a computation."""
        if problem.exact:
            return None
        return "a sublevel set is decided for layers without error bounds only"

    def prepare(self) -> None:
        """Load the compiled kernels."""
        load_kernels()

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Decide one condition."""
        against = self.supports(problem)
        if against is not None:
            return self.report(condition, Verdict.UNKNOWN, f"unsupported: {against}")
        prop = sublevel_property(problem, condition)
        answer = decide(sublevel_network(problem), prop, budget)
        if answer.verdict == UNSAT:
            return self._proved(condition, answer, len(prop.cases))
        if answer.verdict == SAT:
            return self._refuted(problem, condition, answer)
        return self.report(condition, Verdict.UNKNOWN, answer.reason, nodes=answer.nodes)

    def _proved(self, condition: str, answer: Answer, cases: int) -> ConditionReport:
        reason = f"no state satisfies any of {cases} case(s) of a violation"
        if answer.proof is None:
            reason = NOT_STORED if cases else "vacuous: no state of the box is outside the hole"
        proof = None if answer.proof is None else _proof_entry(condition, answer.proof)
        return self.report(condition, Verdict.PROVED, reason, nodes=answer.nodes, proof=proof)

    def _refuted(self, problem: Problem, condition: str, answer: Answer) -> ConditionReport:
        """The counterexample, once the problem's own replay agrees."""
        point = np.array(answer.inputs)
        if not violates(problem, condition, point):
            return self.report(condition, Verdict.UNKNOWN, _DIFFERS, nodes=answer.nodes)
        return self.report(condition, Verdict.REFUTED, "", nodes=answer.nodes, counterexample=point)


def _proof_entry(condition: str, proof: Json) -> Json:
    """The roots and trees of a property's proof; the checker compiles its question itself."""
    kept = ("lower", "upper", "tree")
    cases = [{name: case[name] for name in kept} for case in proof["cases"]]
    return head("sublevel", condition) | {"cases": cases}
