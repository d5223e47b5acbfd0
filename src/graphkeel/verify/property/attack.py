"""The attack on one case of a property."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.attack import Attack
from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.property.question import Case
from graphkeel.verify.property.squares import rewritten
from graphkeel.verify.rational import rounded_down
from graphkeel.verify.settings import CASE_ATTACK


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
