"""Falsification: a violation searched for by sampling, gradient ascent, and a climb inside a cell.

Inside one activation cell every row of a condition is affine, so its maximum there is a linear
program. The climb finds violations that gradients miss; whatever it finds is confirmed in exact
rationals before it counts. A `point` is a state, shape (n,), and `points` are states, shape (m, n)
unless said otherwise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Array, Problem, region_of
from graphkeel.verify.property.network import Block, BlockNetwork, append_network
from graphkeel.verify.rational import violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict
from graphkeel.verify.settings import FALSIFY

_OUTSIDE_HOLE = ("positivity", "decrease")  # the conditions that leave the hole out


@lru_cache(maxsize=8)
def _rows(problem: Problem, condition: str) -> BlockNetwork:
    """The network from a state to the rows of a condition, violated where one of them is
    positive."""
    blocks: list[Block] = []
    terms: tuple[tuple[int, Array], ...]
    both = np.concatenate([np.eye(problem.n), -np.eye(problem.n)])
    if condition == "positivity":
        here = append_network(blocks, problem.lyapunov, 0)
        reach = problem.positivity * both
        terms = ((0, reach), (here, np.full((len(both), 1), -1.0)))
        bias = -reach @ problem.equilibrium
    elif condition == "decrease":
        after = append_network(blocks, problem.closed_loop, 0)
        there = append_network(blocks, problem.lyapunov, after)
        here = append_network(blocks, problem.lyapunov, 0)
        terms = ((there, np.ones((1, 1))), (here, np.full((1, 1), -problem.rho)))
        bias = np.zeros(1)
    elif condition == "invariance":
        after = append_network(blocks, problem.closed_loop, 0)
        terms = ((after, both),)
        bias = np.concatenate([-problem.upper, problem.lower])
    else:
        after = append_network(blocks, problem.closed_loop, 0)
        margins = _margins(problem)
        terms = ((after, -margins),)
        bias = np.full(len(margins), region_of(problem).margin)
    return BlockNetwork(problem.n, (*blocks, Block(terms, bias, relu=False)))


def _margins(problem: Problem) -> Array:
    """y_c − y_k for every rival k, as rows."""
    region = region_of(problem)
    identity = np.eye(problem.n)
    return np.asarray(identity[[region.axis]] - identity[region.rivals(problem.n)])


def violation(problem: Problem, condition: str, points: Array) -> Array:
    """How far a condition is violated at points (..., n), in float64: positive means that it
    seems violated."""
    flat = points.reshape(-1, problem.n)
    values = _rows(problem, condition).outputs_at(flat).max(axis=1, initial=-np.inf)
    return np.asarray(values.reshape(points.shape[:-1]))


def confirmed(problem: Problem, condition: str, point: Array) -> bool:
    """Whether a state violates the condition for certain; exact arithmetic decides where floats
    leave a doubt."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(violation(problem, condition, point))
        size = float(np.abs(problem.lyapunov(point)).max() + np.abs(point).max())
    clearly_satisfied = np.isfinite(size) and value < -FALSIFY.doubt * (1.0 + size)
    return not clearly_satisfied and violates(problem, condition, point)


def climb(problem: Problem, condition: str, point: Array) -> Array | None:
    """Walk uphill from cell to cell by linear programs; the highest point found, or None if none is
    higher."""
    best, value = None, float(violation(problem, condition, point))
    for _ in range(FALSIFY.cells):
        higher = _climb_once(problem, condition, point)
        if higher is None:
            break
        gained = float(violation(problem, condition, higher))
        if not gained > value + 1e-12 * abs(value):
            break
        best, value, point = higher, gained, higher
    return best


def _climb_once(problem: Problem, condition: str, point: Array) -> Array | None:
    here = _rows(problem, condition).cell(point)
    if not len(here.forms):
        return None
    row = int(np.argmax(here.forms @ point + here.constants))
    rows, ends = here.rows, here.ends
    if condition == "region":
        margins = _margins(problem)
        rows = np.concatenate([rows, -margins])
        ends = np.concatenate([ends, np.full(len(margins), -region_of(problem).margin)])
    lower, upper = problem.lower.copy(), problem.upper.copy()
    if condition in _OUTSIDE_HOLE:
        _restrict_to_side(problem, point, lower, upper)
    if (lower > upper).any():
        return None
    bounds = np.stack([lower, upper], axis=1)
    answer = linprog(-here.forms[row], A_ub=rows, b_ub=ends, bounds=bounds, method="highs")
    if answer.x is None:
        return None
    found = np.clip(answer.x, lower, upper)
    return project(problem, condition, found) if condition == "region" else found


def _restrict_to_side(problem: Problem, point: Array, lower: Array, upper: Array) -> None:
    """Restrict a linear program to the side of the hole where the point is, a convex part of the
    domain."""
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


def starts(problem: Problem, condition: str, seed: int = 0, count: int = FALSIFY.starts) -> Array:
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
    smallest = max(problem.hole_radius, 1e-6 * reach, 1e-300)
    radii = smallest * (max(reach / smallest, 1.0)) ** rng.random((quarter, 1))
    direction = rng.uniform(-1.0, 1.0, (quarter, n))
    direction /= np.abs(direction).max(axis=1, keepdims=True)
    shells = problem.equilibrium + radii * direction
    return project(problem, condition, np.concatenate([inside, corners, faces, shells]))


def project(problem: Problem, condition: str, points: Array) -> Array:
    """Project points (..., n) into the box and into what the condition is about, as far as the box
    allows: out of the hole, or to where the class has its margin."""
    points = np.clip(points, problem.lower, problem.upper)
    if condition == "region":
        return _project_onto_region(problem, points)
    if condition not in _OUTSIDE_HOLE:
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


def _project_onto_region(problem: Problem, points: Array) -> Array:
    """Lower the rivals' logits until the class has its margin."""
    region = region_of(problem)
    rivals = region.rivals(problem.n)
    projected = points.copy()
    top = points[..., [region.axis]] - region.margin
    projected[..., rivals] = np.minimum(points[..., rivals], top)
    return np.asarray(np.maximum(projected, problem.lower))


def _in_domain(problem: Problem, condition: str, points: Array) -> Array:
    """Those of the points (m, n) that the condition is about, by a float test."""
    if condition == "region":
        region = region_of(problem)
        return np.asarray(points[region.lead(points) >= region.margin])
    if condition in _OUTSIDE_HOLE:
        return np.asarray(points[~problem.in_hole(points)])
    return points


def gradient(problem: Problem, condition: str, points: Array) -> Array:
    """The gradient of `violation` at points (m, n)."""
    rows = _rows(problem, condition)
    if not rows.outputs:
        return np.zeros_like(points)
    parts = []
    for first in range(0, len(points), FALSIFY.chunk):
        values = rows.forward(points[first : first + FALSIFY.chunk])
        parts.append(rows.gradients(values, values[-1].argmax(axis=1)))
    return np.concatenate(parts) if parts else points


def _ascend(problem: Problem, condition: str, points: Array, steps: int = FALSIFY.steps) -> Array:
    """Signed gradient steps with a length in proportion to the distance from the equilibrium."""
    for step in range(steps):
        distance = np.abs(points - problem.equilibrium).max(axis=1, keepdims=True)
        length = 0.2 * distance * (1.0 - step / steps)
        direction = np.sign(gradient(problem, condition, points))
        points = project(problem, condition, points + length * direction)
    return points


def _most_violated(problem: Problem, condition: str, points: Array) -> list[Array]:
    """The points with the largest violation, absolute and relative to the distance, best first, no
    repeats."""
    allowed = _in_domain(problem, condition, points)
    value = violation(problem, condition, allowed)
    distance = np.abs(allowed - problem.equilibrium).max(axis=1)
    relative = value / np.maximum(distance, 1e-300)
    order = [
        index
        for pair in zip(np.argsort(-value), np.argsort(-relative), strict=True)
        for index in pair
    ]
    return [allowed[index] for index in dict.fromkeys(order[: 4 * FALSIFY.climbs])][
        : 2 * FALSIFY.climbs
    ]


def quick_violation(problem: Problem, condition: str) -> Array | None:
    """A confirmed counterexample from a few states, in about a millisecond; None proves nothing."""
    begin = starts(problem, condition, count=FALSIFY.quick_starts)
    points = _ascend(problem, condition, begin, FALSIFY.quick_steps)
    points = _in_domain(problem, condition, points)
    if not len(points):
        return None
    value = violation(problem, condition, points)
    worst = points[int(np.argmax(value))]
    return worst if value.max() >= 0.0 and violates(problem, condition, worst) else None


def find_violation(problem: Problem, condition: str, seed: int = 0) -> Array | None:
    """A confirmed counterexample, or None (which proves nothing)."""
    first = starts(problem, condition, seed)
    candidates = _most_violated(
        problem, condition, np.concatenate([first, _ascend(problem, condition, first)])
    )
    for point in candidates[:4]:
        if confirmed(problem, condition, point):
            return point
    for point in candidates:
        higher = climb(problem, condition, point)
        if higher is not None and confirmed(problem, condition, higher):
            return higher
    return None


class FalsifyVerifier(ConditionwiseEngine):
    """Searches for counterexamples only: `refuted` or `unknown`, never `proved`."""

    name = "falsify"

    def decide(
        self, problem: Problem, condition: str, budget: Budget | None = None
    ) -> ConditionReport:
        """Search once; the search is short, so the budget is not used."""
        point = find_violation(problem, condition)
        if point is None:
            return self.report(condition, Verdict.UNKNOWN, "the search found no violation")
        return self.report(condition, Verdict.REFUTED, counterexample=point)
