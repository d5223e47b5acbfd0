"""One row, packed for the search, and the compiled loop on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.branch.coupling import Couplings
from graphkeel.verify.branch.explore import Hole, explore
from graphkeel.verify.branch.pack import pack
from graphkeel.verify.branch.relax import workspace
from graphkeel.verify.conditions import inner_radius
from graphkeel.verify.kernel import Output
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.proof import slope_columns
from graphkeel.verify.query import Row
from graphkeel.verify.settings import BRANCH, BranchSettings


class RowKernel:
    """g + shift ≤ 0 on a row's box without the hole.

    `loop` gives the hole and the couplings; `theta` is a coupling (K, K) for the whole box.
    """

    def __init__(
        self,
        row: Row,
        *,
        loop: Problem | None = None,
        shift: float = 0.0,
        theta: Array | None = None,
        settings: BranchSettings = BRANCH,
    ) -> None:
        self.settings = settings
        self.row = row
        self.name = row.name
        self.root: Array = np.stack([row.lower, row.upper])
        self.columns = (0, slope_columns(row))
        self.net = pack(row, shift)
        self.hole = _hole_of(row, loop)
        self.narrowest = (row.upper - row.lower) * settings.search.narrowest
        self.coupled = Couplings(loop, row, theta, settings.couplings)

    @property
    def couplings(self) -> list[Array]:
        """The matrices that leaves name."""
        return self.coupled.thetas

    def number_for(self, box: Array, old: int | None, explored: int) -> int:
        """The number of the coupling for a box."""
        first = self.coupled.first() if old is None else old
        return self.coupled.number_for(box[0], box[1], first, explored)

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
        why: int = explore(
            self.net,
            self.coupled[number],
            number,
            self.settings.kernel,
            workspace(self.row),
            self.hole,
            self.row.strict,
            self.narrowest,
            boxes,
            waited,
            most_waited,
            out,
        )
        return why


def _hole_of(row: Row, loop: Problem | None) -> Hole:
    """The hole as the kernel sees it."""
    if loop is None:
        return Hole(False, np.zeros(row.n), 0.0, 0.0, False)
    centre = loop.equilibrium.copy()
    return Hole(row.hole, centre, loop.hole_radius, inner_radius(loop), loop.hole_norm == "2")
