"""cvc5 on the SMT-LIB text that Z3 gets, over exact rationals."""

from __future__ import annotations

from fractions import Fraction

import cvc5
import numpy as np

from graphkeel.verify import Budget, ConditionReport, Problem, Verdict
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.formats.smtlib import smtlib
from graphkeel.verify.rational import nearest_confirmed


class Cvc5Peer(ConditionwiseEngine):
    """One satisfiability question a condition."""

    name = "cvc5"

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Ask cvc5.

        Args:
            problem: the problem.
            condition: the name of one of its conditions.
            budget: this condition's own share.
        """
        answer, point = _asked(smtlib(problem, condition), problem.n, budget.seconds)
        if answer == "unsat":
            reason = "unsat in linear real arithmetic (cvc5, exact rationals)"
            return ConditionReport(condition, Verdict.PROVED, self.name, reason)
        if point is None:
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, "time")
        found = nearest_confirmed(problem, condition, point)
        verdict = Verdict.UNKNOWN if found is None else Verdict.REFUTED
        return ConditionReport(condition, verdict, self.name, counterexample=found)


def _asked(text: str, n: int, seconds: float) -> tuple[str, np.ndarray | None]:
    """unsat, sat or unknown, and a state where there is one."""
    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    solver.setOption("produce-models", "true")
    solver.setOption("tlimit-per", str(max(1, int(1000 * seconds))))
    parser = cvc5.InputParser(solver)
    asked = text.split("(check-sat)")[0]
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, asked, "problem")
    symbols = parser.getSymbolManager()
    while True:
        command = parser.nextCommand()
        if command.isNull():
            break
        command.invoke(solver, symbols)
    result = solver.checkSat()
    if result.isUnsat():
        return "unsat", None
    if not result.isSat():
        return "unknown", None
    terms = {str(term): term for term in symbols.getDeclaredTerms()}
    values = [Fraction(solver.getValue(terms[f"y{i}"]).getRealValue()) for i in range(n)]
    return "sat", np.array([float(value) for value in values])
