"""When to stop cutting a box and look at its cells: a budget for exact work inside a fast search.

Exact linear programs settle what cutting never does, and cost a thousand times as much a box. So
they are tried on boxes with few units left after many cuts in vain, all looks together may take a
share of the time, each look alone no more than what is left of that share, and success makes the
next look come earlier. Boxes too small to cut are looked at whatever it takes."""

from __future__ import annotations

import math
import threading
import time

import numpy as np

from graphkeel.verify.branch.cells import CellLeaf, Cells
from graphkeel.verify.problem import Array

SHARE = 0.1  # of the processor time so far may go into looking at cells
LEAST_SECONDS = 0.01  # of one look: less decides nothing
CUTS_IN_VAIN = 24  # cuts that did not settle a box with few units: cutting on may never do
RETRY = -64  # cuts after cells did not help, before they are tried again


class CellBudget:
    """How long cutting goes on in vain before cells are looked at; `cuts` is read by the kernel.

    Reads: the processor's clock. Writes: `cuts` and `seconds`, the time spent on cells.

    Args:
        cells: the exact row, or None where there is none.
        deadline: of the monotonic clock; no look begins after it.
    """

    def __init__(self, cells: Cells | None, deadline: float) -> None:
        self.cells = cells
        self.deadline = deadline
        self.cuts = np.array([CUTS_IN_VAIN], dtype=np.int64)
        self.start = time.process_time()
        self.seconds = 0.0
        self.lock = threading.Lock()

    def left(self) -> float:
        """The seconds of processor time that cells may take now."""
        return SHARE * (time.process_time() - self.start) - self.seconds

    def look(self, box: Array, stuck: bool) -> CellLeaf:
        """The cells of a box, decided; nothing once the time is over.

        Args:
            box: its lower and upper ends, shape (2, n).
            stuck: whether the box can no longer be cut, so that no look is too long.
        """
        if self.cells is None or time.monotonic() >= self.deadline:
            return CellLeaf()
        with self.lock:
            left = math.inf if stuck else self.left()
            if left <= 0.0:
                return CellLeaf()
            begin = time.thread_time()
            until = begin + max(left, LEAST_SECONDS)
            leaf = self.cells.decide(box[0], box[1], until, self.deadline)
            self.seconds += time.thread_time() - begin
        return leaf

    def helped(self) -> None:
        """Cells proved a box: larger boxes are worth a look, too."""
        self.cuts[0] //= 2

    def in_vain(self) -> None:
        """Cells did not help: cut on for as long as at the start."""
        self.cuts[0] = CUTS_IN_VAIN
