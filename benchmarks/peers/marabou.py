"""Marabou: linear equations, ReLUs and a disjunction for the violation.

Its answers come in floats: `sat` counts once replayed in rationals, `unsat` as it stands. It may
overrun its own time-out; the bench ends its process at the limit."""

from __future__ import annotations

import numpy as np
from maraboupy import Marabou, MarabouCore, MarabouUtils
from maraboupy.MarabouNetwork import MarabouNetwork

from graphkeel.verify import Budget, ConditionReport, Problem, Verdict
from graphkeel.verify.conditions import inner_radius, lyapunov_after
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.query import Layers
from graphkeel.verify.rational import nearest_confirmed
from peers.bigm import BoundedNetwork

AT_LEAST = MarabouCore.Equation.GE


class MarabouPeer(ConditionwiseEngine):
    """One query a condition, with the bounds that the mixed-integer solvers get."""

    name = "marabou"

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Ask Marabou.

        Args:
            problem: the problem.
            condition: the name of one of its conditions.
            budget: this condition's own share.
        """
        query = _Query(problem)
        query.violate(condition)
        options = Marabou.createOptions(
            verbosity=0, numWorkers=1, timeoutInSeconds=max(1, int(budget.seconds))
        )
        answer, values, _ = query.network.solve(verbose=False, options=options)
        if answer == "unsat":
            reason = "unsat (float tolerances)"
            return ConditionReport(condition, Verdict.PROVED, self.name, reason)
        if answer != "sat":
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, str(answer))
        point = np.array([values[column] for column in query.state])
        found = nearest_confirmed(problem, condition, point)
        if found is None:
            reason = "its state is no violation"
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, reason)
        return ConditionReport(condition, Verdict.REFUTED, self.name, counterexample=found)


Terms = dict[int, float]


class _Query:
    """The query of one condition.

    Writes: `network`.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.network = MarabouNetwork()
        ends = zip(problem.lower, problem.upper, strict=True)
        self.state = [self._variable(float(low), float(high)) for low, high in ends]

    def _variable(self, low: float, high: float) -> int:
        number = int(self.network.getNewVariable())
        self.network.setLowerBound(number, low)
        self.network.setUpperBound(number, high)
        return number

    def outputs(self, layers: Layers) -> list[tuple[Terms, float]]:
        """The outputs of a network over the state, as linear terms and a constant."""
        bounded = BoundedNetwork.of(layers, self.problem.lower, self.problem.upper)
        values = self.state
        for layer, low, high in zip(layers[:-1], bounded.low, bounded.high, strict=False):
            rows = zip(layer.weight, layer.bias, low, high, strict=True)
            values = [self._unit(values, *row) for row in rows]
        last = layers[-1]
        return [
            ({k: float(w) for k, w in zip(values, row, strict=True) if w}, float(bias))
            for row, bias in zip(last.weight, last.bias, strict=True)
        ]

    def _unit(
        self, inputs: list[int], row: np.ndarray, bias: float, low: float, high: float
    ) -> int:
        total = self._variable(float(low), float(high))
        terms = [float(w) for w in row]
        self.network.addEquality([*inputs, total], [*terms, -1.0], -float(bias))
        value = self._variable(0.0, max(float(high), 0.0))
        self.network.addRelu(total, value)
        return value

    def violate(self, condition: str) -> None:
        """Assert that the condition is violated."""
        problem = self.problem
        if condition == "invariance":
            self.any_of(self._leaving())
            return
        self.any_of(self._outside_hole())
        here = self.outputs(problem.lyapunov.layers)[0]
        if condition == "decrease":
            after = self.outputs(lyapunov_after(problem))[0]
            self.any_of([_sum((1.0, after), (-problem.rho, here))])
            return
        wrong = []
        for axis, column in enumerate(self.state):
            centre = float(problem.equilibrium[axis])
            for sign in (1.0, -1.0):
                c = sign * problem.positivity
                wrong.append(_sum((1.0, ({column: c}, -c * centre)), (-1.0, here)))
        self.any_of(wrong if problem.positivity else wrong[:1])

    def _leaving(self) -> list[tuple[Terms, float]]:
        problem, found = self.problem, []
        for axis, output in enumerate(self.outputs(problem.closed_loop.layers)):
            found.append(_sum((1.0, output), (1.0, ({}, -float(problem.upper[axis])))))
            found.append(_sum((-1.0, output), (1.0, ({}, float(problem.lower[axis])))))
        return found

    def _outside_hole(self) -> list[tuple[Terms, float]]:
        radius, found = inner_radius(self.problem), []
        for axis, column in enumerate(self.state):
            centre = float(self.problem.equilibrium[axis])
            for sign in (1.0, -1.0):
                found.append(({column: sign}, -sign * centre - radius))
        return found

    def any_of(self, parts: list[tuple[Terms, float]]) -> None:
        """terms + constant ≥ 0 for at least one part."""
        equations = []
        for terms, constant in parts:
            equation = MarabouUtils.Equation(AT_LEAST)
            for column, factor in terms.items():
                equation.addAddend(factor, column)
            equation.setScalar(-constant)
            equations.append([equation])
        if len(equations) > 1:
            self.network.addDisjunctionConstraint(equations)
            return
        terms, constant = parts[0]
        columns, factors = list(terms), [-factor for factor in terms.values()]
        self.network.addInequality(columns, factors, constant)


def _sum(*parts: tuple[float, tuple[Terms, float]]) -> tuple[Terms, float]:
    terms: Terms = {}
    constant = 0.0
    for factor, (part, offset) in parts:
        constant += factor * offset
        for column, value in part.items():
            terms[column] = terms.get(column, 0.0) + factor * value
    return terms, constant
