"""Cuts that take a box down to the hole, and the slabs that they cut off."""

from __future__ import annotations

from dataclasses import dataclass

from graphkeel.verify.conditions import inner_radius
from graphkeel.verify.problem import Array, Problem
from graphkeel.verify.query import Row
from graphkeel.verify.rational import rational, sup_radius


@dataclass(frozen=True, eq=False)
class Slab:
    """The part of the box that one cut takes away."""

    axis: int
    place: float  # of the cut
    lower: Array  # (n,)
    upper: Array
    above: bool  # whether the slab lies above the cut


def slabs_around_hole(problem: Problem, row: Row) -> list[Slab] | None:
    """The cuts one after the other; what is left after the last one lies inside the hole. None
    where the hole is too small to be cut out in floats."""
    centre, radius = problem.equilibrium, inner_radius(problem)
    lower, upper = row.lower.copy(), row.upper.copy()
    slabs = []
    for axis in range(row.n):
        for sign in (1, -1):
            place = float(centre[axis] + sign * radius * (1.0 - 2.0**-20))
            gap = abs(rational(place) - rational(centre[axis]))
            if not 0 < gap < sup_radius(problem):
                return None
            if not lower[axis] < place < upper[axis]:
                continue
            cut_lower, cut_upper = lower.copy(), upper.copy()
            if sign > 0:
                cut_lower[axis] = upper[axis] = place
            else:
                cut_upper[axis] = lower[axis] = place
            slabs.append(Slab(axis, place, cut_lower, cut_upper, sign > 0))
    return slabs
