"""The rows of a condition: scalar functions g(y) that have to be <= 0, as docs/proof-format.md
section 1 lists them.

Every composed layer is formed exactly and rounded once; what the rounding loses is added to the
layer's error bounds, so a row in floats still covers the exact one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from graphkeel.certificate.dyadic import Dyadic, Floats, product, up
from graphkeel.certificate.schema import Layer, Loop


@dataclass(frozen=True, eq=False)
class Branch:
    """Hidden layers over y, ReLU after each of them, and the row vector that reads the last of
    them."""

    hidden: tuple[Layer, ...]
    final: Floats
    final_error: Floats


@dataclass(frozen=True, eq=False)
class Row:
    """g(y) = linear·y + constant + Σ final·x over the branches; to be shown: g <= 0, or g < 0 where
    strict."""

    name: str
    linear: Floats
    linear_error: Floats
    constant: float
    constant_error: float
    branches: tuple[Branch, ...]
    strict: bool
    avoids_hole: bool = False  # the region is D without the hole
    side: tuple[int, int] | None = None  # (axis, ±1) of the rows "+i" and "-i"
    lens_width: int = 0  # hidden units of V in the row of decrease, where V has one hidden layer

    @property
    def first_width(self) -> int:
        return sum(branch.hidden[0].weight.shape[0] for branch in self.branches)


def rows_of(loop: Loop, condition: str) -> list[Row]:
    """All rows of a condition, in the order of the format."""
    return {"decrease": _decrease, "positivity": _positivity, "invariance": _invariance}[condition](
        loop
    )


def _decrease(loop: Loop) -> list[Row]:
    forward, lyapunov = loop.closed_loop, loop.lyapunov
    after = (*forward[:-1], compose(lyapunov[0], forward[-1]), *lyapunov[1:])
    before = (*lyapunov[:-1], _scaled(lyapunov[-1], -loop.rho))
    row = _row("decrease", loop.n, [after, before], strict=loop.rho == 1, avoids_hole=True)
    return [replace(row, lens_width=lyapunov[0].weight.shape[0])] if len(lyapunov) == 2 else [row]


def _positivity(loop: Loop) -> list[Row]:
    network = (*loop.lyapunov[:-1], _scaled(loop.lyapunov[-1], -1.0))
    if loop.positivity == 0:
        return [_row("positivity", loop.n, [network], strict=True, avoids_hole=True)]
    rows = []
    for axis in range(loop.n):
        for sign in (1, -1):
            linear = np.zeros(loop.n)
            linear[axis] = sign * loop.positivity
            offset = -Fraction(linear[axis]) * Fraction(loop.equilibrium[axis])
            name = f"{'+' if sign > 0 else '-'}{axis}"
            rows.append(
                _row(
                    name,
                    loop.n,
                    [network],
                    linear=Dyadic.of(linear),
                    offset=offset,
                    side=(axis, sign),
                )
            )
    return rows


def _invariance(loop: Loop) -> list[Row]:
    last = loop.closed_loop[-1]
    rows = []
    for axis in range(loop.n):
        for sign, name, bound in ((1.0, "upper", loop.upper), (-1.0, "lower", loop.lower)):
            final = Layer(
                sign * last.weight[axis : axis + 1],
                sign * last.bias[axis : axis + 1],
                last.weight_error[axis : axis + 1],
                last.bias_error[axis : axis + 1],
            )
            offset = -Fraction(sign) * Fraction(bound[axis])
            rows.append(
                _row(f"{name} {axis}", loop.n, [(*loop.closed_loop[:-1], final)], offset=offset)
            )
    return rows


def region_rows(loop: Loop, axis: int, margin: float, multipliers: Floats) -> list[Row]:
    """F_k − F_c + γ + Σ_j λ_j·(y_c − y_j − γ) for every k ≠ c = axis: at least F_k − F_c + γ where
    class c leads."""
    last, rows = loop.closed_loop[-1], []
    rivals = [k for k in range(loop.n) if k != axis]
    for k, weights in zip(rivals, multipliers, strict=True):
        pull = Dyadic.of(weights)
        lead = np.zeros(loop.n)
        lead[axis] = 1.0
        linear = Dyadic.of(lead) * pull.sum() - pull
        offset = Fraction(margin) * (1 - pull.sum().fraction())
        final = _difference(last, k, axis)
        rows.append(
            _row(
                f"class {k}",
                loop.n,
                [(*loop.closed_loop[:-1], final)],
                linear=linear,
                offset=offset,
                strict=not margin,
            )
        )
    return rows


def _difference(layer: Layer, k: int, axis: int) -> Layer:
    """Output k minus output `axis` as one output, rounded once."""
    weight, weight_rounding = _nearest(Dyadic.of(layer.weight[k]) - Dyadic.of(layer.weight[axis]))
    bias, bias_rounding = _nearest(Dyadic.of(layer.bias[[k]]) - Dyadic.of(layer.bias[[axis]]))
    weight_error = _sum_up(layer.weight_error[k], layer.weight_error[axis])
    bias_error = _sum_up(layer.bias_error[[k]], layer.bias_error[[axis]])
    return Layer(
        weight[None],
        bias,
        _sum_up(weight_error, weight_rounding)[None],
        _sum_up(bias_error, bias_rounding),
    )


def _row(
    name: str,
    n: int,
    networks: list[tuple[Layer, ...]],
    *,
    linear: Dyadic | None = None,
    offset: Fraction = Fraction(0),
    strict: bool = False,
    avoids_hole: bool = False,
    side: tuple[int, int] | None = None,
) -> Row:
    """The sum of scalar networks and a linear form; a network without hidden layers joins the
    linear form."""
    total = Dyadic.of(np.zeros(n)) if linear is None else linear
    total_error, offset_error, branches = np.zeros(n), Fraction(0), []
    for *hidden, last in networks:
        offset += Fraction(last.bias[0])
        offset_error += Fraction(last.bias_error[0])
        if hidden:
            branches.append(Branch(tuple(hidden), last.weight[0], last.weight_error[0]))
        else:
            total = total + Dyadic.of(last.weight[0])
            total_error = _sum_up(total_error, last.weight_error[0])
    some = linear is not None or len(branches) < len(networks)
    rounded, rounding = _nearest(total) if some else (np.zeros(n), np.zeros(n))
    constant = offset.numerator / offset.denominator
    error = up(offset_error + abs(offset - Fraction(constant)))
    errors = _sum_up(total_error, rounding)
    return Row(name, rounded, errors, constant, error, tuple(branches), strict, avoids_hole, side)


def compose(outer: Layer, inner: Layer) -> Layer:
    """outer ∘ inner as one layer, rounded once, with errors that cover the exact composition."""
    weight, weight_rounding = _nearest(product(outer.weight, inner.weight))
    bias, bias_rounding = _nearest(product(outer.weight, inner.bias) + Dyadic.of(outer.bias))
    outer_weight = np.abs(outer.weight)
    weight_error = _product_up(outer_weight, inner.weight_error) + _product_up(
        outer.weight_error, _sum_up(np.abs(inner.weight), inner.weight_error)
    )
    bias_error = _product_up(outer_weight, inner.bias_error) + _product_up(
        outer.weight_error, _sum_up(np.abs(inner.bias), inner.bias_error)
    )
    return Layer(
        weight,
        bias,
        _sum_up(weight_error, weight_rounding),
        _sum_up(_sum_up(bias_error, outer.bias_error), bias_rounding),
    )


def _scaled(layer: Layer, factor: float) -> Layer:
    weight, weight_rounding = _nearest(Dyadic.of(layer.weight) * Dyadic.of(factor))
    bias, bias_rounding = _nearest(Dyadic.of(layer.bias) * Dyadic.of(factor))
    return Layer(
        weight,
        bias,
        _sum_up(_inflated(layer.weight_error * abs(factor)), weight_rounding),
        _sum_up(_inflated(layer.bias_error * abs(factor)), bias_rounding),
    )


def _nearest(exact: Dyadic) -> tuple[Floats, Floats]:
    """The float64 array next to an exact one, and a bound on the distance."""
    values = [f.numerator / f.denominator for f in exact.fractions()]
    rounded = np.array(values, dtype=np.float64).reshape(exact.shape)
    distance = [up(f) for f in abs(Dyadic.of(rounded) - exact).fractions()]
    return rounded, np.array(distance, dtype=np.float64).reshape(exact.shape)


def _inflated(values: Floats) -> Floats:
    """At least the exact value of a sum or product of non-negative numbers that was computed in
    floats."""
    return np.where(values > 0, values * (1 + 2.0**-30) + 1e-300, 0.0)


def _sum_up(a: Floats, b: Floats) -> Floats:
    return _inflated(a + b) if a.any() and b.any() else np.asarray(a if a.any() else b)


def _product_up(a: Floats, b: Floats) -> Floats:
    shape = (a.shape[0], b.shape[1]) if b.ndim == 2 else (a.shape[0],)
    if not (a.any() and b.any()):
        return np.zeros(shape)
    # A product of non-negative numbers that vanishes by underflow still has to count.
    return _inflated(np.maximum(a @ b, 1e-300))
