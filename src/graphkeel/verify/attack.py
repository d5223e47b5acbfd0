"""The search for a violation: sampled inputs, gradient steps, linear programs inside cells.

Inside one activation cell a network is affine, so its maximum there is a linear program. The climb
from cell to cell finds violations that gradients miss. All of it is in floats and decides nothing:
a point counts once it was replayed in exact rationals. A `point` is an input, shape (n,), `points`
are inputs, shape (m, n).

Two sets are searched: members of a property's case, where all outputs of a network are ≥ 0, and
states that violate a loop's condition, from all distances of the equilibrium, where one is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.problem import Array, Problem, region_of
from graphkeel.verify.property.network import Block, BlockNetwork, append_network
from graphkeel.verify.property.question import Case
from graphkeel.verify.property.squares import rewritten
from graphkeel.verify.rational import rounded_down, violates
from graphkeel.verify.settings import CASE_ATTACK, FALSIFY, AttackSettings


class Part(NamedTuple):
    """A convex part of a domain: a box, and rows·x ≤ ends."""

    lower: Array
    upper: Array
    rows: Array
    ends: Array


class Attack(ABC):
    """The search in one set, from seeded inputs; it also confirms what others point to. Its domain
    is a box, unless a class says otherwise."""

    every: ClassVar[bool]  # whether a member has all outputs ≥ 0, or one of them

    def __init__(
        self, network: BlockNetwork, lower: Array, upper: Array, settings: AttackSettings
    ) -> None:
        self.network = network
        self.lower = lower
        self.upper = upper
        self.settings = settings
        self.climbs = settings.confirming_climbs  # that are left
        self.seed = 0
        self.searched = False

    @abstractmethod
    def holds_at(self, point: Array) -> bool:
        """Whether a point is a member, in exact arithmetic."""

    def starts(self, rng: np.random.Generator, count: int) -> Array:
        """Inputs of the domain to begin from: the middle of the box, and random ones."""
        points = rng.uniform(self.lower, self.upper, (count, len(self.lower)))
        points[0] = 0.5 * self.lower + 0.5 * self.upper
        return self.project(points)

    def project(self, points: Array) -> Array:
        """Points moved into the domain, as far as its box allows."""
        return np.asarray(np.clip(points, self.lower, self.upper))

    def step(self, points: Array, done: int, steps: int) -> Array:
        """How far each point moves along every axis after so many of the steps: a share of the
        box's widths, which falls by a quarter every time."""
        return np.asarray(0.25 * 0.75**done * (self.upper - self.lower))

    def part_around(self, point: Array) -> Part:
        """A convex part of the domain with the point."""
        return Part(self.lower, self.upper, np.zeros((0, len(point))), np.zeros(0))

    def rank(self, points: Array) -> list[Array]:
        """Those that a climb may begin from, best first."""
        return []

    def rounded(self, point: Array) -> Array:
        """The point as it is preferred in an answer."""
        return point

    def quick(self) -> Array | None:
        """A member that a few inputs show, in about a millisecond; None proves nothing."""
        settings = self.settings
        if self.searched:
            return None
        points = self.starts(np.random.default_rng(0), settings.quick_samples)
        *_, points = self._ascent(points, settings.quick_steps)
        values = self.margins(points)
        worst = points[int(np.argmax(values))]
        return worst if values.max() >= 0.0 and self.holds_at(worst) else None

    def search(self) -> Array | None:
        """A member, once; None proves nothing."""
        if self.searched:
            return None
        self.searched = True
        return self.search_from(0)

    def search_again(self) -> Array | None:
        """A member, from new inputs."""
        self.seed += 1
        return self.search_from(self.seed)

    def search_from(self, seed: int) -> Array | None:
        """A member, from the inputs of a seed."""
        settings = self.settings
        first = self.starts(np.random.default_rng(seed), settings.samples)
        if settings.starts < len(first):
            first = first[np.argsort(-self.margins(first))[: settings.starts]]
        points = first
        for points in self._ascent(first, settings.steps):
            found = self._confirm_best(points) if settings.eager else None
            if found is not None:
                return found
        return self._climb_from(self.rank(np.concatenate([first, points])))

    def _confirm_best(self, points: Array) -> Array | None:
        values = self.margins(points)
        best = int(np.argmax(values))
        return self(points[best]) if values[best] >= -self.settings.near_zero else None

    def _ascent(self, points: Array, steps: int) -> Iterator[Array]:
        """The points, then after each signed gradient step."""
        yield points
        for done in range(steps):
            direction = np.sign(self.gradient(points))
            points = self.project(points + self.step(points, done, steps) * direction)
            yield points

    def _climb_from(self, points: list[Array]) -> Array | None:
        for point in points[:4]:
            if self.is_member(point):
                return point
        for point in points:
            higher = self.climb(point)
            if higher is not None and self.is_member(higher):
                return higher
        return None

    def __call__(self, point: Array) -> Array | None:
        """The point, or one that a climb from it reaches, if that is a member; in preferred
        numbers if they are."""
        short = self.rounded(point)
        if self.is_member(short):
            return short
        higher = None
        if self.climbs > 0:
            self.climbs -= 1
            higher = self.climb(point)
        if higher is not None and self.is_member(short := self.rounded(higher)):
            return short
        others = [x for x in (self.project(point), higher) if x is not None and x is not short]
        return next((x for x in others if self.is_member(x)), None)

    def is_member(self, point: Array) -> bool:
        """Whether a point is a member; exact arithmetic decides where floats leave a doubt."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.network.forward(point[None])
            size = max(float(np.abs(part).max(initial=0.0)) for part in values)
            margin = float(self._margins_of(values[-1])[0])
        clearly_not = np.isfinite(size) and margin < -self.settings.doubt * (1.0 + size)
        return not clearly_not and self.holds_at(point)

    def margins(self, points: Array) -> Array:
        """How far each point is a member, in float64: positive means that it seems to be one."""
        return self._margins_of(self.network.outputs_at(points))

    def _margins_of(self, outputs: Array) -> Array:
        if self.every:
            return np.asarray(outputs.min(axis=1))
        return np.asarray(outputs.max(axis=1, initial=-np.inf))

    def _deciding(self, outputs: Array) -> NDArray[np.int64]:
        """Which output decides, shape (m,)."""
        return outputs.argmin(axis=1) if self.every else outputs.argmax(axis=1)

    def gradient(self, points: Array) -> Array:
        """The gradient of `margins`."""
        if not self.network.outputs:
            return np.zeros_like(points)
        parts = []
        for first in range(0, len(points), self.settings.chunk):
            values = self.network.forward(points[first : first + self.settings.chunk])
            parts.append(self.network.gradients(values, self._deciding(values[-1])))
        return np.concatenate(parts) if parts else points

    def climb(self, point: Array) -> Array | None:
        """Walk uphill from cell to cell by linear programs; the highest point found, or None if
        none is higher."""
        best, value = None, self._value_at(point)
        for _ in range(self.settings.cells):
            higher = self._top_of_cell(point)
            if higher is None:
                break
            gained = self._value_at(higher)
            if not gained > value + 1e-12 * abs(value):
                break
            best, value, point = higher, gained, higher
        return best

    def _value_at(self, point: Array) -> float:
        return float(self._margins_of(self.network.outputs_at(point[None]))[0])

    def _top_of_cell(self, point: Array) -> Array | None:
        """The input of the point's activation cell where the deciding output is largest; of
        several that all count, the smallest."""
        from scipy.optimize import linprog

        cell, part = self.network.cell(point), self.part_around(point)
        if not len(cell.forms) or (part.lower > part.upper).any():
            return None
        n = len(point)
        rows, ends = np.vstack([cell.rows, part.rows]), np.concatenate([cell.ends, part.ends])
        bounds: list[tuple[float | None, float | None]]
        bounds = list(zip(part.lower.tolist(), part.upper.tolist(), strict=True))
        if self.every:  # a variable t ≤ every output
            above = np.hstack([-cell.forms, np.ones((len(cell.forms), 1))])
            rows = np.vstack([above, np.hstack([rows, np.zeros((len(rows), 1))])])
            ends = np.concatenate([cell.constants, ends])
            bounds.append((None, 1.0))
            goal = np.append(np.zeros(n), -1.0)
        else:
            goal = -cell.forms[int(np.argmax(cell.forms @ point + cell.constants))]
        try:
            answer = linprog(goal, A_ub=rows, b_ub=ends, bounds=bounds)
        except ValueError:
            return None
        if answer.x is None:
            return None
        return np.asarray(np.clip(answer.x[:n], part.lower, part.upper))


class CaseAttack(Attack):
    """The search for a member of one case."""

    every = True

    def __init__(self, network: BlockNetwork, case: Case) -> None:
        # the floats inside the box: its ends rounded inward
        lower = np.array([-rounded_down(-low) for low, _ in case.ends])
        upper = np.array([rounded_down(high) for _, high in case.ends])
        self.rewritten = rewritten(case, network)
        super().__init__(self.rewritten.network, lower, upper, CASE_ATTACK)
        self.case = case
        self.whole = network  # without the inequalities

    def search_from(self, seed: int) -> Array | None:
        """A member, unless the box is thinner than a float can be."""
        return super().search_from(seed) if (self.lower <= self.upper).all() else None

    def holds_at(self, point: Array) -> bool:
        """Whether an input is in the case."""
        return self.case.holds_at(self.whole, point)

    def rounded(self, point: Array) -> Array:
        """The nearest float32 numbers inside the box; where there are none, those outside."""
        with np.errstate(over="ignore"):
            short = self.project(point).astype(np.float32)
            lowered, raised = (np.nextafter(short, np.float32(end)) for end in (-np.inf, np.inf))
        short = np.where(short > self.upper, lowered, np.where(short < self.lower, raised, short))
        return np.asarray(short, dtype=np.float64)


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
            found[region.margins(points) < region.margin] = -np.inf
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
