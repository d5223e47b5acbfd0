"""Looking for a violation without proving anything: sampling, gradient ascent, and the climb inside
a cell.

Inside one activation cell every row of a condition is affine, so its maximum there is a linear
program. The climb finds violations that gradients miss; whatever it finds is confirmed in exact
rationals before it is believed."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from graphkeel.verify.exact import violates
from graphkeel.verify.problem import CONDITIONS, Array, Network, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

STARTS, STEPS = 1024, 40
LOOK_STARTS, LOOK_STEPS = 64, 12  # of the first look
CLIMBS = 6  # points taken into the linear programs
CELLS = 8  # cells one climb may walk through


@dataclass(frozen=True, eq=False)
class Local:
    """A network near one point: its affine piece there, and the cell {y: normals·y + offsets ≥ 0}
    it holds in."""

    weight: Array
    bias: Array
    normals: Array
    offsets: Array


def local(network: Network, weight: Array, bias: Array, point: Array) -> Local:
    """Push the affine map y -> weight·y + bias through a network along its activations at
    `point`."""
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
    """Rows of the condition around a point as affine functions (weights, constants) with their
    cell."""
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
    normals, offsets = (
        np.concatenate([p.normals for p in parts]),
        np.concatenate([p.offsets for p in parts]),
    )
    return weight, then.bias - problem.rho * here.bias, normals, offsets


def margin(problem: Problem, condition: str, points: Array) -> Array:
    """How far a condition is violated at points (..., n), in float64: positive means it looks
    violated."""
    if condition == "invariance":
        after = problem.closed_loop(points)
        return np.asarray(np.maximum(after - problem.upper, problem.lower - after).max(axis=-1))
    here = problem.lyapunov(points)[..., 0]
    if condition == "positivity":
        distance = np.abs(points - problem.equilibrium).max(axis=-1)
        return np.asarray(problem.positivity * distance - here)
    return np.asarray(problem.lyapunov(problem.closed_loop(points))[..., 0] - problem.rho * here)


def climb(problem: Problem, condition: str, point: Array) -> Array | None:
    """Walk uphill from cell to cell by linear programs; the highest point found, or None if none is
    higher."""
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
        -weights[row],
        A_ub=-normals,
        b_ub=offsets,
        bounds=np.stack([lower, upper], axis=1),
        method="highs",
    )
    return None if answer.x is None else np.clip(answer.x, lower, upper)


def _keep_outside(problem: Problem, point: Array, lower: Array, upper: Array) -> None:
    """Confine a linear program to the side of the hole where the point is (a convex part of the
    domain)."""
    offset = point - problem.equilibrium
    axis = int(np.argmax(np.abs(offset)))
    radius = (
        problem.hole_radius
        if problem.hole_norm == "inf"
        else min(problem.hole_radius, abs(offset[axis]))
    )
    if offset[axis] >= 0.0:
        edge = problem.equilibrium[axis] + radius
        lower[axis] = max(lower[axis], np.nextafter(edge, np.inf) if radius else edge)
    else:
        edge = problem.equilibrium[axis] - radius
        upper[axis] = min(upper[axis], np.nextafter(edge, -np.inf) if radius else edge)


def starts(problem: Problem, condition: str, seed: int = 0, count: int = STARTS) -> Array:
    """States to begin from: the whole box, its corners and faces, and shells around the hole, a
    quarter each."""
    rng = np.random.default_rng(seed)
    n, lower, upper, quarter = problem.n, problem.lower, problem.upper, count // 4
    inside = rng.uniform(lower, upper, (quarter, n))
    corners = np.where(rng.random((quarter, n)) < 0.5, lower, upper)
    faces = rng.uniform(lower, upper, (quarter, n))
    axis = rng.integers(n, size=len(faces))
    faces[np.arange(len(faces)), axis] = np.where(
        rng.random(len(faces)) < 0.5, lower[axis], upper[axis]
    )
    reach = float(np.abs(np.stack([lower, upper]) - problem.equilibrium).max())
    smallest = max(problem.hole_radius, 1e-6 * reach)
    radii = smallest * (max(reach / smallest, 1.0)) ** rng.random((quarter, 1))
    direction = rng.uniform(-1.0, 1.0, (quarter, n))
    direction /= np.abs(direction).max(axis=1, keepdims=True)
    shells = problem.equilibrium + radii * direction
    return admit(problem, condition, np.concatenate([inside, corners, faces, shells]))


def admit(problem: Problem, condition: str, points: Array) -> Array:
    """Project points into the box and out of the hole (as far as the box allows)."""
    points = np.clip(points, problem.lower, problem.upper)
    if condition == "invariance":
        return points
    offset = points - problem.equilibrium
    if problem.hole_norm == "inf":
        size = np.abs(offset).max(axis=-1, keepdims=True)
    else:
        size = np.sqrt((offset**2).sum(axis=-1, keepdims=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = np.where(size > 0.0, problem.hole_radius * (1.0 + 1e-12) / size, 1.0)
    pushed = problem.equilibrium + offset * np.maximum(stretch, 1.0)
    return np.asarray(np.clip(pushed, problem.lower, problem.upper))


def pull_back(network: Network, points: Array, above: Array) -> Array:
    """The gradient of above·network at points (m, n_in), `above` (m, n_out)."""
    masks, value = [], points
    for layer in network.layers[:-1]:
        value = value @ layer.weight.T + layer.bias
        masks.append(value > 0.0)
        value = np.maximum(value, 0.0)
    gradient = above @ network.layers[-1].weight
    for layer, mask in zip(reversed(network.layers[:-1]), reversed(masks), strict=True):
        gradient = (gradient * mask) @ layer.weight
    return np.asarray(gradient)


def gradient(problem: Problem, condition: str, points: Array) -> Array:
    """The gradient of `margin` at points (m, n)."""
    count, n = points.shape
    if condition == "invariance":
        after = problem.closed_loop(points)
        excess = np.concatenate([after - problem.upper, problem.lower - after], axis=1)
        worst = excess.argmax(axis=1)
        above = np.zeros((count, n))
        above[np.arange(count), worst % n] = np.where(worst < n, 1.0, -1.0)
        return pull_back(problem.closed_loop, points, above)
    one = np.ones((count, 1))
    here = pull_back(problem.lyapunov, points, one)
    if condition == "positivity":
        offset = points - problem.equilibrium
        axis = np.abs(offset).argmax(axis=1)
        rows = np.arange(count)
        result = -here
        result[rows, axis] += problem.positivity * np.sign(offset[rows, axis])
        return result
    after = problem.closed_loop(points)
    then = pull_back(problem.closed_loop, points, pull_back(problem.lyapunov, after, one))
    return np.asarray(then - problem.rho * here)


def ascend(problem: Problem, condition: str, points: Array, steps: int = STEPS) -> Array:
    """Signed gradient steps with a length in proportion to the distance from the equilibrium."""
    for step in range(steps):
        distance = np.abs(points - problem.equilibrium).max(axis=1, keepdims=True)
        length = 0.2 * distance * (1.0 - step / steps)
        points = admit(
            problem, condition, points + length * np.sign(gradient(problem, condition, points))
        )
    return points


def promising(problem: Problem, condition: str, points: Array) -> list[Array]:
    """The points with the largest violation, absolute and relative to the distance, best first, no
    repeats."""
    allowed = points if condition == "invariance" else points[~problem.in_hole(points)]
    value = margin(problem, condition, allowed)
    distance = np.abs(allowed - problem.equilibrium).max(axis=1)
    relative = value / np.maximum(distance, 1e-300)
    order = [
        index
        for pair in zip(np.argsort(-value), np.argsort(-relative), strict=True)
        for index in pair
    ]
    return [allowed[index] for index in dict.fromkeys(order[: 4 * CLIMBS])][: 2 * CLIMBS]


def first_look(problem: Problem, condition: str) -> Array | None:
    """A confirmed counterexample near a handful of states, for about a millisecond; None proves
    nothing."""
    points = ascend(problem, condition, starts(problem, condition, count=LOOK_STARTS), LOOK_STEPS)
    if condition != "invariance":
        points = points[~problem.in_hole(points)]
    if not len(points):
        return None
    value = margin(problem, condition, points)
    worst = points[int(np.argmax(value))]
    return worst if value.max() >= 0.0 and violates(problem, condition, worst) else None


def find_violation(problem: Problem, condition: str, seed: int = 0) -> Array | None:
    """A confirmed counterexample, or None (which proves nothing)."""
    first = starts(problem, condition, seed)
    candidates = promising(
        problem, condition, np.concatenate([first, ascend(problem, condition, first)])
    )
    for point in candidates[:4]:
        if violates(problem, condition, point):
            return point
    for point in candidates:
        higher = climb(problem, condition, point)
        if higher is not None and violates(problem, condition, higher):
            return higher
    return None


class FalsifyVerifier:
    """Searches for counterexamples only: `refuted` or `unknown`, never `proved`."""

    name = "falsify"

    def supports(self, problem: Problem) -> str | None:
        return None

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        check_conditions(conditions)
        start = time.monotonic()
        reports = tuple(self.decide(problem, condition) for condition in conditions)
        return VerifyReport(reports, time.monotonic() - start)

    def decide(self, problem: Problem, condition: str) -> ConditionReport:
        start = time.monotonic()
        point = find_violation(problem, condition)
        seconds = time.monotonic() - start
        if point is None:
            return ConditionReport(
                condition,
                Verdict.UNKNOWN,
                self.name,
                "the search found no violation",
                seconds=seconds,
            )
        return ConditionReport(
            condition, Verdict.REFUTED, self.name, counterexample=point, seconds=seconds
        )
