"""Looking for a violation without proving anything: sampling, gradient ascent, and the climb inside a cell.

Inside one activation cell every row of a condition is affine, so its maximum there is a linear program. The climb
finds violations that gradients miss; whatever it finds is confirmed in exact rationals before it is believed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from graphkeel.verify.exact import violates
from graphkeel.verify.problem import CONDITIONS, Array, Network, Problem
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

STARTS, STEPS = 1024, 40
CLIMBS = 6  # points taken into the linear programs
CELLS = 8  # cells one climb may walk through


@dataclass(frozen=True, eq=False)
class Local:
    """A network near one point: its affine piece there, and the cell {y: normals·y + offsets ≥ 0} it holds in."""

    weight: Array
    bias: Array
    normals: Array
    offsets: Array


def local(network: Network, weight: Array, bias: Array, point: Array) -> Local:
    """Push the affine map y -> weight·y + bias through a network along its activations at `point`."""
    normals, offsets = [np.zeros((0, point.shape[0]))], [np.zeros(0)]
    for index, layer in enumerate(network.layers):
        weight, bias = layer.weight @ weight, layer.weight @ bias + layer.bias
        if index + 1 < len(network.layers):
            active = weight @ point + bias >= 0.0
            sign = np.where(active, 1.0, -1.0)
            normals.append(sign[:, None] * weight)
            offsets.append(sign * bias)
            weight, bias = weight * active[:, None], bias * active
    return Local(weight, bias, np.concatenate(normals), np.concatenate(offsets))


def pieces(problem: Problem, condition: str, point: Array) -> tuple[Array, Array, Array, Array]:
    """Rows of the condition around a point as affine functions (weights, constants) with their cell."""
    n = problem.n
    identity, zero = np.eye(n), np.zeros(n)
    after = local(problem.closed_loop, identity, zero, point)
    if condition == "invariance":
        weights = np.concatenate([after.weight, -after.weight])
        constants = np.concatenate([after.bias - problem.upper, problem.lower - after.bias])
        return weights, constants, after.normals, after.offsets
    here = local(problem.lyapunov, identity, zero, point)
    if condition == "positivity":
        reach = problem.positivity * np.concatenate([identity, -identity])
        constants = -reach @ problem.equilibrium - here.bias
        return reach - here.weight, constants, here.normals, here.offsets
    then = local(problem.lyapunov, after.weight, after.bias, point)
    weight = then.weight - problem.rho * here.weight
    parts = (after, then, here)
    normals, offsets = np.concatenate([p.normals for p in parts]), np.concatenate([p.offsets for p in parts])
    return weight, then.bias - problem.rho * here.bias, normals, offsets


def margin(problem: Problem, condition: str, points: Array) -> Array:
    """How far a condition is violated at points (..., n), in float64: positive means it looks violated."""
    if condition == "invariance":
        after = problem.closed_loop(points)
        return np.asarray(np.maximum(after - problem.upper, problem.lower - after).max(axis=-1))
    here = problem.lyapunov(points)[..., 0]
    if condition == "positivity":
        distance = np.abs(points - problem.equilibrium).max(axis=-1)
        return np.asarray(problem.positivity * distance - here)
    return np.asarray(problem.lyapunov(problem.closed_loop(points))[..., 0] - problem.rho * here)


def climb(problem: Problem, condition: str, point: Array) -> Array | None:
    """Walk uphill from cell to cell by linear programs; the highest point found, or None if none is higher."""
    best, value = None, float(margin(problem, condition, point))
    for _ in range(CELLS):
        higher = _climb_once(problem, condition, point)
        if higher is None:
            break
        gained = float(margin(problem, condition, higher))
        if not gained > value + 1e-12 * abs(value):
            break
        best, value, point = higher, gained, higher
    return best


def _climb_once(problem: Problem, condition: str, point: Array) -> Array | None:
    weights, constants, normals, offsets = pieces(problem, condition, point)
    row = int(np.argmax(weights @ point + constants))
    lower, upper = problem.lower.copy(), problem.upper.copy()
    if condition != "invariance":
        _keep_outside(problem, point, lower, upper)
    if (lower > upper).any():
        return None
    answer = linprog(
        -weights[row], A_ub=-normals, b_ub=offsets, bounds=np.stack([lower, upper], axis=1), method="highs"
    )
    return None if answer.x is None else np.clip(answer.x, lower, upper)


def _keep_outside(problem: Problem, point: Array, lower: Array, upper: Array) -> None:
    """Confine a linear program to the side of the hole where the point is (a convex part of the domain)."""
    offset = point - problem.equilibrium
    axis = int(np.argmax(np.abs(offset)))
    radius = problem.hole_radius if problem.hole_norm == "inf" else min(problem.hole_radius, abs(offset[axis]))
    if offset[axis] >= 0.0:
        edge = problem.equilibrium[axis] + radius
        lower[axis] = max(lower[axis], np.nextafter(edge, np.inf) if radius else edge)
    else:
        edge = problem.equilibrium[axis] - radius
        upper[axis] = min(upper[axis], np.nextafter(edge, -np.inf) if radius else edge)
