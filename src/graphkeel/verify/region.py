"""Does a class keep its states? The decision region R_c = {y in D: y_c − y_k ≥ γ for every k ≠ c}
under the loop F.

Where F(y)_c − F(y)_k ≥ γ (γ = 0: > 0) on all of R_c, a controller that is chosen anew at every step
by the largest logit never changes, so what is proved of the class's own loop holds of the switched
one. The polytope is taken into the rows by multipliers: λ·(y_c − y_j − γ) is not negative on R_c,
so a row with it added may be bounded over the whole box."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphkeel.core.errors import ProblemError
from graphkeel.verify.exact import evaluate, in_box, rationals
from graphkeel.verify.problem import Affine, Array, Problem
from graphkeel.verify.query import TINY, Chain, Row, errors_of

ROUND = 2.0**-51  # more than the relative rounding of two operations


@dataclass(frozen=True, eq=False)
class Region:
    """The states of a problem's box in which coordinate `axis` leads all others by `margin`."""

    problem: Problem
    axis: int
    margin: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.axis < self.problem.n:
            raise ProblemError(
                f"a region's axis must lie in 0 … {self.problem.n - 1}", got=self.axis
            )
        if not (np.isfinite(self.margin) and self.margin >= 0):
            raise ProblemError("a region's margin must be finite and not negative", got=self.margin)

    @property
    def rivals(self) -> list[int]:
        return [k for k in range(self.problem.n) if k != self.axis]

    def lead(self, points: Array) -> Array:
        """By how much the class leads at points (..., n), in float64."""
        others = points[..., self.rivals].max(axis=-1, initial=-np.inf)
        return np.asarray(points[..., self.axis] - others)


def violates(region: Region, point: Array) -> bool:
    """Whether a state of the region is certainly led out of it, over real arithmetic and all
    weights within errors."""
    state, margin = rationals(point), Fraction(region.margin)
    if not in_box(region.problem, state) or any(
        state[region.axis] - state[k] < margin for k in region.rivals
    ):
        return False
    after = evaluate(region.problem.closed_loop, [(y, y) for y in state])
    highest = after[region.axis][1]
    if margin == 0:
        return any(highest - after[k][0] <= 0 for k in region.rivals)
    return any(highest - after[k][0] < margin for k in region.rivals)


# ---- rows


def region_rows(region: Region, weights: Array) -> list[Row]:
    """F_k − F_c + γ + Σ_j λ_j·(y_c − y_j − γ) for every k ≠ c, roundings in the error bounds."""
    *hidden, last = region.problem.closed_loop.layers
    we, be = errors_of(last)
    rows = []
    for k, pull in zip(region.rivals, weights, strict=True):
        c = region.axis
        weight, bias = last.weight[[k]] - last.weight[[c]], last.bias[[k]] - last.bias[[c]]
        error = (we[[k]] + we[[c]]) * (1 + ROUND) + np.abs(weight) * ROUND + TINY
        offset = (be[[k]] + be[[c]]) * (1 + ROUND) + np.abs(bias) * ROUND + TINY
        step = Affine(weight, bias, error, offset)
        tilt = _tilt(region, pull)
        direct, chain = (
            (tilt, Chain(tuple(hidden), step)) if hidden else (_sum(tilt, step), _NO_CHAIN)
        )
        ends = (region.problem.lower, region.problem.upper)
        rows.append(Row(f"class {k}", direct, (chain, _NO_CHAIN), *ends, strict=region.margin == 0))
    return rows


_NO_CHAIN = Chain((), Affine(np.zeros((1, 0)), np.zeros(1)))


def _tilt(region: Region, pull: Array) -> Affine:
    """γ + Σ_j λ_j·(y_c − y_j − γ)."""
    n, total = region.problem.n, float(pull.sum())
    weight, error = -pull[None, :].copy(), np.zeros((1, n))
    weight[0, region.axis], error[0, region.axis] = total, n * ROUND * total + TINY
    bias = np.array([region.margin * (1.0 - total)])
    return Affine(
        weight, bias, error, (n + 4) * ROUND * region.margin * (1.0 + total) * np.ones(1) + TINY
    )


def _sum(a: Affine, b: Affine) -> Affine:
    (wa, ba), (wb, bb) = errors_of(a), errors_of(b)
    weight, bias = a.weight + b.weight, a.bias + b.bias
    weight_error = (wa + wb + np.abs(weight) * ROUND) * (1 + ROUND)
    return Affine(weight, bias, weight_error, (ba + bb + np.abs(bias) * ROUND) * (1 + ROUND))


# ---- multipliers: any λ ≥ 0 is sound, so these are plain floats


def multipliers(region: Region) -> Array:
    """λ, a row for every k ≠ c and a column for every j, that brings the relaxation's bound on the
    box down."""
    n, c, rivals = region.problem.n, region.axis, region.rivals
    rows = np.zeros((len(rivals), n))
    rows[np.arange(len(rivals)), rivals] = 1.0
    rows[:, c] = -1.0
    linear = _upper_form(region.problem, rows)
    return np.array(
        [_pull(region, form, k) for form, k in zip(linear, rivals, strict=True)]
    ).reshape(-1, n)


def _pull(region: Region, form: Array, rival: int) -> Array:
    """Coordinate descent from the rival on: the maximum over the box is piecewise linear in λ_j,
    with two bends."""
    lower, upper, c = region.problem.lower, region.problem.upper, region.axis
    pull = np.zeros(region.problem.n)

    def top(candidate: Array) -> float:
        tilted = form - candidate
        tilted[c] += candidate.sum()
        return float(
            np.maximum(tilted * lower, tilted * upper).sum() - region.margin * candidate.sum()
        )

    for j in [rival, *(k for k in region.rivals if k != rival)]:
        for bend in (form[j], pull[j] - form[c] - pull.sum()):
            if bend > 0.0:
                candidate = pull.copy()
                candidate[j] = bend
                pull = candidate if top(candidate) < top(pull) else pull
    return pull


def _upper_form(problem: Problem, rows: Array) -> Array:
    """Coefficients of a linear form above rows·F on the box, by relaxing every ReLU once."""
    ends, low, high = [], problem.lower, problem.upper
    *hidden, last = problem.closed_loop.layers
    for layer in hidden:
        centre, spread = (
            layer.weight @ ((low + high) / 2) + layer.bias,
            np.abs(layer.weight) @ ((high - low) / 2),
        )
        ends.append((centre - spread, centre + spread))
        low, high = np.maximum(centre - spread, 0.0), np.maximum(centre + spread, 0.0)
    linear = rows @ last.weight
    for layer, (under, over) in zip(reversed(hidden), reversed(ends), strict=True):
        bent = (under < 0) & (over > 0)
        width = np.where(bent, over - under, 1.0)
        stable = (under >= 0).astype(np.float64)
        upper = np.where(bent, over / width, stable)
        lower = np.where(bent, np.clip(0.5 + 4 * (over + under) / width, 0.0, 1.0), stable)
        linear = (np.maximum(linear, 0.0) * upper + np.minimum(linear, 0.0) * lower) @ layer.weight
    return np.asarray(linear)
