"""The formulation that every mixed-integer solver gets, and what is made of its answer.

Big-M ReLUs with bounds by intervals and backward substitution, F's last layer and V's first one as
a single map, and the violation maximised; asking for feasibility alone was measured to be 3 to 14
times slower. A solver may stop once its bound or its best state decides. One thread.

A float solver with tolerances proves nothing in the strict sense, so its answers are guarded:
`refuted` needs a state that violates the condition in exact rationals, `proved` a dual bound below
zero by far more than the tolerances, and its reason says that it is numerical."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from graphkeel.verify import Budget, ConditionReport, Problem, Verdict
from graphkeel.verify.affine import box_magnitude
from graphkeel.verify.conditions import inner_radius, lyapunov_after
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Array, region_of
from graphkeel.verify.query import Layers
from graphkeel.verify.rational import nearest_confirmed
from peers.bigm import BoundedNetwork, condition_error

TOLERANCE = 1e-5  # ten times HiGHS's own, on violations of order one
ENOUGH_BELOW = -100 * TOLERANCE  # a bound below this proves, and
ENOUGH_ABOVE = TOLERANCE  # a state above this refutes


Linear = tuple[dict[int, float], float]  # terms, constant


@dataclass
class Program:
    """Columns and rows of a mixed-integer program, collected before they are handed over."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[int] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def column(self, low: float, high: float, *, integer: bool = False) -> int:
        index = len(self.lower)
        self.lower.append(low)
        self.upper.append(high)
        if integer:
            self.integer.append(index)
        return index

    def row(self, terms: dict[int, float], low: float, high: float) -> None:
        self.rows.append((terms, low, high))


@dataclass(frozen=True)
class Found:
    """A solver's answer: its best state (all columns), its bound, nodes, and why it ended."""

    values: Array | None
    bound: float  # no state violates by more, as far as the solver knows
    nodes: int
    timed_out: bool
    empty: bool = False


class MilpPeer(ConditionwiseEngine):
    """A mixed-integer solver; subclasses write `maximise`."""

    def decide(self, problem: Problem, condition: str, budget: Budget) -> ConditionReport:
        """Maximise the violation."""
        program, state, objective = violation_program(problem, condition)
        found = self.maximise(program, objective, budget.seconds)
        # the largest big-M multiplies a solver's tolerances
        scale = max(1.0, *map(abs, program.lower), *map(abs, program.upper))
        verdict, reason, point = judge(problem, condition, found, scale, state)
        return self.report(condition, verdict, reason, counterexample=point, nodes=found.nodes)

    @abstractmethod
    def maximise(self, program: Program, objective: Linear, seconds: float) -> Found:
        """Solve the program with one thread.

        Args:
            program: columns and rows.
            objective: terms and constant, to be maximised.
            seconds: the limit.
        """


def judge(
    problem: Problem, condition: str, found: Found, scale: float, state: list[int]
) -> tuple[Verdict, str, Array | None]:
    """The verdict, its reason and a counterexample from what a solver found."""
    if found.empty:
        # Float solvers have called feasible models empty; nothing is concluded from it.
        reason = "numerical: the solver calls the domain outside the hole empty"
        return Verdict.UNKNOWN, reason, None
    if found.values is not None:
        point = nearest_confirmed(problem, condition, found.values[state])
        if point is not None:
            return Verdict.REFUTED, "violation confirmed in exact rationals", point
    bound = found.bound if np.isfinite(found.bound) else float("inf")
    tolerance = TOLERANCE * scale + condition_error(problem, condition)
    largest = f"numerical: largest violation {bound:.3g}"
    if bound < -tolerance:
        return Verdict.PROVED, f"{largest} (float tolerances)", None
    if found.timed_out:
        return Verdict.UNKNOWN, "time", None
    return Verdict.UNKNOWN, f"{largest} is within tolerance of zero", None


def violation_program(problem: Problem, condition: str) -> tuple[Program, list[int], Linear]:
    """The program whose maximum is the condition's largest violation; its state columns and its
    objective."""
    program = Program()
    state = [program.column(lo, hi) for lo, hi in zip(problem.lower, problem.upper, strict=True)]
    if condition in ("invariance", "region"):
        return program, state, _largest_excess(program, state, problem, condition)
    sides = _outside_hole(program, state, problem)
    (here,), _ = _network(program, state, problem.lyapunov.layers, problem)
    if condition == "positivity":
        distance = _distance(program, state, sides, problem)
        return program, state, _sum((problem.positivity, distance), (-1.0, here))
    (after,), _ = _network(program, state, lyapunov_after(problem), problem)
    return program, state, _sum((1.0, after), (-problem.rho, here))


def _sum(*parts: tuple[float, Linear]) -> Linear:
    terms: dict[int, float] = {}
    constant = 0.0
    for factor, (part, offset) in parts:
        constant += factor * offset
        for column, value in part.items():
            terms[column] = terms.get(column, 0.0) + factor * value
    return terms, constant


def _network(
    program: Program, state: list[int], layers: Layers, problem: Problem
) -> tuple[list[Linear], BoundedNetwork]:
    """Columns for the hidden units (big-M ReLU); the outputs as linear expressions, and all
    bounds."""
    network = BoundedNetwork.of(layers, problem.lower, problem.upper)
    columns = state
    for layer, low, high in zip(layers[:-1], network.low, network.high, strict=False):
        columns = [
            _unit(program, columns, row, float(bias), float(least), float(most))
            for row, bias, least, most in zip(layer.weight, layer.bias, low, high, strict=True)
        ]
    last = layers[-1]
    outputs = [
        (_terms(columns, row), float(b)) for row, b in zip(last.weight, last.bias, strict=True)
    ]
    return outputs, network


def _terms(columns: list[int], row: Array) -> dict[int, float]:
    return {column: float(value) for column, value in zip(columns, row, strict=True) if value}


def _unit(
    program: Program, inputs: list[int], row: Array, bias: float, low: float, high: float
) -> int:
    """x = relu(row·inputs + bias)."""
    infinity = float("inf")
    unit = program.column(0.0, max(high, 0.0))
    if high <= 0:
        return unit
    above = {unit: 1.0, **{c: -v for c, v in _terms(inputs, row).items()}}  # x − row·inputs
    if low >= 0:
        program.row(above, bias, bias)
        return unit
    active = program.column(0.0, 1.0, integer=True)
    program.row(above, bias, infinity)
    program.row({**above, active: -low}, -infinity, bias - low)  # x <= z − low·(1 − active)
    program.row({unit: 1.0, active: -high}, -infinity, 0.0)  # x <= high·active
    return unit


def _outside_hole(
    program: Program, state: list[int], problem: Problem
) -> list[tuple[int, int, float]]:
    """(choice column, axis, sign): at least one coordinate is at least r∞ away from the
    equilibrium."""
    radius = inner_radius(problem)
    sides = []
    for axis, column in enumerate(state):
        centre = float(problem.equilibrium[axis])
        for sign, end in ((1.0, float(problem.upper[axis])), (-1.0, float(problem.lower[axis]))):
            if sign * (end - centre) < radius:
                continue
            other = float(problem.lower[axis] if sign > 0 else problem.upper[axis])
            choice = program.column(0.0, 1.0, integer=True)
            big_m = radius - sign * (other - centre)  # the far end of the box lacks this much
            least = sign * centre + radius - big_m
            program.row({column: sign, choice: -big_m}, least, float("inf"))
            sides.append((choice, axis, sign))
    program.row({choice: 1.0 for choice, _, _ in sides}, 1.0, float("inf"))
    return sides


def _distance(
    program: Program, state: list[int], sides: list[tuple[int, int, float]], problem: Problem
) -> Linear:
    """A column that may grow up to the largest chosen |y_i − Y_i|; maximising drives it there."""
    reach = np.maximum(problem.upper - problem.equilibrium, problem.equilibrium - problem.lower)
    top = float(np.max(np.abs(reach)))
    distance = program.column(0.0, top)
    one = {choice: 1.0 for choice, _, _ in sides}
    program.row(one, 1.0, 1.0)
    for choice, axis, sign in sides:
        big_m = 2 * top
        centre = sign * float(problem.equilibrium[axis])
        row = {distance: 1.0, state[axis]: -sign, choice: big_m}
        program.row(row, -float("inf"), big_m - centre)
    return {distance: 1.0}, 0.0


def _largest_excess(program: Program, state: list[int], problem: Problem, condition: str) -> Linear:
    """The largest of the condition's excesses of F(y), one of them chosen."""
    outputs, network = _network(program, state, problem.closed_loop.layers, problem)
    low, high = network.low[-1], network.high[-1]
    if condition == "region":
        excesses = _region_excesses(program, state, problem, outputs)
        reach = float(np.max(box_magnitude(low, high)))
        span = 8 * (reach + region_of(problem).margin) + 1
    else:
        excesses = _box_excesses(problem, outputs)
        span = float(max(np.max(high - problem.lower), np.max(problem.upper - low), 1.0)) * 4 + 1
    excess = program.column(-span, span)
    choices: dict[int, float] = {}
    for terms, constant in excesses:
        choice = program.column(0.0, 1.0, integer=True)
        choices[choice] = 1.0
        big_m = 2 * span  # excess <= this one + big_m·(1 − choice)
        row = {excess: 1.0, choice: big_m, **{c: -v for c, v in terms.items()}}
        program.row(row, -float("inf"), constant + big_m)
    program.row(choices, 1.0, 1.0)
    return {excess: 1.0}, 0.0


def _box_excesses(problem: Problem, outputs: list[Linear]) -> list[Linear]:
    """F_i − upper_i and lower_i − F_i."""
    excesses = []
    for axis, output in enumerate(outputs):
        above: Linear = ({}, -float(problem.upper[axis]))
        below: Linear = ({}, float(problem.lower[axis]))
        excesses += [_sum((1.0, output), (1.0, above)), _sum((-1.0, output), (1.0, below))]
    return excesses


def _region_excesses(
    program: Program, state: list[int], problem: Problem, outputs: list[Linear]
) -> list[Linear]:
    """F_k − F_c + γ for every rival, over the states where the class has the margin γ."""
    region = region_of(problem)
    margin: Linear = ({}, region.margin)
    excesses = []
    for k in region.rivals(problem.n):
        margin_now = {state[region.axis]: 1.0, state[k]: -1.0}
        program.row(margin_now, region.margin, float("inf"))
        excesses.append(_sum((1.0, outputs[k]), (-1.0, outputs[region.axis]), (1.0, margin)))
    return excesses
