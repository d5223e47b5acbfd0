"""A contraction factor from the weights alone, in exact rationals (proof kind "contraction")."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from graphkeel.certificates.geometry import hole_reach
from graphkeel.certificates.schema import Layer, Loop
from graphkeel.certificates.trees import Refused

Vector = list[Fraction]


@dataclass(frozen=True)
class Gauge:
    """V_h(z) = Σ_i (up_i·max(z_i, 0) + down_i·max(−z_i, 0)), and |V(y) − V_h(y − Y)| <= error."""

    up: Vector
    down: Vector
    error: Fraction

    @property
    def floor(self) -> Fraction:
        return min(*self.up, *self.down)

    def __call__(self, z: Vector) -> Fraction:
        return sum((_bent(a, p, m) for a, p, m in zip(z, self.up, self.down, strict=True)), Fraction(0))

    def around(self, z: Vector, radius: Vector) -> Fraction:
        """The largest value within ±radius of z."""
        ends = zip(z, radius, self.up, self.down, strict=True)
        return sum((max(_bent(a - e, p, m), _bent(a + e, p, m)) for a, e, p, m in ends), Fraction(0))

    def of_error(self, radius: Vector) -> Fraction:
        return sum((max(p, m) * e for e, p, m in zip(radius, self.up, self.down, strict=True)), Fraction(0))


def _bent(a: Fraction, up: Fraction, down: Fraction) -> Fraction:
    return up * a if a > 0 else -down * a


def gauge_of(loop: Loop) -> Gauge:
    """V as a weighted one-norm around the equilibrium, or Refused."""
    if len(loop.lyapunov) != 2 or any(layer.weight_error.any() for layer in loop.lyapunov):
        raise Refused("a contraction proof needs a V with one hidden layer and exact weights")
    first, last = loop.lyapunov
    centre = _vector(loop.equilibrium)
    up, down = [Fraction(0)] * loop.n, [Fraction(0)] * loop.n
    error = abs(Fraction(last.bias[0])) + Fraction(last.bias_error[0])
    for row, bias, bias_error, v in zip(first.weight, first.bias, first.bias_error, last.weight[0], strict=True):
        axes = row.nonzero()[0]
        if v < 0 or len(axes) != 1:
            raise Refused("a contraction proof needs V's outer weights >= 0 and one entry in each inner row")
        axis, scale = int(axes[0]), Fraction(v) * abs(Fraction(row[axes[0]]))
        side = up if row[axis] > 0 else down
        side[axis] += scale
        offset = Fraction(row[axis]) * centre[axis] + Fraction(bias)
        error += Fraction(v) * (abs(offset) + Fraction(bias_error))
    if min(*up, *down) <= 0:
        raise Refused("a contraction proof needs V to grow along both directions of every axis")
    return Gauge(up, down, error)


def contraction_factor(loop: Loop, gauge: Gauge) -> Fraction:
    """κ with V_h(F(y) − F(y')) <= κ·V_h(y − y') for all y, y' in Rⁿ and every network within the error bounds."""
    if len(loop.closed_loop) != 2:
        raise Refused("a contraction proof needs an F with one hidden layer")
    first, last = loop.closed_loop
    push = []
    for j in range(first.weight.shape[0]):
        column, error = _vector(last.weight[:, j]), gauge.of_error(_vector(last.weight_error[:, j]))
        push.append((gauge(column) + error, gauge([-c for c in column]) + error))
    factor = Fraction(0)
    for i in range(loop.n):
        for sign, share in ((1, gauge.up[i]), (-1, gauge.down[i])):
            factor = max(factor, _column_push(first, i, sign, push) / share)
    return factor


def _column_push(first: Layer, i: int, sign: int, push: list[tuple[Fraction, Fraction]]) -> Fraction:
    total = Fraction(0)
    for j, (up, down) in enumerate(push):
        a, e = sign * Fraction(first.weight[j, i]), Fraction(first.weight_error[j, i])
        total += max(_bent(a - e, up, down), _bent(a + e, up, down))
    return total


def residual_at_rest(loop: Loop, gauge: Gauge) -> Fraction:
    """V_h(F(Y) − Y), at most, over every network within the error bounds."""
    first, last = loop.closed_loop
    centre = _vector(loop.equilibrium)
    value, shake = [], []
    for j in range(first.weight.shape[0]):
        value.append(max(_dot(first.weight[j], centre) + Fraction(first.bias[j]), Fraction(0)))
        shake.append(_dot(first.weight_error[j], [abs(c) for c in centre]) + Fraction(first.bias_error[j]))
    offset, radius = [], []
    for i in range(loop.n):
        offset.append(_dot(last.weight[i], value) + Fraction(last.bias[i]) - centre[i])
        widened = _dot(abs(last.weight[i]), shake) + _dot(last.weight_error[i], shake)
        radius.append(widened + _dot(last.weight_error[i], value) + Fraction(last.bias_error[i]))
    return gauge.around(offset, radius)


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
        raise Refused(f"positivity: V grows by {float(gauge.floor):g} per unit only, less than the claim")


def _check_decrease(loop: Loop, gauge: Gauge, reach: Fraction) -> None:
    rho, factor = Fraction(loop.rho), contraction_factor(loop, gauge)
    loss = residual_at_rest(loop, gauge) + (1 + factor) * gauge.error
    gain = (rho - factor) * (gauge.floor * reach - gauge.error)
    strict = loop.rho == 1 and not (loop.hole_radius == 0 and loss == 0 and gain == 0)
    if factor >= rho or not (gain > loss if strict else gain >= loss):
        raise Refused(f"decrease: the contraction factor {float(factor):.4g} does not give ρ = {loop.rho:g} here")


def _vector(values: object) -> Vector:
    return [Fraction(float(v)) for v in values]  # type: ignore[attr-defined]


def _dot(row: object, values: Vector) -> Fraction:
    return sum((Fraction(float(a)) * b for a, b in zip(row, values, strict=True)), Fraction(0))  # type: ignore[call-overload]
