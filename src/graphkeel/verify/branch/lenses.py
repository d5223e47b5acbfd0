"""The lenses of one search: which box is seen through which.

A lens made for a large box explains little of a small one where F has another slope. So a box that
has shrunk enough may get a lens of its own; a leaf names its lens by number, and the proof lists
them."""

from __future__ import annotations

import threading

import numpy as np

from graphkeel.verify.branch.lens import find_lens, mean_slope
from graphkeel.verify.branch.pack import Lens, accepts_lens, no_lens, pack_lens
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.query import Row

MOST_LENSES = 255
HALVINGS = 4.0  # how much smaller (in halvings) a box must be before it is given a lens of its own
TURNED = 0.25  # and by which share F's slope must differ there


class Lenses:
    """Numbered lenses; number 0 is none. Shared by all workers."""

    def __init__(self, problem: Problem, row: Row, given: Array | None = None) -> None:
        self.problem, self.row = problem, row
        self.wanted = accepts_lens(row)
        self.packed: list[Lens] = [no_lens(row.lower.shape[0])]
        self.thetas: list[Array] = []  # what the proof keeps of them, from number 1 on
        self.made: list[tuple[Array, Array, Array]] = [(row.lower, row.upper, np.zeros((0, 0)))]
        self.given, self.lock = given, threading.Lock()

    def __getitem__(self, number: int) -> Lens:
        return self.packed[number]

    def first(self) -> int:
        """The lens of the whole box: the one that was given, or a new one."""
        given, self.given = self.given, None
        return self._add(self.row.lower, self.row.upper, given)

    def number_for(self, lower: Array, upper: Array, old: int) -> int:
        """A lens of its own for a box that has shrunk since the old one was made and sees another
        slope of F."""
        made_lower, made_upper, slope = self.made[old]
        with np.errstate(divide="ignore", invalid="ignore"):
            shrunk = float(np.nansum(np.log2((made_upper - made_lower) / (upper - lower))))
        if not self.wanted or shrunk < HALVINGS or len(self.packed) > MOST_LENSES:
            return old
        here = mean_slope(self.problem.closed_loop, lower, upper)
        if slope.size and np.abs(here - slope).sum() < TURNED * np.abs(here).sum():
            return old
        return self._add(lower, upper, None)

    def _add(self, lower: Array, upper: Array, given: Array | None) -> int:
        if not self.wanted:
            return 0
        theta = given if given is not None else find_lens(self.problem, lower, upper)
        if theta is None:
            return 0
        lens, slope = pack_lens(self.row, theta), mean_slope(self.problem.closed_loop, lower, upper)
        with self.lock:
            if len(self.packed) > MOST_LENSES:
                return 0
            self.packed.append(lens)
            self.thetas.append(theta)
            self.made.append((lower, upper, slope))
            return len(self.thetas)
