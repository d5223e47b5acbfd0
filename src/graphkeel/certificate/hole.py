"""The hole around the equilibrium: closed, trapping, or open.

Outside the hole V is proved to decrease. What happens inside is decided here, from the exact
weights:

* `contraction`: F shrinks V-distances everywhere, so one fixed point attracts all of Rⁿ (Banach);
* `exact`: on the hole's box F(y) − Y and V(y) are positively homogeneous in y − Y, so what holds on
  the hole's shell holds on every smaller copy of it;
* `residual`: the same but for F(Y) − Y, a few last bits; then V(F(y)) <= ρV(y) + V(residual)
  inside, and the trajectory ends within V(residual)/((1 − ρ)c) of Y;
* `trapping`: F maps the hole into itself;
* `open`: none of these could be shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphkeel.certificate.bounds import RowBound
from graphkeel.certificate.collapse import ExactLayer, value_at
from graphkeel.certificate.contraction_proof import contraction_factor, gauge_of
from graphkeel.certificate.dyadic import Dyadic, Floats, up
from graphkeel.certificate.rows import Row, rows_of
from graphkeel.certificate.schema import Loop
from graphkeel.certificate.trees import Refused

ExactNetwork = tuple[ExactLayer, ...]


@dataclass(frozen=True)
class Hole:
    """`radius` bounds how far from Y trajectories may end (sup norm); `fixed_point`: they end in
    one point."""

    kind: str  # contraction | exact | residual | trapping | open
    radius: float | None
    fixed_point: bool
    factor: float | None = None  # the contraction factor, rounded up

    @property
    def verdict(self) -> str:
        return "unknown" if self.kind == "open" else "proved"

    def to_json(self) -> dict[str, object]:
        return {
            "verdict": self.verdict,
            "kind": self.kind,
            "radius": self.radius,
            "fixed_point": self.fixed_point,
            "factor": self.factor,
        }


def analyse_hole(
    loop: Loop, forward: ExactNetwork, lyapunov: ExactNetwork, proved: frozenset[str]
) -> Hole:
    """What can be said of the hole, given the conditions proved outside of it."""
    centre = loop.centre
    residual = value_at(forward, centre) - centre
    contracting = _contraction(loop, residual)
    if contracting is not None:
        return contracting
    if {"decrease", "positivity"} <= proved and _inside_domain(loop):
        closed = _closed(loop, forward, lyapunov, residual)
        if closed is not None:
            return closed
    if _traps(loop):
        return Hole("trapping", loop.hole_radius, fixed_point=False)
    return Hole("open", None, fixed_point=False)


def _contraction(loop: Loop, residual: Dyadic) -> Hole | None:
    try:
        gauge = gauge_of(loop)
        factor = contraction_factor(loop, gauge)
    except Refused:
        return None
    if factor >= 1:
        return None
    # y* − Y = (F(y*) − F(Y)) + (F(Y) − Y), so V_h(y* − Y) <= κ·V_h(y* − Y) + V_h(residual).
    radius = gauge(residual).fraction() / ((1 - factor) * gauge.floor)
    return Hole("contraction", up(radius), fixed_point=True, factor=up(factor))


def _inside_domain(loop: Loop) -> bool:
    """Whether the hole's box lies in D, so that its whole shell was covered by the proof."""
    centre, radius = loop.centre, Dyadic.of(loop.hole_radius)
    low = (Dyadic.of(loop.lower) <= centre - radius).all()
    return bool(low and (centre + radius <= Dyadic.of(loop.upper)).all())


def _closed(
    loop: Loop, forward: ExactNetwork, lyapunov: ExactNetwork, residual: Dyadic
) -> Hole | None:
    centre = loop.centre
    shape = local_shape(forward, centre, Dyadic.of(np.full(loop.n, loop.hole_radius)))
    if shape is None or not is_homogeneous(lyapunov, centre):
        return None
    if not any(residual.fractions()):
        return Hole("exact", 0.0, fixed_point=True)
    if loop.rho == 1 or loop.positivity == 0 or loop.hole_radius == 0 or not is_sublinear(lyapunov):
        return None
    push = value_at(lyapunov, centre + residual).fraction()
    radius = push / ((1 - Fraction(loop.rho)) * Fraction(loop.positivity))
    # The final set has to lie within the piece on which F was shown to be affine or conic, with
    # room to spare.
    if 2 * radius >= Fraction(loop.hole_radius):
        return None
    fixed = shape == "affine" and _linear_part_contracts(loop, lyapunov, residual)
    return Hole("residual", up(radius), fixed_point=fixed)


def _linear_part_contracts(loop: Loop, lyapunov: ExactNetwork, residual: Dyadic) -> bool:
    """On an affine piece V(Jz) <= (ρ + V(−residual)/min V on the shell)·V(z): a contraction, so one
    fixed point."""
    back = value_at(lyapunov, loop.centre - residual).fraction()
    reach = (
        Fraction(loop.hole_radius)
        if loop.hole_norm == "inf"
        else Fraction(loop.hole_radius) / loop.n
    )
    return Fraction(loop.rho) + back / (Fraction(loop.positivity) * reach) < 1


def local_shape(network: ExactNetwork, centre: Dyadic, radius: Dyadic) -> str | None:
    """Affine or conic: N(centre + t·z) − N(centre) = t·(N(centre + z) − N(centre)) for 0 <= t <= 1,
    |z| <= radius."""
    value, spread, shape = centre, radius, "affine"
    for k, (weight, bias) in enumerate(network):
        value, spread = weight @ value + bias, abs(weight) @ spread
        if k + 1 == len(network):
            break
        zero = value == Dyadic.of(np.zeros(value.shape))
        if not (zero | (spread <= abs(value))).all():
            return None
        moving = zero & ~(spread == Dyadic.of(np.zeros(value.shape)))
        shape = "conic" if moving.any() else shape
        silent = (value <= Dyadic.of(np.zeros(value.shape))) & ~zero
        nothing = Dyadic.of(np.zeros(value.shape))
        value, spread = value.relu(), nothing.where(silent, spread)
    return shape


def is_homogeneous(network: ExactNetwork, centre: Dyadic) -> bool:
    """Whether every unit and the output vanish at the centre: then N(centre + t·z) = t·N(centre +
    z) for t >= 0."""
    value = centre
    for weight, bias in network:
        value = weight @ value + bias
        if any(value.fractions()):
            return False
    return True


def is_sublinear(network: ExactNetwork) -> bool:
    """A homogeneous network whose outer layers have weights >= 0 is convex, hence subadditive."""
    return all((Dyadic.of(np.zeros(weight.shape)) <= weight).all() for weight, _ in network[1:])


def _traps(loop: Loop) -> bool:
    """Whether F maps the hole's box (for the norm 2: the box around the ball) into the hole."""
    if loop.hole_radius == 0:
        return False
    lower, upper = loop.equilibrium - loop.hole_radius, loop.equilibrium + loop.hole_radius
    lower, upper = np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf)
    # F_i − upper_i and lower_i − F_i, from which the reach of F around Y follows.
    reach = []
    for axis, pair in enumerate(_pairs(loop)):
        ends = [float(_largest(RowBound(row, lower, upper), lower, upper)) for row in pair]
        if not np.isfinite(ends).all():
            return False
        centre = Fraction(loop.equilibrium[axis])
        high = Fraction(ends[0]) + Fraction(loop.upper[axis]) - centre
        low = Fraction(ends[1]) - Fraction(loop.lower[axis]) + centre
        reach.append(max(high, low))
    if loop.hole_norm == "inf":
        return max(reach) <= Fraction(loop.hole_radius)
    return sum(max(r, Fraction(0)) ** 2 for r in reach) <= Fraction(loop.hole_radius) ** 2


def _pairs(loop: Loop) -> list[list[Row]]:
    rows = rows_of(loop, "invariance")
    return [rows[2 * i : 2 * i + 2] for i in range(loop.n)]


def _largest(bound: RowBound, lower: Floats, upper: Floats, splits: int = 6) -> np.float64:
    """An upper bound over the box, from pieces halved along the axes in turn."""
    lows, highs = lower[None], upper[None]
    for axis in range(min(splits, lower.shape[0])):
        middle = (lows[:, axis] + highs[:, axis]) / 2
        below, above = highs.copy(), lows.copy()
        below[:, axis], above[:, axis] = middle, middle
        lows, highs = np.concatenate([lows, above]), np.concatenate([below, highs])
    return np.max(bound.upper(lows, highs)[0])
