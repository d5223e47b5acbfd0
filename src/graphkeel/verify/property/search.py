"""One case of a property, packed for the search, and the compiled loop on it."""

from __future__ import annotations

import time
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.kernel import Output
from graphkeel.verify.problem import Array
from graphkeel.verify.property.attack import Attack
from graphkeel.verify.property.explore import explore
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.property.pack import pack, too_large, with_inequalities
from graphkeel.verify.property.question import Case, Inequality
from graphkeel.verify.property.relax import workspace
from graphkeel.verify.result import Budget
from graphkeel.verify.search import Search
from graphkeel.verify.settings import PROPERTY, PropertySettings


class CaseKernel:
    """No input of the box has all inequalities ≥ 0; nothing is coupled here."""

    def __init__(self, network: BlockNetwork, case: Case, settings: PropertySettings) -> None:
        self.settings = settings
        self.name = "case"
        self.root: Array = np.stack([case.lower, case.upper])
        self.columns = (len(case.constant), network.relus)
        self.couplings: list[Array] = []
        self.net = pack(with_inequalities(network, case))
        self.narrowest = (case.upper - case.lower) * settings.search.narrowest

    def number_for(self, box: Array, old: int | None, explored: int) -> int:
        """No coupling."""
        return 0

    def run(
        self,
        number: int,
        share: float,
        boxes: Array,
        clipped: NDArray[np.bool_],
        waited: NDArray[np.int64],
        most_waited: NDArray[np.int64],
        out: Output,
    ) -> int:
        """Explore a stack of open boxes."""
        work = workspace(self.net, self.root.shape[1])
        settings = self.settings
        steps, combined = settings.slope_steps, settings.combined_weight
        why: int = explore(
            self.net, work, steps, combined, share, self.narrowest, boxes, clipped, out
        )
        return why


def case_search(attack: Attack, budget: Budget, keep: bool) -> Search:
    """The search of a case, with the attack on it for confirming what looks like a member."""
    settings = attack.settings
    kernel = CaseKernel(attack.network, attack.case, settings)
    search = Search(kernel, budget, 0.0, attack, keep=keep, settings=settings.search)
    if too_large(attack.joined, attack.case, settings.max_magnitude):
        search.reason = "numbers come too near to the largest float"
    return search


@cache
def warm_up() -> None:
    """Load the compiled kernels (compile them on the very first use), so that no search pays for
    it."""
    first = Block(((0, np.eye(1)),), np.zeros(1), relu=True)
    last = Block(((1, np.eye(1)),), np.zeros(1), relu=False)
    network = BlockNetwork(1, (first, last))
    below = Inequality({1: Fraction(-1)}, Fraction(-1))  # −relu(x) − 1 ≥ 0: never
    case = Case.of([(Fraction(-1), Fraction(1))], [below], 1)
    budget = Budget(threads=1)
    kernel = CaseKernel(network, case, PROPERTY)
    Search(kernel, budget, time.monotonic() + 60.0, Attack(network, case)).run()
