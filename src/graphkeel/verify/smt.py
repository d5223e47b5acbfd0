"""Z3 as a verifier: the SMT-LIB question of formats/smtlib.py, answered over exact rationals.

`unsat` is a proof in the logic's own sense, with the float weights taken as the rationals they
are."""

from __future__ import annotations

import threading

import numpy as np

from graphkeel.core.optional import import_optional, is_installed
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.formats.smtlib import state_names, violation
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.rational import nearest_confirmed
from graphkeel.verify.result import Budget, ConditionReport, Verdict


class SmtVerifier(ConditionwiseEngine):
    """One satisfiability question per condition: is there a state that violates it?"""

    name = "smt"
    sublevels = True

    def supports(self, problem: Problem) -> str | None:
        """None where Z3 is installed."""
        if not is_installed("z3"):
            return "z3-solver is not installed (pip install 'graphkeel[smt]')"
        return None

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Decide the satisfiability of the violation with Z3."""
        query = _Query(problem, condition)
        answer = query.check(budget.seconds)
        verdict, reason, point = self._judge(problem, condition, query, answer)
        nodes = query.decisions()
        return self.report(condition, verdict, reason, counterexample=point, nodes=nodes)

    @staticmethod
    def _judge(
        problem: Problem, condition: str, query: _Query, answer: str
    ) -> tuple[Verdict, str, Array | None]:
        if answer == "unsat":
            return Verdict.PROVED, "unsat in linear real arithmetic (Z3, exact rationals)", None
        if answer != "sat":
            return Verdict.UNKNOWN, "time", None
        state = query.model_point()
        if state is None:
            return Verdict.UNKNOWN, "time", None
        point = nearest_confirmed(problem, condition, state)
        if point is not None:
            return Verdict.REFUTED, "violation confirmed in exact rationals", point
        reason = (
            "the violating state is lost when rounded to floats, or in weight errors or the L2 hole"
        )
        return Verdict.UNKNOWN, reason, None


class _Query:
    """The violation of one condition in a Z3 context of its own.

    Reads: the problem, once. Writes: nothing outside its context.
    """

    def __init__(self, problem: Problem, condition: str) -> None:
        self._z3 = import_optional("z3", extra="smt")
        self._context = self._z3.Context()
        self._solver = self._z3.SolverFor("QF_LRA", ctx=self._context)
        self._names = state_names(problem)
        self._solver.add(
            self._z3.parse_smt2_string(violation(problem, condition), ctx=self._context)
        )

    def check(self, seconds: float) -> str:
        """sat, unsat or unknown; a timer interrupts Z3 where its own time-out is late."""
        self._solver.set("timeout", max(1, int(1000 * seconds)))
        timer = threading.Timer(seconds + 0.5, self._context.interrupt)
        timer.start()
        try:
            return str(self._solver.check())
        except self._z3.Z3Exception:
            return "unknown"
        finally:
            timer.cancel()

    def decisions(self) -> int:
        statistics = self._solver.statistics()
        if "decisions" not in statistics.keys():  # noqa: SIM118
            return 0
        return int(statistics.get_key_value("decisions"))

    def model_point(self) -> Array | None:
        """The state; None where the timer's interrupt came after the answer and Z3 gives none."""
        variables = [self._z3.Real(name, ctx=self._context) for name in self._names]
        try:
            model = self._solver.model()
            values = [model.eval(v, model_completion=True).as_fraction() for v in variables]
        except self._z3.Z3Exception:
            return None
        return np.array([value.numerator / value.denominator for value in values])
