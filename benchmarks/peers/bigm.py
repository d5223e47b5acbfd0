"""Bounds on every hidden unit over the domain: the big-M constants of the mixed-integer model.

Bounds are widened by a relative 1e-9, below what a float solver can tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.verify.affine import box_magnitude, errors_of, highest_on
from graphkeel.verify.problem import Affine, Array, Network, Problem
from graphkeel.verify.query import Layers
from graphkeel.verify.relaxation import Relaxation


@dataclass(frozen=True, eq=False)
class BoundedNetwork:
    """A network with bounds on every layer's values over the box, before its ReLU."""

    layers: Layers  # the output layer last
    low: tuple[Array, ...]  # one array (out,) per layer
    high: tuple[Array, ...]

    @classmethod
    def of(cls, layers: Layers, lower: Array, upper: Array) -> BoundedNetwork:
        """Bounds by intervals and by backward substitution, whichever is tighter.

        Args:
            lower, upper: the box, shape (n,).
        """
        relaxed = Relaxation.of(layers, lower, upper).layers
        left, right = lower, upper
        lows, highs = [], []
        for layer, linear in zip(layers, relaxed, strict=True):
            low, high = _interval(layer, left, right)
            low, high = np.maximum(low, linear.low), np.minimum(high, linear.high)
            slack = 1e-9 * (1 + box_magnitude(low, high))
            lows.append(low - slack)
            highs.append(high + slack)
            left, right = np.maximum(lows[-1], 0.0), np.maximum(highs[-1], 0.0)
        return cls(layers, tuple(lows), tuple(highs))


def _interval(layer: Affine, lower: Array, upper: Array) -> tuple[Array, Array]:
    low = layer.bias - highest_on(-layer.weight, lower, upper)
    return low, highest_on(layer.weight, lower, upper) + layer.bias


def error_reach(network: Network, reach: Array, distance: Array) -> tuple[Array, Array]:
    """Bounds on |output| and on how far it can be off, given the same of the inputs and the
    weights' errors.

    Args:
        reach: a bound on every |input|, shape (n_in,).
        distance: a bound on how far every input can be off, shape (n_in,).
    """
    for layer in network.layers:
        error, bias_error = errors_of(layer)
        weight = np.abs(layer.weight) + error
        distance = weight @ distance + error @ reach + bias_error
        reach = weight @ reach + np.abs(layer.bias) + bias_error
    return reach, distance


def condition_error(problem: Problem, condition: str) -> float:
    """How far weight errors can move a condition's left side over the box (twice that, to cover
    floats)."""
    box = box_magnitude(problem.lower, problem.upper)
    nothing = np.zeros(problem.n)
    if condition in ("invariance", "region"):
        off = float(error_reach(problem.closed_loop, box, nothing)[1].max())
        return 4 * off if condition == "region" else 2 * off
    here = float(error_reach(problem.lyapunov, box, nothing)[1].max())
    if condition == "positivity":
        return 2 * here
    reach, distance = error_reach(problem.closed_loop, box, nothing)
    after = float(error_reach(problem.lyapunov, reach, distance)[1].max())
    return 2 * (after + problem.rho * here)
