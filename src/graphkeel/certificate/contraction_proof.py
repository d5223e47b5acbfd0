"""A contraction factor from the weights alone, in exact rationals (proof kind "contraction")."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from graphkeel.certificate.dyadic import Dyadic
from graphkeel.certificate.geometry import hole_reach
from graphkeel.certificate.schema import Layer, Loop
from graphkeel.certificate.trees import Refused


@dataclass(frozen=True, eq=False)
class Gauge:
    """V_h(z) = Σ_i (up_i·max(z_i, 0) + down_i·max(−z_i, 0)), and |V(y) − V_h(y − Y)| <= error."""

    up: Dyadic
    down: Dyadic
    error: Fraction

    @cached_property
    def floor(self) -> Fraction:
        """V_h(z) >= floor·‖z‖∞."""
        return self.up.minimum(self.down).min()

    def __call__(self, z: Dyadic) -> Dyadic:
        """V_h of a vector, or of every column of a matrix."""
        return self.both_ways(z)[0]

    def both_ways(self, z: Dyadic) -> tuple[Dyadic, Dyadic]:
        """V_h(z) and V_h(−z)."""
        above, below = z.relu().T, (-z).relu().T
        return above @ self.up + below @ self.down, below @ self.up + above @ self.down

    def around(self, z: Dyadic, radius: Dyadic) -> Fraction:
        """The largest value within ±radius of z."""
        return _bent(z, radius, self.up, self.down).sum().fraction()


def _bent(a: Dyadic, error: Dyadic, up: Dyadic, down: Dyadic) -> Dyadic:
    """max of up·max(x, 0) + down·max(−x, 0) over x within ±error of a; convex, so at an end."""
    ends = [up * x.relu() + down * (-x).relu() for x in (a - error, a + error)]
    return ends[0].maximum(ends[1])


@lru_cache(maxsize=2)  # decrease, positivity and the hole ask about the same loop
def gauge_of(loop: Loop) -> Gauge:
    """V as a weighted one-norm around the equilibrium, or Refused."""
    if len(loop.lyapunov) != 2 or any(layer.weight_error.any() for layer in loop.lyapunov):
        raise Refused("a contraction proof needs a V with one hidden layer and exact weights")
    first, last = loop.lyapunov
    if (last.weight < 0).any() or (np.count_nonzero(first.weight, axis=1) != 1).any():
        raise Refused(
            "a contraction proof needs V's outer weights >= 0 and one entry in each inner row"
        )
    inner, bias, _, bias_error = first.exactly
    outer = last.exactly[0][0]
    up, down = outer @ inner.relu(), outer @ (-inner).relu()
    offset = abs(inner @ loop.centre + bias) + bias_error
    error = (outer @ offset).fraction() + abs(Fraction(last.bias[0])) + Fraction(last.bias_error[0])
    gauge = Gauge(up, down, error)
    if gauge.floor <= 0:
        raise Refused("a contraction proof needs V to grow along both directions of every axis")
    return gauge


@lru_cache(maxsize=2)
def contraction_factor(loop: Loop, gauge: Gauge) -> Fraction:
    """κ with V_h(F(y) − F(y')) <= κ·V_h(y − y') for all y, y' in Rⁿ and every network within the
    error bounds."""
    columns, _, weight_error, _ = loop.closed_loop[-1].exactly
    error = weight_error.T @ gauge.up.maximum(gauge.down)
    # What a hidden unit does to V_h when it grows by one, and when it shrinks by one.
    grown, shrunk = (_column(pushed + error) for pushed in gauge.both_ways(columns))
    rise, fall = _travel(loop.closed_loop[:-1], loop.n)
    factor = Fraction(0)
    for up, down, shares in ((rise, fall, gauge.up), (fall, rise, gauge.down)):
        pushed = (grown * up).maximum(shrunk * down)
        totals = Dyadic(np.asarray(pushed.mantissa.sum(axis=0), dtype=object), pushed.exponent)
        factor = max(factor, _largest_ratio(totals, shares))
    return factor


def _largest_ratio(totals: Dyadic, shares: Dyadic) -> Fraction:
    """The largest totals_i / shares_i, all shares > 0; compared in integers, as each fraction would
    be shortened."""
    best, by = 0, 1
    for total, share in zip(totals.mantissa.tolist(), shares.mantissa.tolist(), strict=True):
        if total * by > best * share:
            best, by = total, share
    return Fraction(best, by) * Fraction(2) ** (totals.exponent - shares.exponent)


def _travel(hidden: tuple[Layer, ...], n: int) -> tuple[Dyadic, Dyadic]:
    """How far up and down the units of the last hidden layer go, per unit (rows) that a coordinate
    (columns) grows.

    A ReLU passes on between nothing and all of what its input does, so both ways are open to every
    unit from the second layer on; in the first one a unit goes the way of its weight."""
    rise, fall = Dyadic.of(np.eye(n)), Dyadic.of(np.zeros((n, n)))
    for k, layer in enumerate(hidden):
        weight, _, error, _ = layer.exactly
        if k == 0:
            rise, fall = (weight + error).relu(), (error - weight).relu()
            continue
        plus, minus, slack = weight.relu(), (-weight).relu(), error @ rise.maximum(fall)
        rise, fall = plus @ rise + minus @ fall + slack, plus @ fall + minus @ rise + slack
    return rise, fall


def _column(vector: Dyadic) -> Dyadic:
    return Dyadic(vector.mantissa[:, None], vector.exponent)


def residual_at_rest(loop: Loop, gauge: Gauge) -> Fraction:
    """V_h(F(Y) − Y), at most, over every network within the error bounds."""
    value, shake = loop.centre, Dyadic.of(np.zeros(loop.n))
    for k, layer in enumerate(loop.closed_loop):
        weight, bias, error, bias_error = layer.exactly
        own = error @ abs(value) + bias_error
        shake = (abs(weight) + error) @ shake + own if k else own
        value = weight @ value + bias
        value = value.relu() if k + 1 < len(loop.closed_loop) else value
    return gauge.around(value - loop.centre, shake)


def check_contraction(loop: Loop, condition: str) -> None:
    """Raise Refused unless the weights alone give the condition."""
    gauge, reach = gauge_of(loop), hole_reach(loop)
    if condition == "positivity":
        _check_positivity(loop, gauge, reach)
    elif condition == "decrease":
        _check_decrease(loop, gauge, reach)
    else:
        raise Refused(f"a contraction proof cannot show {condition}")


def _check_positivity(loop: Loop, gauge: Gauge, reach: Fraction) -> None:
    c = Fraction(loop.positivity)
    if c == 0:
        holds = gauge.floor * reach > gauge.error or gauge.error == 0
    else:
        holds = gauge.floor >= c and (gauge.floor - c) * reach >= gauge.error
    if not holds:
        raise Refused(
            f"positivity: V grows by {float(gauge.floor):g} per unit only, less than the claim"
        )


def _check_decrease(loop: Loop, gauge: Gauge, reach: Fraction) -> None:
    rho, factor = Fraction(loop.rho), contraction_factor(loop, gauge)
    loss = residual_at_rest(loop, gauge) + (1 + factor) * gauge.error
    gain = (rho - factor) * (gauge.floor * reach - gauge.error)
    strict = loop.rho == 1 and not (loop.hole_radius == 0 and loss == 0 and gain == 0)
    if factor >= rho or not (gain > loss if strict else gain >= loss):
        raise Refused(
            f"decrease: the contraction factor {float(factor):.4g} does not give ρ = {loop.rho:g} here"
        )
