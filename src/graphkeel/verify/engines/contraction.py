"""A proof from the weights alone: V∘F ≤ κV on all of R^n, without search, in exact rationals.

For V = Σ_i (p_i·z_i⁺ + m_i·z_i⁻), a weighted ℓ1 norm that may differ by direction, and F of any
depth. Between the equilibrium and any state each hidden unit moves by a share in [0, 1] of its
input's move; layer by layer that bounds how far the units move with one coordinate of the state. V
is subadditive, and a convex function on V's unit ball is largest at the ball's corners ±e_i: that
gives κ (docs/proof-format.md, section 4)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

from graphkeel.verify.exact import ZERO, rationals
from graphkeel.verify.problem import CONDITIONS, Affine, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, Verdict, VerifyReport

Vector = list[Fraction]


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
        """An upper bound of V over all z with |z_i| ≤ spread_i."""
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
    error = abs(Fraction(float(last.bias[0]))) + _bias_errors(last)[0]
    for k, slack in enumerate(_bias_errors(first)):
        used = [i for i in range(problem.n) if first.weight[k, i] != 0.0]
        if len(used) != 1:
            return "a hidden unit of V looks at several coordinates (or none)"
        i, weight = used[0], Fraction(float(first.weight[k, used[0]]))
        error += v[k] * (abs(weight * centre[i] + Fraction(float(first.bias[k]))) + slack)
        if weight > 0:
            plus[i] += v[k] * weight
        else:
            minus[i] -= v[k] * weight
    if min(*plus, *minus) <= 0:
        return "V does not grow in every direction"
    return Gauge(plus, minus, error)


def _bias_errors(layer: Affine) -> Vector:
    return [ZERO] * layer.n_out if layer.bias_error is None else rationals(layer.bias_error)


def _matrix(values: object, rows: int, columns: int) -> list[Vector]:
    if values is None:
        return [[ZERO] * columns for _ in range(rows)]
    return [rationals(row) for row in values]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Layer:
    """One affine layer of F in rationals, with its error bounds."""

    weight: list[Vector]
    bias: Vector
    weight_error: list[Vector]
    bias_error: Vector

    @classmethod
    def of(cls, layer: Affine) -> Layer:
        error = _matrix(layer.weight_error, layer.n_out, layer.n_in)
        return cls(
            _matrix(layer.weight, layer.n_out, layer.n_in),
            rationals(layer.bias),
            error,
            _bias_errors(layer),
        )


@dataclass(frozen=True)
class Loop:
    """F layer by layer, a ReLU between each two."""

    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, problem: Problem) -> Loop:
        return cls(tuple(map(Layer.of, problem.closed_loop.layers)))


Moves = tuple[
    list[Vector], list[Vector]
]  # per unit and axis: at most so far up, at most so far down


def contraction_factor(gauge: Gauge, loop: Loop) -> Fraction:
    """κ with V_h(F(y) − F(Y)) ≤ κ·V_h(y − Y) for every state and every network within the error
    bounds."""
    n, last = len(gauge.plus), loop.layers[-1]
    forward, backward = [], []
    for j in range(len(last.weight[0])):
        column = [last.weight[i][j] for i in range(n)]
        spread = gauge.largest([last.weight_error[i][j] for i in range(n)])
        forward.append(gauge.of(column) + spread)
        backward.append(gauge.of([-x for x in column]) + spread)
    ups, downs = _moves(loop.layers[:-1], n)

    def moved(i: int, ups: list[Vector], downs: list[Vector]) -> Fraction:
        units = zip(forward, backward, ups, downs, strict=True)
        return sum((max(g * up[i], s * down[i]) for g, s, up, down in units), ZERO)

    along = [moved(i, ups, downs) / gauge.plus[i] for i in range(n)]
    against = [moved(i, downs, ups) / gauge.minus[i] for i in range(n)]
    return max(*along, *against)


def _moves(hidden: tuple[Layer, ...], n: int) -> Moves:
    """How far each unit of the last hidden layer may move when one coordinate of the state grows by
    one."""
    ups = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    downs = [[ZERO] * n for _ in range(n)]
    for index, layer in enumerate(hidden):
        # every ReLU passes on a share in [0, 1] of its input's move, so what it gets spans [−down,
        # up] with 0 in it
        ups, downs = _first_moves(layer) if index == 0 else _next_moves(layer, ups, downs)
    return ups, downs


def _first_moves(layer: Layer) -> Moves:
    pairs = [
        list(zip(w, e, strict=True)) for w, e in zip(layer.weight, layer.weight_error, strict=True)
    ]
    ups = [[max(x + slack, ZERO) for x, slack in row] for row in pairs]
    return ups, [[max(slack - x, ZERO) for x, slack in row] for row in pairs]


def _next_moves(layer: Layer, ups: list[Vector], downs: list[Vector]) -> Moves:
    above, below = list(zip(*ups, strict=True)), list(zip(*downs, strict=True))  # per axis
    reach = [
        [max(u, d) for u, d in zip(up, down, strict=True)]
        for up, down in zip(above, below, strict=True)
    ]
    higher, lower = [], []
    for weights, errors in zip(layer.weight, layer.weight_error, strict=True):
        rising, falling = [max(w, ZERO) for w in weights], [max(-w, ZERO) for w in weights]
        slack = [_dot(errors, list(size)) for size in reach]
        axes = list(zip(above, below, slack, strict=True))
        higher.append([_dot(rising, list(u)) + _dot(falling, list(d)) + s for u, d, s in axes])
        lower.append([_dot(rising, list(d)) + _dot(falling, list(u)) + s for u, d, s in axes])
    return higher, lower


def residual(problem: Problem, gauge: Gauge, loop: Loop) -> Fraction:
    """A bound on V_h(F(Y) − Y) over the error bounds."""
    centre = rationals(problem.equilibrium)
    values, shaken = centre, [ZERO] * len(centre)
    for index, layer in enumerate(loop.layers):
        size = [abs(v) for v in values]
        rows = list(zip(layer.weight, layer.weight_error, layer.bias_error, strict=True))
        shaken = [
            _dot([abs(x) + y for x, y in zip(w, e, strict=True)], shaken) + _dot(e, size) + c
            for w, e, c in rows
        ]
        values = [_dot(w, values) + b for w, b in zip(layer.weight, layer.bias, strict=True)]
        if index + 1 < len(loop.layers):
            values = [max(v, ZERO) for v in values]
    total = ZERO
    for i, (value, error) in enumerate(zip(values, shaken, strict=True)):
        ends = (value - centre[i] - error, value - centre[i] + error)
        total += max(gauge.plus[i] * a if a >= 0 else -gauge.minus[i] * a for a in ends)
    return total


def _dot(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), ZERO)


def outside_radius(problem: Problem) -> Fraction:
    """A rational not above r∞: every state outside the hole is at least this far away in L∞."""
    radius = Fraction(problem.hole_radius)
    if problem.hole_norm == "inf" or radius == 0:
        return radius
    # radius / √n from below: the integer square root of n·4^60 rounded up
    root = Fraction(_root_above(problem.n << 120), 1 << 60)
    return radius / root


def _root_above(value: int) -> int:
    from math import isqrt

    root = isqrt(value)
    return root if root * root == value else root + 1


class ContractionVerifier:
    """Closed-form proofs of decrease and positivity; answers `unknown` where the shape or the
    factor does not fit."""

    name = "contraction"

    def supports(self, problem: Problem) -> str | None:
        gauge = gauge_of(problem)
        return gauge if isinstance(gauge, str) else None

    def solve(
        self,
        problem: Problem,
        budget: Budget | None = None,
        conditions: tuple[str, ...] = tuple(CONDITIONS),
    ) -> VerifyReport:
        check_conditions(conditions)
        start = time.monotonic()
        reports = tuple(self.decide(problem, condition) for condition in conditions)
        return VerifyReport(reports, time.monotonic() - start)

    def decide(self, problem: Problem, condition: str) -> ConditionReport:
        start = time.monotonic()
        gauge = gauge_of(problem)
        if isinstance(gauge, str):
            return ConditionReport(condition, Verdict.UNKNOWN, self.name, gauge)
        if condition == "positivity":
            reason, proof = _positivity(problem, gauge)
        elif condition == "decrease":
            reason, proof = _decrease(problem, gauge)
        else:
            reason, proof = f"{condition} has no closed form", None
        verdict = Verdict.UNKNOWN if proof is None else Verdict.PROVED
        seconds = time.monotonic() - start
        return ConditionReport(condition, verdict, self.name, reason, seconds=seconds, proof=proof)


Answer = tuple[str, dict[str, object] | None]


def _positivity(problem: Problem, gauge: Gauge) -> Answer:
    radius, c = outside_radius(problem), Fraction(problem.positivity)
    room = (gauge.floor - c) * radius
    if c == 0:
        holds = gauge.floor * radius > gauge.error or gauge.error == 0
    else:
        holds = gauge.floor >= c and room >= gauge.error
    if not holds:
        return "the weights alone do not give V ≥ c‖y − Y‖∞", None
    proof = {
        "version": 1,
        "kind": "contraction",
        "condition": "positivity",
        "floor": str(gauge.floor),
    }
    return f"V ≥ {float(gauge.floor):.3g}·‖y − Y‖∞ from its weights", proof


def _decrease(problem: Problem, gauge: Gauge) -> Answer:
    loop = Loop.of(problem)
    kappa, rest = contraction_factor(gauge, loop), residual(problem, gauge, loop)
    rho, radius = Fraction(problem.rho), outside_radius(problem)
    needed = rest + (1 + kappa) * gauge.error
    room = (rho - kappa) * (gauge.floor * radius - gauge.error)
    exact = needed == 0 and gauge.error == 0
    holds = room > needed or exact or (room >= needed and problem.rho < 1.0)
    if not (kappa < rho and holds):
        return (
            f"the contraction factor {float(kappa):.4g} does not give decrease with ρ = {problem.rho:g}",
            None,
        )
    proof: dict[str, object] = {"version": 1, "kind": "contraction", "condition": "decrease"}
    proof |= {"kappa": str(kappa), "floor": str(gauge.floor), "residual": str(rest)}
    return f"V∘F ≤ {float(kappa):.4g}·V everywhere, from the weights", proof
