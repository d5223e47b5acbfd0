"""Falsification: the attack on the conditions of a loop, from states at all distances of the
equilibrium."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.attack import Attack, Part
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Array, Problem, region_of
from graphkeel.verify.property.network import Block, BlockNetwork, append_network
from graphkeel.verify.rational import violates
from graphkeel.verify.result import Budget, ConditionReport, Verdict
from graphkeel.verify.settings import FALSIFY

_OUTSIDE_HOLE = ("positivity", "decrease")  # the conditions that leave the hole out


class ConditionAttack(Attack):
    """The search for a state that violates one condition."""

    every = False

    def __init__(self, problem: Problem, condition: str) -> None:
        super().__init__(_rows(problem, condition), problem.lower, problem.upper, FALSIFY)
        self.problem = problem
        self.condition = condition

    def starts(self, rng: np.random.Generator, count: int) -> Array:
        """The whole box, its corners and faces, and shells around the hole, a quarter each."""
        problem = self.problem
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
        return self.project(np.concatenate([inside, corners, faces, shells]))

    def project(self, points: Array) -> Array:
        """Into the box and into what the condition is about: out of the hole, or to where the class
        has its margin."""
        problem = self.problem
        points = super().project(points)
        if self.condition == "region":
            return _project_onto_region(problem, points)
        if self.condition not in _OUTSIDE_HOLE:
            return points
        offset = points - problem.equilibrium
        if problem.hole_norm == "inf":
            size = np.abs(offset).max(axis=-1, keepdims=True)
        else:
            size = np.sqrt((offset**2).sum(axis=-1, keepdims=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            stretch = np.where(size > 0.0, problem.hole_radius * (1.0 + 1e-12) / size, 1.0)
        pushed = problem.equilibrium + offset * np.maximum(stretch, 1.0)
        return super().project(pushed)

    def margins(self, points: Array) -> Array:
        """The violation; none where the condition says nothing."""
        problem, found = self.problem, super().margins(points)
        if self.condition == "region":
            region = region_of(problem)
            found[region.lead(points) < region.margin] = -np.inf
        elif self.condition in _OUTSIDE_HOLE:
            found[problem.in_hole(points)] = -np.inf
        return found

    def step(self, points: Array, done: int, steps: int) -> Array:
        """In proportion to the distance from the equilibrium."""
        return np.asarray(0.2 * self._distance(points)[:, None] * (1.0 - done / steps))

    def _distance(self, points: Array) -> Array:
        return np.asarray(np.abs(points - self.problem.equilibrium).max(axis=1))

    def rank(self, points: Array) -> list[Array]:
        """Those with the largest violation, absolute and relative to the distance, no repeats."""
        value = self.margins(points)
        points, value = points[value > -np.inf], value[value > -np.inf]
        relative = value / np.maximum(self._distance(points), 1e-300)
        pairs = zip(np.argsort(-value), np.argsort(-relative), strict=True)
        order = [index for pair in pairs for index in pair]
        most = 2 * self.settings.climbs
        return [points[index] for index in dict.fromkeys(order[: 2 * most])][:most]

    def part_around(self, point: Array) -> Part:
        """The side of the hole where the point is, or the region."""
        if self.condition == "region":
            rows = _margins(self.problem)
            ends = np.full(len(rows), -region_of(self.problem).margin)
            return Part(self.lower, self.upper, -rows, ends)
        part = super().part_around(point)
        if self.condition not in _OUTSIDE_HOLE:
            return part
        lower, upper = self.lower.copy(), self.upper.copy()
        _restrict_to_side(self.problem, point, lower, upper)
        return part._replace(lower=lower, upper=upper)

    def _top_of_cell(self, point: Array) -> Array | None:
        """The solver's tolerance may leave the region."""
        found = super()._top_of_cell(point)
        if found is None or self.condition != "region":
            return found
        return self.project(found)

    def holds_at(self, point: Array) -> bool:
        """Whether a state violates the condition for certain."""
        return violates(self.problem, self.condition, point)


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


def _project_onto_region(problem: Problem, points: Array) -> Array:
    """Lower the rivals' logits until the class has its margin."""
    region = region_of(problem)
    rivals = region.rivals(problem.n)
    projected = points.copy()
    top = points[..., [region.axis]] - region.margin
    projected[..., rivals] = np.minimum(points[..., rivals], top)
    return np.asarray(np.maximum(projected, problem.lower))


def find_violation(problem: Problem, condition: str) -> Array | None:
    """A confirmed counterexample, or None (which proves nothing)."""
    return ConditionAttack(problem, condition).search()


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
