"""Exact evaluation of one state in rational numbers: the last word on every counterexample.

Float weights are rationals, so F, V and the conditions have exact values. Where a layer carries
error bounds the value is an interval, and a violation counts only if it is there for every network
within the bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import ProblemError
from graphkeel.verify.affine import errors_of
from graphkeel.verify.problem import (
    STAYS,
    SUBLEVEL,
    Affine,
    Array,
    Network,
    Problem,
    region_of,
    sublevel_of,
)

_Interval = tuple[Fraction, Fraction]
Vector = list[Fraction]
Exact = NDArray[Any]  # of rationals
ZERO = Fraction(0)


def rational(value: float) -> Fraction:
    """A float as the rational number it is."""
    return Fraction(float(value))


def rationals(values: Iterable[float]) -> Vector:
    """Floats as the rational numbers they are."""
    return [Fraction(float(value)) for value in values]


def rounded_down(number: Fraction) -> float:
    """The largest float that is not above a rational."""
    near = nearest_float(number)
    if math.isinf(near):
        raise ProblemError("a number is too large for a float", got=float("inf"))
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def nearest_float(number: Fraction) -> float:
    """The float nearest to a rational; infinite where there is none."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def dot(a: Iterable[Fraction], b: Iterable[Fraction]) -> Fraction:
    """The exact inner product of two vectors of one length."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), ZERO)


def exact(values: object) -> Exact:
    """Floats as the rational numbers they are, in an array of their shape."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.array(rationals(numbers.ravel()), dtype=object).reshape(numbers.shape)


def times(a: Exact, b: Exact) -> Exact:
    """A matrix times a vector or a matrix; products with zeros are left out."""
    columns = b.reshape(len(b), -1).T
    rows = [[dot(row, column) for column in columns] for row in a]
    return np.array(rows, dtype=object).reshape(len(a), *b.shape[1:])


@dataclass(frozen=True)
class ExactLayer:
    """An affine layer in rationals, with its error bounds (zeros where it is exact)."""

    weight: Exact  # (out, in)
    bias: Exact  # (out,)
    weight_error: Exact
    bias_error: Exact

    @classmethod
    def of(cls, layer: Affine) -> ExactLayer:
        """The layer's floats as rationals."""
        return cls(*map(exact, (layer.weight, layer.bias, *errors_of(layer))))

    def __call__(self, values: list[_Interval]) -> list[_Interval]:
        """The exact range of the layer's outputs over its error bounds."""
        return [self._output(j, values) for j in range(len(self.bias))]

    def _output(self, j: int, values: list[_Interval]) -> _Interval:
        low = self.bias[j] - self.bias_error[j]
        high = self.bias[j] + self.bias_error[j]
        for weight, slack, ends in zip(self.weight[j], self.weight_error[j], values, strict=True):
            if slack:
                products = [w * x for w in (weight - slack, weight + slack) for x in ends]
                low += min(products)
                high += max(products)
            elif weight:
                one, other = weight * ends[0], weight * ends[1]
                low += one if weight > 0 else other
                high += other if weight > 0 else one
        return low, high


def evaluate(network: Network, point: list[_Interval]) -> list[_Interval]:
    """The exact range of a network's outputs over its error bounds, interval by interval."""
    values = point
    for index, layer in enumerate(network.layers):
        values = ExactLayer.of(layer)(values)
        if index + 1 < len(network.layers):
            values = [(max(low, ZERO), max(high, ZERO)) for low, high in values]
    return values


def sup_radius(problem: Problem) -> Fraction:
    """r∞, rounded down: every state outside the hole is at least this far away in the sup norm."""
    radius = Fraction(problem.hole_radius)
    if problem.hole_norm == "inf" or radius == 0:
        return radius
    square = problem.n << 120
    root = math.isqrt(square)
    if root * root < square:
        root += 1
    return radius * (1 << 60) / root


def in_hole(problem: Problem, state: Vector) -> bool:
    """Whether the state is excluded: strictly inside the open hole, or the equilibrium itself."""
    offset = [abs(y - e) for y, e in zip(state, rationals(problem.equilibrium), strict=True)]
    radius = Fraction(problem.hole_radius)
    if not any(offset):
        return True
    if problem.hole_norm == "inf":
        return max(offset) < radius
    return dot(offset, offset) < radius * radius


def in_box(problem: Problem, state: Vector) -> bool:
    """Whether the state lies in the closed box."""
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
    if condition == "region":
        return _leaves_region(problem, state)
    if condition in SUBLEVEL and not _in_sublevel(problem, condition, state):
        return False
    if condition == STAYS:
        return _leaves_box(problem, state) or _leaves_sublevel(problem, state)
    if in_hole(problem, state):
        return False
    here = evaluate(problem.lyapunov, _exactly(state))[0]
    if condition == "positivity":
        return _too_small(problem, state, here)
    return _fails_to_decrease(problem, state, here)


def _exactly(state: Vector) -> list[_Interval]:
    return [(y, y) for y in state]


def _leaves_box(problem: Problem, state: Vector) -> bool:
    after = evaluate(problem.closed_loop, _exactly(state))
    bounds = zip(after, rationals(problem.lower), rationals(problem.upper), strict=True)
    return any(high < lower or low > upper for (low, high), lower, upper in bounds)


def _leaves_region(problem: Problem, state: Vector) -> bool:
    region = region_of(problem)
    margin = Fraction(region.margin)
    rivals = region.rivals(problem.n)
    if any(state[region.axis] - state[k] < margin for k in rivals):
        return False
    after = evaluate(problem.closed_loop, _exactly(state))
    highest = after[region.axis][1]
    margins = [highest - after[k][0] for k in rivals]
    return any(own <= 0 if margin == 0 else own < margin for own in margins)


def _in_sublevel(problem: Problem, condition: str, state: Vector) -> bool:
    """Whether the state surely has floor ≤ V ≤ level; for invariance there is no floor."""
    sublevel = sublevel_of(problem)
    low, high = evaluate(problem.lyapunov, _exactly(state))[0]
    if high > Fraction(sublevel.level):
        return False
    return condition == STAYS or sublevel.floor is None or low >= Fraction(sublevel.floor)


def _leaves_sublevel(problem: Problem, state: Vector) -> bool:
    after = evaluate(problem.closed_loop, _exactly(state))
    return evaluate(problem.lyapunov, after)[0][0] > Fraction(sublevel_of(problem).level)


def _too_small(problem: Problem, state: Vector, here: _Interval) -> bool:
    if problem.positivity == 0.0:
        return here[1] <= 0
    distance = max(abs(y - e) for y, e in zip(state, rationals(problem.equilibrium), strict=True))
    return here[1] < Fraction(problem.positivity) * distance


def _fails_to_decrease(problem: Problem, state: Vector, here: _Interval) -> bool:
    after = evaluate(problem.closed_loop, _exactly(state))
    low = evaluate(problem.lyapunov, after)[0][0]
    if problem.rho == 1.0:
        return low >= here[1]
    return low > Fraction(problem.rho) * here[1]


def nearest_confirmed(problem: Problem, condition: str, point: Array) -> Array | None:
    """A state near the point that violates the condition in exact rationals, or None.

    For engines whose own answer is only nearly right: the point is clipped to the box and, if need
    be, moved out of the hole by the last bits."""
    clipped = np.clip(np.asarray(point, dtype=np.float64), problem.lower, problem.upper)
    offset = clipped - problem.equilibrium
    for factor in (0.0, 1e-15, 1e-12, 1e-9, 1e-7):
        moved = np.clip(clipped + factor * offset, problem.lower, problem.upper)
        if violates(problem, condition, moved):
            return moved
    return None
