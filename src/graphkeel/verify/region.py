"""The condition `region`: F maps R_c = {y in D: y_c − y_k ≥ γ for k ≠ c} into itself.

The polytope enters the rows by multipliers: λ·(y_c − y_j − γ) ≥ 0 on R_c, so a row with this term
added may be bounded over the whole box. Any λ ≥ 0 is sound, so plain floats choose them."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.affine import ROUND, TINY, errors_of, zero
from graphkeel.verify.problem import Affine, Array, Problem, Region, region_of
from graphkeel.verify.query import Layers, Row, form_over
from graphkeel.verify.relaxation import Relaxation


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
