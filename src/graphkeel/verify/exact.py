"""Exact evaluation of one state in rational numbers: the last word on every counterexample.

Float weights are rationals, so F, V and the conditions have exact values. Where a layer carries
error bounds the value is an interval, and a violation counts only if it is there for every network
within the bounds."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from graphkeel.verify.problem import Affine, Array, Network, Problem

Interval = tuple[Fraction, Fraction]
ZERO = Fraction(0)


def rationals(values: Iterable[float]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def evaluate(network: Network, point: list[Interval]) -> list[Interval]:
    """The exact range of a network's outputs over its error bounds, interval by interval."""
    values = point
    for index, layer in enumerate(network.layers):
        values = _affine(layer, values)
        if index + 1 < len(network.layers):
            values = [(max(low, ZERO), max(high, ZERO)) for low, high in values]
    return values


def _affine(layer: Affine, values: list[Interval]) -> list[Interval]:
    result = []
    for j in range(layer.n_out):
        low = high = Fraction(float(layer.bias[j]))
        if layer.bias_error is not None:
            slack = Fraction(float(layer.bias_error[j]))
            low, high = low - slack, high + slack
        for i, (a, b) in enumerate(values):
            p, q = _product(layer, j, i, a, b)
            low, high = low + p, high + q
        result.append((low, high))
    return result


def _product(layer: Affine, j: int, i: int, a: Fraction, b: Fraction) -> Interval:
    weight = Fraction(float(layer.weight[j, i]))
    if layer.weight_error is None or layer.weight_error[j, i] == 0.0:
        return (weight * a, weight * b) if weight >= 0 else (weight * b, weight * a)
    slack = Fraction(float(layer.weight_error[j, i]))
    ends = [w * x for w in (weight - slack, weight + slack) for x in (a, b)]
    return min(ends), max(ends)


def in_hole(problem: Problem, state: list[Fraction]) -> bool:
    """Whether the state is excluded: strictly inside the open hole, or the equilibrium itself."""
    offset = [abs(y - e) for y, e in zip(state, rationals(problem.equilibrium), strict=True)]
    radius = Fraction(problem.hole_radius)
    if not any(offset):
        return True
    if problem.hole_norm == "inf":
        return max(offset) < radius
    return sum((d * d for d in offset), ZERO) < radius * radius


def in_box(problem: Problem, state: list[Fraction]) -> bool:
    bounds = zip(state, rationals(problem.lower), rationals(problem.upper), strict=True)
    return all(low <= y <= high for y, low, high in bounds)


def violates(problem: Problem, condition: str, point: Array) -> bool:
    """Whether the state violates the condition for certain, over real arithmetic and all weights
    within the errors."""
    state = rationals(point)
    if not in_box(problem, state):
        return False
    if condition == "invariance":
        return _leaves_box(problem, state)
    if in_hole(problem, state):
        return False
    here = evaluate(problem.lyapunov, [(y, y) for y in state])[0]
    if condition == "positivity":
        return _too_small(problem, state, here)
    return _fails_to_decrease(problem, state, here)


def _leaves_box(problem: Problem, state: list[Fraction]) -> bool:
    after = evaluate(problem.closed_loop, [(y, y) for y in state])
    bounds = zip(after, rationals(problem.lower), rationals(problem.upper), strict=True)
    return any(high < lower or low > upper for (low, high), lower, upper in bounds)


def _too_small(problem: Problem, state: list[Fraction], here: Interval) -> bool:
    if problem.positivity == 0.0:
        return here[1] <= 0
    distance = max(abs(y - e) for y, e in zip(state, rationals(problem.equilibrium), strict=True))
    return here[1] < Fraction(problem.positivity) * distance


def _fails_to_decrease(problem: Problem, state: list[Fraction], here: Interval) -> bool:
    after = evaluate(problem.closed_loop, [(y, y) for y in state])
    low = evaluate(problem.lyapunov, after)[0][0]
    if problem.rho == 1.0:
        return low >= here[1]
    return low > Fraction(problem.rho) * here[1]
