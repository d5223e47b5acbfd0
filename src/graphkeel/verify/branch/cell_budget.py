"""When to stop cutting a box and look at its cells: a budget for exact work inside a fast search.

Exact linear programs settle what cutting never does, and cost a thousand times as much a box. So
they are tried on boxes with few units left after many cuts in vain, all looks together may take a
share of the time, and each look alone no more than what is left of that share. A look that proves a
box makes the next one come earlier and raises the share, one in vain sets both back. Boxes too
small to cut are looked at whatever it takes, and show that cutting does not end: from then on looks
are not limited."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import numpy as np

from graphkeel.verify.branch.cells import CellLeaf, Cells
from graphkeel.verify.problem import Array
from graphkeel.verify.settings import CellSettings


class CellBudget:
    """How long cutting goes on in vain before cells are looked at; `cuts` is read by the kernel.

    Reads: the processor's clock. Writes: `cuts` and `seconds`, the time spent on cells.

    Args:
        cells: the exact row, or None where there is none.
        expired: whether the search's own time is over.
        n: the number of axes.
    """

    def __init__(
        self, cells: Cells | None, expired: Callable[[], bool], n: int, settings: CellSettings
    ) -> None:
        self.settings = settings
        self.cells = cells
        self.expired = expired
        self.most_cuts = settings.cuts + settings.cuts_per_axis * n
        self.cuts = np.array([self.most_cuts], dtype=np.int64)
        self.share = settings.share
        self.tight = False  # whether a box was too small to cut
        self.start = time.process_time()
        self.seconds = 0.0
        self.lock = threading.Lock()

    def left(self) -> float:
        """The seconds of processor time that cells may take now."""
        return self.share * (time.process_time() - self.start) - self.seconds

    def look(self, box: Array, stuck: bool) -> CellLeaf | None:
        """The cells of a box, decided; None where the budget does not allow to look now.

        Args:
            box: its lower and upper ends, shape (2, n).
        """
        if self.cells is None or self.expired():
            return CellLeaf()
        with self.lock:
            self.tight = self.tight or stuck
            left = math.inf if self.tight else self.left()
            if left <= 0.0:
                return None
            begin = time.thread_time()
            until = begin + max(left, self.settings.min_seconds)
            over = lambda: time.thread_time() >= until or self.expired()  # noqa: E731
            leaf = self.cells.decide(box[0], box[1], over)
            self.seconds += time.thread_time() - begin
        return leaf

    def helped(self) -> None:
        """Cells proved a box: larger boxes are worth a look, too."""
        self.cuts[0] //= 2
        self.share = min(2 * self.share, self.settings.max_share)

    def in_vain(self) -> None:
        """Cells did not help: cut on for as long as at the start."""
        self.cuts[0] = self.settings.cuts if self.tight else self.most_cuts
        self.share = self.settings.share
