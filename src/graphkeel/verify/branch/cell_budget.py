"""When to stop cutting a box and look at its cells: a budget for exact work inside a fast search.

Exact linear programs settle what cutting never does, and cost a thousand times as much a box. So
they are tried on boxes with few units left after some cuts in vain, they may take a share of the
time, and success makes them more likely."""

from __future__ import annotations

import threading
import time

import numpy as np

from graphkeel.verify.branch.cells import CellLeaf, Cells
from graphkeel.verify.problem import Array

# of the time so far may go into looking at cells; boxes too small to cut are looked at anyway
SHARE = 0.25
CUTS_IN_VAIN = 12  # cuts that did not settle a box with few units: cutting on may never do
RETRY = -64  # cuts after cells did not help, before they are tried again


class CellBudget:
    """How long cutting goes on in vain before cells are looked at; `cuts` is read by the kernel.

    Reads: the clock. Writes: `cuts` and `seconds`, the time spent on cells.
    """

    def __init__(self, cells: Cells | None, deadline: float) -> None:
        self.cells = cells
        self.deadline = deadline
        self.cuts = np.array([CUTS_IN_VAIN], dtype=np.int64)
        self.start = time.monotonic()
        self.seconds = 0.0
        self.lock = threading.Lock()

    def allows(self) -> bool:
        """Whether a box that could still be cut may be looked at now."""
        affordable = self.seconds <= SHARE * (time.monotonic() - self.start)
        return bool(self.cuts[0] < CUTS_IN_VAIN) or affordable

    def look(self, box: Array) -> CellLeaf:
        """The cells of a box, decided; nothing once the time is over.

        Args:
            box: its lower and upper ends, shape (2, n).
        """
        if self.cells is None or time.monotonic() >= self.deadline:
            return CellLeaf()
        with self.lock:
            begin = time.monotonic()
            leaf = self.cells.decide(box[0], box[1], self.deadline)
            self.seconds += time.monotonic() - begin
        return leaf

    def helped(self) -> None:
        self.cuts[0] //= 2  # where cells helped once, larger boxes are worth a look, too

    def in_vain(self) -> None:
        self.cuts[0] = CUTS_IN_VAIN
