"""Replaying a candidate counterexample in exact rationals, for engines whose own answer is only nearly right.

Weight errors are carried as intervals: a confirmed violation holds for every network within the stated bounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from graphkeel.verify.problem import Affine, Array, Network, Problem

Interval = tuple[Fraction, Fraction]


def confirmed(problem: Problem, condition: str, point: Array) -> bool:
    """Whether the state lies in the condition's region and certainly violates it."""
    state = [Fraction(float(v)) for v in point]
    if not _in_region(problem, condition, state):
        return False
    here = [(v, v) for v in state]
    if condition == "invariance":
        image = interval_value(problem.closed_loop, here)
        ends = zip(image, problem.lower, problem.upper, strict=True)
        return any(high < Fraction(float(lo)) or low > Fraction(float(hi)) for (low, high), lo, hi in ends)
    high = interval_value(problem.lyapunov, here)[0][1]
    if condition == "positivity":
        c = Fraction(problem.positivity)
        return high <= 0 if c == 0 else high < c * max(_offsets(problem, state))
    after = interval_value(problem.lyapunov, interval_value(problem.closed_loop, here))[0][0]
    return after >= high if problem.rho == 1 else after > Fraction(problem.rho) * high


def nearest_confirmed(problem: Problem, condition: str, point: Array) -> Array | None:
    """The point clipped to the box, or the same moved out of the hole by the last bits; None if none violates."""
    clipped = np.clip(np.asarray(point, dtype=np.float64), problem.lower, problem.upper)
    for factor in (0.0, 1e-15, 1e-12, 1e-9, 1e-7):
        moved = np.clip(clipped + factor * (clipped - problem.equilibrium), problem.lower, problem.upper)
        if confirmed(problem, condition, moved):
            return moved
    return None


def interval_value(network: Network, point: list[Interval]) -> list[Interval]:
    """Exact interval image of a network at a (small) box."""
    for i, layer in enumerate(network.layers):
        point = _affine(layer, point)
        if i + 1 < len(network.layers):
            point = [(max(low, Fraction(0)), max(high, Fraction(0))) for low, high in point]
    return point


def _affine(layer: Affine, point: list[Interval]) -> list[Interval]:
    image = []
    for row in range(layer.n_out):
        low = high = Fraction(float(layer.bias[row]))
        spread = Fraction(0) if layer.bias_error is None else Fraction(float(layer.bias_error[row]))
        for column, (left, right) in enumerate(point):
            weight = Fraction(float(layer.weight[row, column]))
            low += weight * (left if weight >= 0 else right)
            high += weight * (right if weight >= 0 else left)
            if layer.weight_error is not None:
                spread += Fraction(float(layer.weight_error[row, column])) * max(abs(left), abs(right))
        image.append((low - spread, high + spread))
    return image


def _offsets(problem: Problem, state: list[Fraction]) -> list[Fraction]:
    return [abs(s - Fraction(float(y))) for s, y in zip(state, problem.equilibrium, strict=True)]


def _in_region(problem: Problem, condition: str, state: list[Fraction]) -> bool:
    ends = zip(state, problem.lower, problem.upper, strict=True)
    if not all(Fraction(float(lo)) <= s <= Fraction(float(hi)) for s, lo, hi in ends):
        return False
    if condition == "invariance":
        return True
    offsets, radius = _offsets(problem, state), Fraction(problem.hole_radius)
    if radius == 0:
        return any(offsets)
    if problem.hole_norm == "inf":
        return max(offsets) >= radius
    return sum(o * o for o in offsets) >= radius * radius
