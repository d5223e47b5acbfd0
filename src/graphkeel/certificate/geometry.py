"""The hole and the regions of the rows, decided exactly."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from graphkeel.certificate.dyadic import Bools, Dyadic, Floats
from graphkeel.certificate.schema import Loop


def hole_reach(loop: Loop) -> Fraction:
    """r∞, rounded down: every state outside the hole has ‖y − Y‖∞ >= r∞."""
    radius = Fraction(loop.hole_radius)
    if loop.hole_norm == "inf":
        return radius
    scaled = radius * radius / loop.n * 2**200
    return Fraction(isqrt(scaled.numerator // scaled.denominator), 2**100)


def inside_hole(loop: Loop, lower: Floats, upper: Floats) -> Bools:
    """Which closed boxes (rows) lie strictly inside the open hole."""
    centre, radius = loop.centre, Dyadic.of(loop.hole_radius)
    reach = abs(Dyadic.of(lower) - centre).maximum(abs(Dyadic.of(upper) - centre))
    if loop.hole_norm == "inf":
        return np.asarray((reach < radius).all(axis=1))
    squares = reach * reach
    return (
        Dyadic(np.asarray(squares.mantissa.sum(axis=1), dtype=object), squares.exponent)
        < radius * radius
    )


def outside_hole(loop: Loop, point: Floats) -> bool:
    """Whether a state has to satisfy the conditions; with radius 0 all but the equilibrium have
    to."""
    offset = [
        abs(Fraction(p) - Fraction(y))
        for p, y in zip(point.tolist(), loop.equilibrium.tolist(), strict=True)
    ]
    if loop.hole_radius == 0:
        return any(offset)
    if loop.hole_norm == "inf":
        return max(offset) >= Fraction(loop.hole_radius)
    return sum(o * o for o in offset) >= Fraction(loop.hole_radius) ** 2


def side_is_empty(loop: Loop, axis: int, sign: int) -> bool:
    """Whether no state of the box has sign·(y_axis − Y_axis) >= r∞."""
    end = loop.upper[axis] if sign > 0 else loop.lower[axis]
    room = sign * (Fraction(end) - Fraction(loop.equilibrium[axis]))
    return room < 0 or not _at_least_reach(loop, room)


def covers_side(loop: Loop, axis: int, sign: int, end: float) -> bool:
    """Whether the root box cut at `end` still holds every state with sign·(y_axis − Y_axis) >=
    r∞."""
    own = loop.lower[axis] if sign > 0 else loop.upper[axis]
    if sign * (end - own) <= 0:
        return True
    room = sign * (Fraction(end) - Fraction(loop.equilibrium[axis]))
    return room <= 0 or not _more_than_reach(loop, room)


def _at_least_reach(loop: Loop, room: Fraction) -> bool:
    if loop.hole_norm == "inf":
        return room >= Fraction(loop.hole_radius)
    return loop.n * room * room >= Fraction(loop.hole_radius) ** 2


def _more_than_reach(loop: Loop, room: Fraction) -> bool:
    if loop.hole_norm == "inf":
        return room > Fraction(loop.hole_radius)
    return loop.n * room * room > Fraction(loop.hole_radius) ** 2
