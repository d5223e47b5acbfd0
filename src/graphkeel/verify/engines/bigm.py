"""Bounds on every hidden unit over the domain: the big-M constants of the mixed-integer model.

A small, plain implementation of its own (intervals and one backward substitution), so that the
cross-check shares nothing with the engine it checks. Bounds are widened by a relative 1e-9, below
what a float solver can tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.verify.problem import Array, Network, Problem

Plain = list[tuple[Array, Array]]  # (weight, bias) per layer


@dataclass(frozen=True, eq=False)
class Chain:
    """A network as plain layers with bounds on each hidden layer's pre-activations over the box."""

    layers: Plain
    low: list[Array]
    high: list[Array]


def lyapunov_after(problem: Problem) -> Plain:
    """V ∘ F; the last layer of F and the first of V are one affine map, which keeps the bounds
    tight."""
    forward, lyapunov = _plain(problem.closed_loop), _plain(problem.lyapunov)
    (outer, outer_bias), (inner, inner_bias) = lyapunov[0], forward[-1]
    return [*forward[:-1], (outer @ inner, outer @ inner_bias + outer_bias), *lyapunov[1:]]


def _plain(network: Network) -> Plain:
    return [(layer.weight, layer.bias) for layer in network.layers]


def bounded(layers: Plain, lower: Array, upper: Array) -> Chain:
    """Bounds by intervals and by backward substitution, whichever is tighter."""
    low: list[Array] = []
    high: list[Array] = []
    left, right = lower, upper
    for k, (weight, bias) in enumerate(layers[:-1]):
        interval = _interval(weight, bias, left, right)
        linear = _substituted(layers[: k + 1], low, high, lower, upper)
        widened = _widened(np.maximum(interval[0], linear[0]), np.minimum(interval[1], linear[1]))
        low.append(widened[0])
        high.append(widened[1])
        left, right = np.maximum(widened[0], 0.0), np.maximum(widened[1], 0.0)
    return Chain(layers, low, high)


def _widened(low: Array, high: Array) -> tuple[Array, Array]:
    slack = 1e-9 * (1 + np.maximum(np.abs(low), np.abs(high)))
    return low - slack, high + slack


def _interval(weight: Array, bias: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    plus, minus = np.maximum(weight, 0), np.minimum(weight, 0)
    return plus @ lower + minus @ upper + bias, plus @ upper + minus @ lower + bias


def _substituted(
    layers: Plain, low: list[Array], high: list[Array], lower: Array, upper: Array
) -> tuple[Array, Array]:
    """Bounds of the last layer's outputs, each ReLU replaced by the two lines of its triangle."""
    ends = []
    for sign in (1.0, -1.0):
        rows, constant = sign * layers[-1][0], sign * layers[-1][1]
        for k in range(len(layers) - 2, -1, -1):
            slope, lift = _upper_line(low[k], high[k])
            lower_slope = (high[k] > -low[k]).astype(float) * (high[k] > 0)
            constant = constant + np.maximum(rows, 0) @ lift
            rows = np.maximum(rows, 0) * slope + np.minimum(rows, 0) * lower_slope
            constant = constant + rows @ layers[k][1]
            rows = rows @ layers[k][0]
        ends.append(np.maximum(rows, 0) @ upper + np.minimum(rows, 0) @ lower + constant)
    return -ends[1], ends[0]


def _upper_line(low: Array, high: Array) -> tuple[Array, Array]:
    unstable = (low < 0) & (high > 0)
    slope = np.where(unstable, high / np.where(unstable, high - low, 1.0), (low >= 0).astype(float))
    return slope, np.where(unstable, -slope * low, 0.0)


def output_range(chain: Chain) -> tuple[Array, Array]:
    """Interval bounds of a chain's outputs."""
    weight, bias = chain.layers[-1]
    if not chain.low:
        raise ValueError("an affine chain has no hidden bounds")
    return _interval(weight, bias, np.maximum(chain.low[-1], 0.0), np.maximum(chain.high[-1], 0.0))


def error_reach(network: Network, reach: Array, distance: Array) -> tuple[Array, Array]:
    """Bounds on |output| and on how far it can be off, given the same of the inputs and the
    weights' errors."""
    for layer in network.layers:
        weight = np.abs(layer.weight)
        error = np.zeros_like(weight) if layer.weight_error is None else layer.weight_error
        bias_error = np.zeros(layer.n_out) if layer.bias_error is None else layer.bias_error
        distance = (weight + error) @ distance + error @ reach + bias_error
        reach = (weight + error) @ reach + np.abs(layer.bias) + bias_error
    return reach, distance


def condition_error(problem: Problem, condition: str) -> float:
    """How far weight errors can move a condition's left side over the box (twice that, to cover
    floats)."""
    box = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    nothing = np.zeros(problem.n)
    if condition == "invariance":
        return 2 * float(error_reach(problem.closed_loop, box, nothing)[1].max())
    here = float(error_reach(problem.lyapunov, box, nothing)[1].max())
    if condition == "positivity":
        return 2 * here
    reach, distance = error_reach(problem.closed_loop, box, nothing)
    after = float(error_reach(problem.lyapunov, reach, distance)[1].max())
    return 2 * (after + problem.rho * here)
