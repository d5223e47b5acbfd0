"""Problem + condition -> rows: scalar functions g of the state that must not be positive on a box
without a hole.

Every row has the shape g(y) = direct(y) + A(y) + B(y): an affine part and two chains of ReLU layers
over the same input. Decrease has V∘F as chain A and −ρV as chain B, so both are bounded together;
positivity needs B alone and invariance A alone. Wherever building a row rounds, the rounding goes
into the layer's error bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.core.errors import ProblemError
from graphkeel.verify.problem import Affine, Array, Problem

TINY = 1e-300  # an absolute allowance for underflow, far above 2^-1074 times any layer size


def gamma(terms: int) -> float:
    """A relative bound on the rounding of a float64 sum of `terms` products, in any order, with
    room to spare."""
    return (terms + 16) * 2.0**-51


@dataclass(frozen=True, eq=False)
class Chain:
    """Hidden layers with a ReLU after each, then one affine row; no hidden layer means the chain is
    just affine."""

    hidden: tuple[Affine, ...]
    final: Affine  # one output

    @property
    def first_width(self) -> int:
        return self.hidden[0].n_out if self.hidden else 0


@dataclass(frozen=True, eq=False)
class Row:
    """g = direct + A + B, to be shown ≤ 0 (strict: < 0) on [lower, upper], outside the hole if
    `hole`."""

    name: str
    direct: Affine
    chains: tuple[Chain, Chain]
    lower: Array
    upper: Array
    hole: bool = False
    strict: bool = False
    region: tuple[int, int] | None = None  # (axis, sign) of a positivity row's half of the box
    empty: bool = False


def rows_of(problem: Problem, condition: str) -> list[Row]:
    """The rows of a condition, in the order of docs/proof-format.md."""
    builders = {"decrease": _decrease, "positivity": _positivity, "invariance": _invariance}
    if condition not in builders:
        raise ProblemError(f"a condition must be one of {tuple(builders)}", got=repr(condition))
    return builders[condition](problem)


def compose(outer: Affine, inner: Affine) -> Affine:
    """outer ∘ inner as one affine map, its rounding and both maps' errors in the error bounds."""
    w, b = outer.weight, outer.bias
    we, be = errors_of(outer)
    ve, ce = errors_of(inner)
    rounding = gamma(outer.n_in)
    aw, av, ab = np.abs(w), np.abs(inner.weight), np.abs(inner.bias)
    weight_error = aw @ ve + we @ av + we @ ve + rounding * (aw @ av) + TINY
    bias_error = aw @ ce + we @ ab + we @ ce + be + rounding * (aw @ ab + np.abs(b)) + TINY
    up = 1.0 + rounding  # the error bounds are float sums themselves
    return Affine(w @ inner.weight, w @ inner.bias + b, weight_error * up, bias_error * up)


def errors_of(layer: Affine) -> tuple[Array, Array]:
    """(weight error, bias error) with zeros for exact layers."""
    weight = np.zeros_like(layer.weight) if layer.weight_error is None else layer.weight_error
    bias = np.zeros_like(layer.bias) if layer.bias_error is None else layer.bias_error
    return weight, bias


def _scaled(layer: Affine, factor: float) -> Affine:
    if abs(factor) == 1.0:
        return Affine(
            factor * layer.weight, factor * layer.bias, layer.weight_error, layer.bias_error
        )
    we, be = errors_of(layer)
    size = abs(factor) * (1.0 + 2.0**-50)
    weight, bias = factor * layer.weight, factor * layer.bias
    return Affine(
        weight,
        bias,
        size * we + np.abs(weight) * 2.0**-52 + TINY,
        size * be + np.abs(bias) * 2.0**-52 + TINY,
    )


def _nothing(n: int) -> Affine:
    return Affine(np.zeros((1, n)), np.zeros(1))


def _no_chain() -> Chain:
    return Chain((), _nothing(0))


def _add(a: Affine, b: Affine) -> Affine:
    (wa, ba), (wb, bb) = errors_of(a), errors_of(b)
    weight, bias = a.weight + b.weight, a.bias + b.bias
    weight_error = (wa + wb + np.abs(weight) * 2.0**-52) * (1 + 2.0**-50)
    bias_error = (ba + bb + np.abs(bias) * 2.0**-52) * (1 + 2.0**-50)
    return Affine(weight, bias, weight_error, bias_error)


def _row(problem: Problem, name: str, direct: Affine, a: Chain, b: Chain, **more: object) -> Row:
    """Fold chains without hidden layers into the affine part."""
    for chain in (a, b):
        if not chain.hidden and chain.final.n_in:
            direct = _add(direct, chain.final)
    chains = (a if a.hidden else _no_chain(), b if b.hidden else _no_chain())
    box = {"lower": problem.lower, "upper": problem.upper} | more
    return Row(name, direct, chains, **box)  # type: ignore[arg-type]


def _decrease(problem: Problem) -> list[Row]:
    f, v = problem.closed_loop.layers, problem.lyapunov.layers
    joined = (*f[:-1], compose(v[0], f[-1]), *v[1:])
    after = Chain(joined[:-1], joined[-1])
    before = Chain(v[:-1], _scaled(v[-1], -problem.rho))
    strict = problem.rho == 1.0
    return [_row(problem, "decrease", _nothing(problem.n), after, before, hole=True, strict=strict)]


def _positivity(problem: Problem) -> list[Row]:
    v = problem.lyapunov.layers
    minus_v = Chain(v[:-1], _scaled(v[-1], -1.0))
    if problem.positivity == 0.0:
        direct = _nothing(problem.n)
        return [_row(problem, "positivity", direct, _no_chain(), minus_v, hole=True, strict=True)]
    return [
        _distance_row(problem, axis, sign, minus_v) for axis in range(problem.n) for sign in (1, -1)
    ]


def _distance_row(problem: Problem, axis: int, sign: int, minus_v: Chain) -> Row:
    """c·sign·(y_i − Y_i) − V(y) where the distance is at least the hole's radius along this
    axis."""
    c, centre = problem.positivity, float(problem.equilibrium[axis])
    weight = np.zeros((1, problem.n))
    weight[0, axis] = sign * c
    bias = np.array([-sign * c * centre])
    direct = Affine(weight, bias, None, np.abs(bias) * 2.0**-52 + TINY)
    lower, upper, empty = _region(problem, axis, sign)
    name = f"{'+' if sign > 0 else '-'}{axis}"
    box = {"lower": lower, "upper": upper, "empty": empty, "region": (axis, sign)}
    return _row(problem, name, direct, _no_chain(), minus_v, **box)


def inner_radius(problem: Problem) -> float:
    """A float not above the radius of the L∞ ball inside the hole (r, or r/√n for the L2 ball)."""
    if problem.hole_norm == "inf":
        return problem.hole_radius
    return problem.hole_radius / np.sqrt(problem.n) * (1.0 - 2.0**-40)


def _region(problem: Problem, axis: int, sign: int) -> tuple[Array, Array, bool]:
    """The part of the box with sign·(y_i − Y_i) ≥ r∞, its edge rounded towards the equilibrium."""
    centre, radius = float(problem.equilibrium[axis]), inner_radius(problem)
    edge = float(np.nextafter(centre + sign * radius, centre)) if radius > 0.0 else centre
    if sign * (edge - centre) < 0.0:
        edge = centre
    lower, upper = problem.lower.copy(), problem.upper.copy()
    if sign > 0:
        lower[axis] = max(lower[axis], edge)
    else:
        upper[axis] = min(upper[axis], edge)
    return lower, upper, bool(lower[axis] > upper[axis])


def _invariance(problem: Problem) -> list[Row]:
    layers = problem.closed_loop.layers
    last = layers[-1]
    we, be = errors_of(last)
    rows = []
    for i in range(problem.n):
        for name, sign, bound in (
            ("upper", 1.0, problem.upper[i]),
            ("lower", -1.0, problem.lower[i]),
        ):
            bias = sign * (last.bias[i : i + 1] - bound)
            final = Affine(
                sign * last.weight[i : i + 1],
                bias,
                we[i : i + 1],
                be[i : i + 1] + np.abs(bias) * 2.0**-52,
            )
            chain = Chain(layers[:-1], final)
            rows.append(_row(problem, f"{name} {i}", _nothing(problem.n), chain, _no_chain()))
    return rows
