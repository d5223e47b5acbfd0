"""When to stop cutting a box and decide its cells: a time budget for exact work in a fast search.

Exact linear programs decide boxes that cutting never does, and cost a thousand times as much a box.
So they are tried on boxes with few undecided units after many cuts. All attempts together may take
a share of the time, and one attempt no more than is left of that share. A success lets the next
attempt come earlier and raises the share; a failure resets both. Boxes too small to cut are always
tried. They show that cutting does not end, so from then on there is no limit."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import numpy as np

from graphkeel.verify.cells import CellLeaf, Cells
from graphkeel.verify.problem import Array
from graphkeel.verify.settings import CellSettings


class CellBudget:
    """How many cuts a box gets before its cells are tried; the kernel reads `cuts`.

    Reads: the processor's clock. Writes: `cuts` and `seconds`, the time spent on cells."""

    def __init__(
        self, cells: Cells | None, expired: Callable[[], bool], n: int, settings: CellSettings
    ) -> None:
        self.settings = settings
        self.cells = cells
        self.expired = expired
        self.most_cuts = settings.cuts + settings.cuts_per_axis * n
        self.cuts = np.array([self.most_cuts], dtype=np.int64)
        self.share = settings.share
        self.unlimited = False  # whether a box was too small to cut
        self.start = time.process_time()
        self.seconds = 0.0
        self.lock = threading.Lock()

    def left(self) -> float:
        """The seconds of processor time that cells may take now."""
        return self.share * (time.process_time() - self.start) - self.seconds

    def decide(self, box: Array, stuck: bool) -> CellLeaf | None:
        """The result of the cells of a box; None where the budget does not allow an attempt now.

        Args:
            box: its lower and upper ends, shape (2, n).
        """
        if self.cells is None or self.expired():
            return CellLeaf()
        with self.lock:
            self.unlimited = self.unlimited or stuck
            left = math.inf if self.unlimited else self.left()
            if left <= 0.0:
                return None
            begin = time.thread_time()
            until = begin + max(left, self.settings.min_seconds)
            over = lambda: time.thread_time() >= until or self.expired()  # noqa: E731
            leaf = self.cells.decide(box[0], box[1], over)
            self.seconds += time.thread_time() - begin
        return leaf

    def record_success(self) -> None:
        """Cells proved a box: try larger boxes, too."""
        self.cuts[0] //= 2
        self.share = min(2 * self.share, self.settings.max_share)

    def record_failure(self) -> None:
        """Cells did not decide a box: cut as many times as at the start."""
        self.cuts[0] = self.settings.cuts if self.unlimited else self.most_cuts
        self.share = self.settings.share
