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

from graphkeel.verify.engine import ConditionwiseEngine
from graphkeel.verify.problem import Problem
from graphkeel.verify.proof import Json, head
from graphkeel.verify.rational import (
    ZERO,
    RationalLayer,
    Vector,
    bias_errors,
    dot,
    rational,
    rationals,
    sup_radius,
)
from graphkeel.verify.result import Budget, ConditionReport, Verdict


@dataclass(frozen=True)
class Gauge:
    """V(y) = Σ_i (plus_i·z_i⁺ + minus_i·z_i⁻) up to `error`, z = y − Y."""

    plus: Vector
    minus: Vector
    error: Fraction

    @property
    def floor(self) -> Fraction:
        """V(y) + error ≥ floor·‖z‖∞."""
        return min(*self.plus, *self.minus)

    def of(self, z: Vector) -> Fraction:
        weighted = zip(z, self.plus, self.minus, strict=True)
        return sum((p * x if x >= 0 else -m * x for x, p, m in weighted), ZERO)

    def largest(self, spread: Vector) -> Fraction:
        """An upper bound of V over all z with |z_i| ≤ spread_i.

        Args:
            spread: shape (n,), ≥ 0.
        """
        return sum(
            (max(p, m) * x for x, p, m in zip(spread, self.plus, self.minus, strict=True)), ZERO
        )


def gauge_of(problem: Problem) -> Gauge | str:
    """V read as a gauge, or the reason why it is none."""
    layers = problem.lyapunov.layers
    if len(layers) != 2:
        return "V needs exactly one hidden layer"
    first, last = layers
    if first.weight_error is not None or last.weight_error is not None:
        return "V's weights carry errors"
    v = rationals(last.weight[0])
    if any(x < 0 for x in v):
        return "V has a negative output weight"
    centre = rationals(problem.equilibrium)
    plus, minus = [ZERO] * problem.n, [ZERO] * problem.n
    error = abs(rational(last.bias[0])) + bias_errors(last)[0]
    for k, slack in enumerate(bias_errors(first)):
        used = [i for i in range(problem.n) if first.weight[k, i] != 0.0]
        if len(used) != 1:
            return "a hidden unit of V reads several coordinates (or none)"
        i, weight = used[0], rational(first.weight[k, used[0]])
        error += v[k] * (abs(weight * centre[i] + rational(first.bias[k])) + slack)
        if weight > 0:
            plus[i] += v[k] * weight
        else:
            minus[i] -= v[k] * weight
    if min(*plus, *minus) <= 0:
        return "V does not grow in every direction"
    return Gauge(plus, minus, error)


_Loop = tuple[RationalLayer, ...]  # F layer by layer, a ReLU between each two
_Moves = tuple[list[Vector], list[Vector]]  # per unit and axis: at most so far up, so far down


def loop_of(problem: Problem) -> _Loop:
    """F in rationals."""
    return tuple(map(RationalLayer.of, problem.closed_loop.layers))


def contraction_factor(gauge: Gauge, loop: _Loop) -> Fraction:
    """κ with V_h(F(y) − F(Y)) ≤ κ·V_h(y − Y) for every state and every network within the error
    bounds."""
    n = len(gauge.plus)
    *hidden, last = loop
    forward, backward = [], []
    for j in range(len(last.weight[0])):
        column = [last.weight[i][j] for i in range(n)]
        spread = gauge.largest([last.weight_error[i][j] for i in range(n)])
        forward.append(gauge.of(column) + spread)
        backward.append(gauge.of([-x for x in column]) + spread)
    ups, downs = _moves(hidden, n)

    def moved(i: int, ups: list[Vector], downs: list[Vector]) -> Fraction:
        units = zip(forward, backward, ups, downs, strict=True)
        return sum((max(g * up[i], s * down[i]) for g, s, up, down in units), ZERO)

    along = [moved(i, ups, downs) / gauge.plus[i] for i in range(n)]
    against = [moved(i, downs, ups) / gauge.minus[i] for i in range(n)]
    return max(*along, *against)


def _moves(hidden: Sequence[RationalLayer], n: int) -> _Moves:
    """How far each unit of the last hidden layer may move when one coordinate of the state grows by
    one."""
    ups = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    downs = [[ZERO] * n for _ in range(n)]
    for index, layer in enumerate(hidden):
        # every ReLU passes on a share in [0, 1] of its input's move, so what it gets spans [−down,
        # up] with 0 in it
        ups, downs = _first_moves(layer) if index == 0 else _next_moves(layer, ups, downs)
    return ups, downs


def _first_moves(layer: RationalLayer) -> _Moves:
    pairs = [
        list(zip(w, e, strict=True)) for w, e in zip(layer.weight, layer.weight_error, strict=True)
    ]
    ups = [[max(x + slack, ZERO) for x, slack in row] for row in pairs]
    return ups, [[max(slack - x, ZERO) for x, slack in row] for row in pairs]


def _next_moves(layer: RationalLayer, ups: list[Vector], downs: list[Vector]) -> _Moves:
    above, below = list(zip(*ups, strict=True)), list(zip(*downs, strict=True))  # per axis
    reach = [
        [max(u, d) for u, d in zip(up, down, strict=True)]
        for up, down in zip(above, below, strict=True)
    ]
    higher, lower = [], []
    for weights, errors in zip(layer.weight, layer.weight_error, strict=True):
        rising, falling = [max(w, ZERO) for w in weights], [max(-w, ZERO) for w in weights]
        slack = [dot(errors, list(size)) for size in reach]
        axes = list(zip(above, below, slack, strict=True))
        higher.append([dot(rising, list(u)) + dot(falling, list(d)) + s for u, d, s in axes])
        lower.append([dot(rising, list(d)) + dot(falling, list(u)) + s for u, d, s in axes])
    return higher, lower


def _residual(problem: Problem, gauge: Gauge, loop: _Loop) -> Fraction:
    """A bound on V_h(F(Y) − Y) over the error bounds."""
    centre = rationals(problem.equilibrium)
    values, deviations = centre, [ZERO] * len(centre)
    for index, layer in enumerate(loop):
        size = [abs(v) for v in values]
        rows = list(zip(layer.weight, layer.weight_error, layer.bias_error, strict=True))
        deviations = [
            dot([abs(x) + y for x, y in zip(w, e, strict=True)], deviations) + dot(e, size) + c
            for w, e, c in rows
        ]
        values = [dot(w, values) + b for w, b in zip(layer.weight, layer.bias, strict=True)]
        if index + 1 < len(loop):
            values = [max(v, ZERO) for v in values]
    total = ZERO
    for i, (value, error) in enumerate(zip(values, deviations, strict=True)):
        ends = (value - centre[i] - error, value - centre[i] + error)
        total += max(gauge.plus[i] * a if a >= 0 else -gauge.minus[i] * a for a in ends)
    return total


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
    shift = _residual(problem, gauge, loop)
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
