"""A proof from the weights alone: V∘F ≤ κV on all of R^n, without search, in exact rationals.

For V = Σ_i (p_i·z_i⁺ + m_i·z_i⁻), a weighted ℓ1 norm that may differ by direction, and F of any
depth. Between the equilibrium and any state each hidden unit moves by a share in [0, 1] of its
input's move; layer by layer that bounds how far the units move with one coordinate of the state. V
is subadditive, and a convex function on V's unit ball is largest at the ball's corners ±e_i: that
gives κ (docs/formats.md, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphkeel.verify.affine import errors_of
from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Problem
from graphkeel.verify.proof import Json, head
from graphkeel.verify.rational import Exact, ExactLayer, evaluate, exact, sup_radius, times
from graphkeel.verify.result import Budget, ConditionReport, Verdict


@dataclass(frozen=True)
class Gauge:
    """V(y) = Σ_i (plus_i·z_i⁺ + minus_i·z_i⁻) up to `error`, z = y − Y."""

    plus: Exact
    minus: Exact
    error: Fraction

    @property
    def floor(self) -> Fraction:
        """V(y) + error ≥ floor·‖z‖∞."""
        return min(*self.plus, *self.minus)

    def of(self, z: Exact) -> Exact:
        """V_h of every column of z, or of a vector."""
        found: Exact = self.plus @ np.maximum(z, 0) + self.minus @ np.maximum(-z, 0)
        return found


def gauge_of(problem: Problem) -> Gauge | str:
    """V read as a gauge, or the reason why it is none."""
    layers = problem.lyapunov.layers
    if len(layers) != 2:
        return "V needs exactly one hidden layer"
    first, last = layers
    if first.weight_error is not None or last.weight_error is not None:
        return "V's weights carry errors"
    rows, v = exact(first.weight), exact(last.weight[0])
    if min(v) < 0:
        return "V has a negative output weight"
    if (np.count_nonzero(first.weight, axis=1) != 1).any():
        return "a hidden unit of V reads several coordinates (or none)"
    plus, minus = v @ np.maximum(rows, 0), v @ np.maximum(-rows, 0)
    if min(*plus, *minus) <= 0:
        return "V does not grow in every direction"
    at_rest = abs(times(rows, exact(problem.equilibrium)) + exact(first.bias))
    error = v @ (at_rest + exact(errors_of(first)[1]))
    return Gauge(plus, minus, error + sum(abs(exact(last.bias)) + exact(errors_of(last)[1])))


_Loop = tuple[ExactLayer, ...]  # F layer by layer, a ReLU between each two


def loop_of(problem: Problem) -> _Loop:
    """F in rationals."""
    return tuple(map(ExactLayer.of, problem.closed_loop.layers))


def contraction_factor(gauge: Gauge, loop: _Loop) -> Fraction:
    """κ with V_h(F(y) − F(Y)) ≤ κ·V_h(y − Y) for every state and every network within the error
    bounds."""
    *hidden, last = loop
    spread = np.maximum(gauge.plus, gauge.minus) @ last.weight_error
    forward, backward = (gauge.of(sign * last.weight) + spread for sign in (1, -1))
    ups, downs = _moves(hidden, len(gauge.plus))

    def moved(ups: Exact, downs: Exact) -> Exact:
        return np.maximum(forward[:, None] * ups, backward[:, None] * downs).sum(axis=0)

    return max(*(moved(ups, downs) / gauge.plus), *(moved(downs, ups) / gauge.minus))


def _moves(hidden: Sequence[ExactLayer], n: int) -> tuple[Exact, Exact]:
    """How far up and down each unit of the last hidden layer may move when one coordinate of the
    state grows by one, shape (units, n): every ReLU passes on a share in [0, 1] of its input's
    move, so what it gets spans [−down, up] with 0 in it."""
    ups, downs = exact(np.eye(n)), exact(np.zeros((n, n)))
    for layer in hidden:
        rising, falling = np.maximum(layer.weight, 0), np.maximum(-layer.weight, 0)
        slack = times(layer.weight_error, np.maximum(ups, downs))
        higher = times(rising, ups) + times(falling, downs) + slack
        ups, downs = higher, times(rising, downs) + times(falling, ups) + slack
    return ups, downs


def _residual(problem: Problem, gauge: Gauge) -> Fraction:
    """A bound on V_h(F(Y) − Y) over the error bounds."""
    centre = exact(problem.equilibrium)
    after = evaluate(problem.closed_loop, [(y, y) for y in centre])
    low, high = (np.array(ends, dtype=object) - centre for ends in zip(*after, strict=True))
    found: Fraction = gauge.plus @ np.maximum(high, 0) + gauge.minus @ np.maximum(-low, 0)
    return found


class ContractionVerifier(ConditionwiseEngine):
    """Closed-form proofs of decrease and positivity; answers `unknown` where the shape or the
    factor does not fit."""

    name = "contraction"

    def supports(self, problem: Problem) -> str | None:
        """Why V is no gauge, or None."""
        gauge = gauge_of(problem)
        return gauge if isinstance(gauge, str) else None

    def decide(
        self, problem: Problem, condition: str, budget: Budget | None = None
    ) -> ConditionReport:
        """Compare the factor that the weights give with ρ."""
        gauge = gauge_of(problem)
        if isinstance(gauge, str):
            return self.report(condition, Verdict.UNKNOWN, gauge)
        if condition == "positivity":
            reason, proof = _positivity(problem, gauge)
        elif condition == "decrease":
            reason, proof = _decrease(problem, gauge)
        else:
            reason, proof = f"{condition} has no closed form", None
        verdict = Verdict.UNKNOWN if proof is None else Verdict.PROVED
        return self.report(condition, verdict, reason, proof=proof)


_Answer = tuple[str, Json | None]


def _positivity(problem: Problem, gauge: Gauge) -> _Answer:
    radius, c = sup_radius(problem), Fraction(problem.positivity)
    spare = (gauge.floor - c) * radius
    if c == 0:
        holds = gauge.floor * radius > gauge.error or gauge.error == 0
    else:
        holds = gauge.floor >= c and spare >= gauge.error
    if not holds:
        return "the weights alone do not give V ≥ c‖y − Y‖∞", None
    proof = head("contraction", "positivity") | {"floor": str(gauge.floor)}
    return f"V ≥ {float(gauge.floor):.3g}·‖y − Y‖∞ from its weights", proof


def _decrease(problem: Problem, gauge: Gauge) -> _Answer:
    loop = loop_of(problem)
    kappa = contraction_factor(gauge, loop)
    shift = _residual(problem, gauge)
    rho, radius = Fraction(problem.rho), sup_radius(problem)
    needed = shift + (1 + kappa) * gauge.error
    spare = (rho - kappa) * (gauge.floor * radius - gauge.error)
    exact = needed == 0 and gauge.error == 0
    holds = spare > needed or exact or (spare >= needed and problem.rho < 1.0)
    if not (kappa < rho and holds):
        factor = f"the contraction factor {float(kappa):.4g}"
        return f"{factor} does not give decrease with ρ = {problem.rho:g}", None
    proof = head("contraction", "decrease") | {
        "kappa": str(kappa),
        "floor": str(gauge.floor),
        "residual": str(shift),
    }
    return f"V∘F ≤ {float(kappa):.4g}·V everywhere, from the weights", proof
