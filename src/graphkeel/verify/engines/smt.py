"""Z3 as a verifier: linear real arithmetic over exact rationals, each ReLU as clauses.

`unsat` is a proof in the logic's own sense, with the float weights taken as the rationals they are.
Weight errors enter as free variables within their bounds. Clauses (p >= 0, p >= z, p <= 0 or p <=
z) are measured to be several times faster here than if-then-else terms."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from graphkeel.core.optional import import_optional, is_installed
from graphkeel.verify.confirm import nearest_confirmed
from graphkeel.verify.engines.in_turn import decide_in_turn
from graphkeel.verify.problem import CONDITIONS, Affine, Array, Network, Problem
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport


class SmtVerifier:
    """One satisfiability question per condition: is there a state that violates it?"""

    name = "smt"

    def supports(self, problem: Problem) -> str | None:
        if not is_installed("z3"):
            return "z3-solver is not installed (pip install 'graphkeel[smt]')"
        return None

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        def decide(condition: str, seconds: float) -> ConditionReport:
            return self._condition(problem, condition, seconds)

        return decide_in_turn(conditions, budget, decide)

    def _condition(self, problem: Problem, condition: str, seconds: float) -> ConditionReport:
        start = time.perf_counter()
        query = _Query(problem, condition)
        answer = query.check(seconds)
        verdict, reason, point = self._judge(problem, condition, query, answer)
        return ConditionReport(
            condition,
            verdict,
            self.name,
            reason,
            point,
            time.perf_counter() - start,
            nodes=query.decisions(),
        )

    @staticmethod
    def _judge(
        problem: Problem, condition: str, query: _Query, answer: str
    ) -> tuple[Verdict, str, Array | None]:
        if answer == "unsat":
            return Verdict.PROVED, "unsat in linear real arithmetic (Z3, exact rationals)", None
        if answer != "sat":
            return Verdict.UNKNOWN, "time", None
        point = nearest_confirmed(problem, condition, query.model_point())
        if point is not None:
            return Verdict.REFUTED, "violation confirmed in exact rationals", point
        return (
            Verdict.UNKNOWN,
            "the violating state is lost when rounded to floats, or in weight errors or the L2 hole",
            None,
        )


class _Query:
    """The violation of one condition as Z3 constraints, in a context of its own."""

    def __init__(self, problem: Problem, condition: str) -> None:
        self._z3 = import_optional("z3", extra="smt")
        self._context = self._z3.Context()
        self._solver = self._z3.SolverFor("QF_LRA", ctx=self._context)
        self._count = 0
        self._state = [self._real(f"y{i}") for i in range(problem.n)]
        for variable, low, high in zip(self._state, problem.lower, problem.upper, strict=True):
            self._solver.add(variable >= self._number(low), variable <= self._number(high))
        self._solver.add(self._violation(problem, condition))

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
        return int(statistics.get_key_value("decisions")) if "decisions" in statistics.keys() else 0  # noqa: SIM118

    def model_point(self) -> Array:
        model = self._solver.model()
        values = [
            model.eval(variable, model_completion=True).as_fraction() for variable in self._state
        ]
        return np.array([value.numerator / value.denominator for value in values])

    def _violation(self, problem: Problem, condition: str) -> Any:
        z3 = self._z3
        if condition == "invariance":
            image = self._network(problem.closed_loop, self._state, problem)
            ends = zip(image, problem.lower, problem.upper, strict=True)
            return z3.Or([z3.Or(v < self._number(lo), v > self._number(hi)) for v, lo, hi in ends])
        self._solver.add(self._outside_hole(problem))
        here = self._network(problem.lyapunov, self._state, problem)[0]
        if condition == "positivity":
            return self._not_positive(problem, here)
        image = self._network(problem.closed_loop, self._state, problem)
        after = self._network(problem.lyapunov, image, None)[0]
        return after >= here if problem.rho == 1 else after > self._number(problem.rho) * here

    def _not_positive(self, problem: Problem, here: Any) -> Any:
        if problem.positivity == 0:
            return here <= 0
        c = self._number(problem.positivity)
        offsets = [
            v - self._number(y) for v, y in zip(self._state, problem.equilibrium, strict=True)
        ]
        return self._z3.Or([self._z3.Or(here < c * o, here < -c * o) for o in offsets])

    def _outside_hole(self, problem: Problem) -> Any:
        """Outside the hole; for the L2 norm outside the box within the ball, which claims more."""
        z3, radius = self._z3, Fraction(problem.hole_radius)
        if problem.hole_norm == "2":
            scaled = radius * radius / problem.n * 2**200
            radius = Fraction(isqrt(scaled.numerator // scaled.denominator), 2**100)
        centre = [Fraction(float(y)) for y in problem.equilibrium]
        if radius == 0:
            return z3.Or(
                [
                    z3.Or(v < self._number(y), v > self._number(y))
                    for v, y in zip(self._state, centre, strict=True)
                ]
            )
        pairs = zip(self._state, centre, strict=True)
        return z3.Or(
            [z3.Or(v >= self._number(y + radius), v <= self._number(y - radius)) for v, y in pairs]
        )

    def _network(self, network: Network, inputs: list[Any], box: Problem | None) -> list[Any]:
        """Outputs of a network. `box` is given when the inputs are the state itself, which may be
        negative."""
        for k, layer in enumerate(network.layers):
            sizes = self._sizes(layer, inputs, box if k == 0 else None, after_relu=k > 0)
            outputs = [self._output(layer, row, inputs, sizes) for row in range(layer.n_out)]
            inputs = outputs if k + 1 == len(network.layers) else [self._relu(z) for z in outputs]
        return inputs

    def _sizes(
        self, layer: Affine, inputs: list[Any], box: Problem | None, *, after_relu: bool
    ) -> list[Any]:
        """|input|, or a bound on it; only asked for where the layer's weights have errors."""
        if layer.weight_error is None or after_relu:
            return inputs
        if box is not None:
            ends = zip(box.lower, box.upper, strict=True)
            return [self._number(max(abs(float(lo)), abs(float(hi)))) for lo, hi in ends]
        sizes = [self._fresh("s") for _ in inputs]
        for size, value in zip(sizes, inputs, strict=True):
            self._solver.add(
                size >= value, size >= -value, self._z3.Or(size <= value, size <= -value)
            )
        return sizes

    def _output(self, layer: Affine, row: int, inputs: list[Any], sizes: list[Any]) -> Any:
        total = self._number(layer.bias[row])
        for weight, value in zip(layer.weight[row], inputs, strict=True):
            if weight:
                total = total + self._number(weight) * value
        error = self._number(0.0 if layer.bias_error is None else layer.bias_error[row])
        if layer.weight_error is not None:
            for bound, size in zip(layer.weight_error[row], sizes, strict=True):
                error = error + self._number(bound) * size
        elif layer.bias_error is None:
            return total
        drift = self._fresh("e")
        self._solver.add(drift <= error, -drift <= error)
        return total + drift

    def _relu(self, z: Any) -> Any:
        p = self._fresh("p")
        self._solver.add(p >= 0, p >= z, self._z3.Or(p <= 0, p <= z))
        return p

    def _fresh(self, prefix: str) -> Any:
        self._count += 1
        return self._real(f"{prefix}{self._count}")

    def _real(self, name: str) -> Any:
        return self._z3.Real(name, ctx=self._context)

    def _number(self, value: float | Fraction) -> Any:
        exact = value if isinstance(value, Fraction) else Fraction(float(value))
        return self._z3.RealVal(f"{exact.numerator}/{exact.denominator}", ctx=self._context)
