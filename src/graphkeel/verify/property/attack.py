"""The attack on one case of a property."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.attack import Attack, Part
from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.property.question import Case
from graphkeel.verify.rational import rounded_down
from graphkeel.verify.settings import CASE_ATTACK


class CaseAttack(Attack):
    """The search for a member of one case."""

    every = True

    def __init__(self, network: BlockNetwork, case: Case) -> None:
        super().__init__(case.joined(network), CASE_ATTACK)
        self.case = case
        self.whole = network  # without the inequalities
        # the floats inside the box: its ends rounded inward
        self.lower = np.array([-rounded_down(-low) for low, _ in case.ends])
        self.upper = np.array([rounded_down(high) for _, high in case.ends])

    def search_from(self, seed: int) -> Array | None:
        """A member, unless the box is thinner than a float can be."""
        return super().search_from(seed) if (self.lower <= self.upper).all() else None

    def starts(self, rng: np.random.Generator, count: int) -> Array:
        """The middle of the box, and random inputs."""
        points = rng.uniform(self.lower, self.upper, (count, len(self.lower)))
        points[0] = 0.5 * self.lower + 0.5 * self.upper
        return self.project(points)

    def project(self, points: Array) -> Array:
        """Into the box."""
        return np.asarray(np.clip(points, self.lower, self.upper))

    def step(self, points: Array, done: int, steps: int) -> Array:
        """A share of the box's widths, which falls by a quarter every time."""
        return np.asarray(0.25 * 0.75**done * (self.upper - self.lower))

    def part_around(self, point: Array) -> Part:
        """The box."""
        return Part(self.lower, self.upper, np.zeros((0, len(point))), np.zeros(0))

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
