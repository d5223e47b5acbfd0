"""Problem + condition -> rows, in the order of docs/formats.md.

Decrease has V∘F as chain A and −ρV as chain B; positivity needs B alone, invariance and region A
alone. Wherever building a row rounds, the rounding goes into a layer's error bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphkeel.core.errors import ProblemError
from graphkeel.core.names import check_name
from graphkeel.verify.affine import ROUND, TINY, compose, errors_of, output_row, scaled, zero
from graphkeel.verify.problem import Affine, Array, Problem, Region, region_of
from graphkeel.verify.query import Form, Layers, Row, form_over
from graphkeel.verify.rational import rounded_down, sup_radius
from graphkeel.verify.relaxation import Relaxation


def rows_of(problem: Problem, condition: str) -> list[Row]:
    """The rows of a condition."""
    builders: dict[str, Callable[[Problem], list[Row]]] = {
        "decrease": _decrease,
        "positivity": _positivity,
        "invariance": _invariance,
        "region": region_rows,
    }
    check_name("a condition", condition, builders, ProblemError)
    return builders[condition](problem)


def inner_radius(problem: Problem) -> float:
    """A float not above r∞, the radius of the hole in the sup norm."""
    return rounded_down(sup_radius(problem))


def lyapunov_after(problem: Problem) -> Layers:
    """V ∘ F; the last layer of F and the first of V are one affine map, which keeps bounds
    tight."""
    f, v = problem.closed_loop.layers, problem.lyapunov.layers
    return (*f[:-1], compose(v[0], f[-1]), *v[1:])


def _decrease(problem: Problem) -> list[Row]:
    v, joined = problem.lyapunov.layers, lyapunov_after(problem)
    hidden = (joined[:-1], v[:-1])
    form = form_over(zero(problem.n), hidden, joined[-1], scaled(v[-1], -problem.rho))
    ends = (problem.lower, problem.upper)
    return [Row("decrease", form, hidden, *ends, hole=True, strict=problem.rho == 1.0)]


def _positivity(problem: Problem) -> list[Row]:
    v = problem.lyapunov.layers
    hidden: tuple[Layers, Layers] = ((), v[:-1])
    minus_v = scaled(v[-1], -1.0)
    if problem.positivity == 0.0:
        form = form_over(zero(problem.n), hidden, zero(0), minus_v)
        ends = (problem.lower, problem.upper)
        return [Row("positivity", form, hidden, *ends, hole=True, strict=True)]
    return [
        _distance_row(problem, axis, sign, hidden, minus_v)
        for axis in range(problem.n)
        for sign in (1, -1)
    ]


def _distance_row(
    problem: Problem, axis: int, sign: int, hidden: tuple[Layers, Layers], minus_v: Affine
) -> Row:
    """c·sign·(y_i − Y_i) − V(y) where the distance is at least the hole's radius along this
    axis."""
    c = problem.positivity
    weight = np.zeros((1, problem.n))
    weight[0, axis] = sign * c
    bias = np.array([-sign * c * float(problem.equilibrium[axis])])
    direct = Affine(weight, bias, None, np.abs(bias) * 2.0**-52 + TINY)
    form = form_over(direct, hidden, zero(0), minus_v)
    lower, upper = half_box(problem, axis, sign)
    empty = bool(lower[axis] > upper[axis])
    name = f"{'+' if sign > 0 else '-'}{axis}"
    return Row(name, form, hidden, lower, upper, side=(axis, sign), empty=empty)


def half_box(problem: Problem, axis: int, sign: int) -> tuple[Array, Array]:
    """The part of the box with sign·(y_i − Y_i) ≥ r∞, its edge rounded towards the equilibrium."""
    centre, radius = float(problem.equilibrium[axis]), inner_radius(problem)
    edge = float(np.nextafter(centre + sign * radius, centre)) if radius > 0.0 else centre
    lower, upper = problem.lower.copy(), problem.upper.copy()
    if sign > 0:
        lower[axis] = max(lower[axis], edge)
    else:
        upper[axis] = min(upper[axis], edge)
    return lower, upper


def _invariance(problem: Problem) -> list[Row]:
    layers = problem.closed_loop.layers
    hidden: tuple[Layers, Layers] = (layers[:-1], ())
    rows = []
    for i in range(problem.n):
        for name, sign, bound in (
            ("upper", 1.0, problem.upper[i]),
            ("lower", -1.0, problem.lower[i]),
        ):
            excess = _excess(output_row(layers[-1], i), sign, float(bound))
            form: Form = form_over(zero(problem.n), hidden, excess, zero(0))
            rows.append(Row(f"{name} {i}", form, hidden, problem.lower, problem.upper))
    return rows


def _excess(output: Affine, sign: float, bound: float) -> Affine:
    """sign · (output − bound)."""
    weight_error, bias_error = errors_of(output)
    bias = sign * (output.bias - bound)
    return Affine(sign * output.weight, bias, weight_error, bias_error + np.abs(bias) * 2.0**-52)


def region_rows(problem: Problem) -> list[Row]:
    """F_k − F_c + γ + Σ_j λ_j·(y_c − y_j − γ) for every k ≠ c, roundings in the error bounds."""
    region = region_of(problem)
    *layers, last = problem.closed_loop.layers
    hidden: tuple[Layers, Layers] = (tuple(layers), ())
    rows = []
    rivals = region.rivals(problem.n)
    for k, multiplier in zip(rivals, multipliers(problem), strict=True):
        step = _difference(last, k, region.axis)
        form = form_over(_constraint_terms(region, multiplier), hidden, step, zero(0))
        ends = (problem.lower, problem.upper)
        strict = region.margin == 0
        rows.append(Row(f"class {k}", form, hidden, *ends, strict=strict, multipliers=multiplier))
    return rows


def _difference(last: Affine, k: int, c: int) -> Affine:
    """Output k minus output c."""
    weight_error, bias_error = errors_of(last)
    weight = last.weight[[k]] - last.weight[[c]]
    bias = last.bias[[k]] - last.bias[[c]]
    error = (weight_error[[k]] + weight_error[[c]]) * (1 + ROUND) + np.abs(weight) * ROUND + TINY
    offset = (bias_error[[k]] + bias_error[[c]]) * (1 + ROUND) + np.abs(bias) * ROUND + TINY
    return Affine(weight, bias, error, offset)


def _constraint_terms(region: Region, multiplier: Array) -> Affine:
    """γ + Σ_j λ_j·(y_c − y_j − γ)."""
    n = multiplier.shape[0]
    total = float(multiplier.sum())
    weight = -multiplier[None, :]
    weight[0, region.axis] = total
    error = np.zeros((1, n))
    error[0, region.axis] = n * ROUND * total + TINY
    bias = np.array([region.margin * (1.0 - total)])
    offset = np.array([(n + 4) * ROUND * region.margin * (1.0 + total) + TINY])
    return Affine(weight, bias, error, offset)


def multipliers(problem: Problem) -> Array:
    """λ that brings the relaxation's bound on the whole box down, shape (n − 1, n).

    Row by row for k ≠ c in ascending order, a column for every j; column c is 0."""
    region = region_of(problem)
    rivals = region.rivals(problem.n)
    differences = np.zeros((len(rivals), problem.n))
    differences[np.arange(len(rivals)), rivals] = 1.0
    differences[:, region.axis] = -1.0
    *hidden, last = problem.closed_loop.layers
    relaxation = Relaxation.of(hidden, problem.lower, problem.upper)
    forms = relaxation.upper_forms(differences @ last.weight)
    rows = [
        _row_multipliers(problem, region, form, k) for form, k in zip(forms, rivals, strict=True)
    ]
    return np.array(rows).reshape(-1, problem.n)


def _row_multipliers(problem: Problem, region: Region, form: Array, rival: int) -> Array:
    """Coordinate descent from the rival on: the maximum over the box is piecewise linear in λ_j,
    with two bends."""
    c = region.axis
    multiplier = np.zeros(problem.n)

    def top(candidate: Array) -> float:
        tilted = form - candidate
        tilted[c] += candidate.sum()
        highest = np.maximum(tilted * problem.lower, tilted * problem.upper).sum()
        return float(highest - region.margin * candidate.sum())

    others = [k for k in region.rivals(problem.n) if k != rival]
    for j in [rival, *others]:
        for bend in (form[j], multiplier[j] - form[c] - multiplier.sum()):
            if bend > 0.0 and np.isfinite(bend):
                candidate = multiplier.copy()
                candidate[j] = bend
                multiplier = candidate if top(candidate) < top(multiplier) else multiplier
    return multiplier
