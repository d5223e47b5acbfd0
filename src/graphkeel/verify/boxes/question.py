"""Questions packed for the compiled loop: a row of a loop, or one case of a property."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.boxes.coupling import Couplings
from graphkeel.verify.boxes.explore import Hole, explore
from graphkeel.verify.boxes.pack import first_layers, no_coupling, pack, row_network
from graphkeel.verify.boxes.relax import workspace
from graphkeel.verify.conditions import inner_radius
from graphkeel.verify.kernel import Output, Stack
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.proof import slope_columns
from graphkeel.verify.property.network import BlockNetwork
from graphkeel.verify.query import Row
from graphkeel.verify.settings import BRANCH, BranchSettings, PropertySettings


class Question:
    """Whether an input of a box, outside the hole, has all of a network's outputs ≥ 0."""

    def __init__(
        self,
        name: str,
        network: BlockNetwork,
        root: Array,
        columns: tuple[int, int],
        sloped: list[int],
        settings: BranchSettings | PropertySettings,
        hole: Hole | None = None,
        couplings: Couplings | None = None,
    ) -> None:
        n = network.inputs
        self.name = name
        self.root = root  # (2, n)
        self.columns = columns  # of a tree's tables: multipliers and slopes of a leaf
        self.settings = settings
        self.net = pack(network, sloped)
        self.narrowest = (root[1] - root[0]) * settings.search.narrowest
        self.hole = hole or Hole(False, np.zeros(n), 0.0, 0.0, False)
        self.coupled = couplings
        # the one form of a row clips little off, and bounding that again costs more than it saves
        self.clips = couplings is None
        self.no_coupling = no_coupling(n)

    @property
    def couplings(self) -> list[Array]:
        """The matrices that leaves name by number."""
        return [] if self.coupled is None else self.coupled.thetas

    def number_for(self, box: Array, old: int | None, explored: int) -> int:
        """The number of the coupling for a box, 0 for none; `old` is that of the box around it."""
        if self.coupled is None:
            return 0
        first = self.coupled.first() if old is None else old
        return self.coupled.number_for(box[0], box[1], first, explored)

    def run(
        self,
        number: int,
        share: float,
        stack: Stack,
        most_waited: NDArray[np.int64],
        out: Output,
    ) -> int:
        """Explore a stack of open boxes until it is empty or something has to be decided: why."""
        why: int = explore(
            self.net,
            self.no_coupling if self.coupled is None else self.coupled[number],
            self.settings.kernel,
            workspace(self.net),
            self.hole,
            self.root,
            self.narrowest,
            share if self.clips else 1.0,
            stack,
            most_waited,
            out,
        )
        return why


def row_question(
    row: Row,
    loop: Problem,
    shift: float = 0.0,
    theta: Array | None = None,
    settings: BranchSettings = BRANCH,
) -> Question:
    """Whether g + shift > 0 somewhere on a row's box without the hole."""
    radii = (loop.hole_radius, inner_radius(loop))
    hole = Hole(row.hole, loop.equilibrium.copy(), *radii, loop.hole_norm == "2")
    return Question(
        row.name,
        row_network(row, shift),
        np.stack([row.lower, row.upper]),
        (0, slope_columns(row)),
        first_layers(row),
        settings,
        hole,
        Couplings(loop, row, theta, settings.couplings),
    )


def case_question(
    network: BlockNetwork, lower: Array, upper: Array, settings: PropertySettings
) -> Question:
    """Whether an input of a case has all inequalities ≥ 0."""
    sloped = network.unit_blocks
    columns = (network.outputs, sum(network.width(number) for number in sloped))
    return Question("case", network, np.stack([lower, upper]), columns, sloped, settings)
