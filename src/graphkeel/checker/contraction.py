"""A contraction factor from the weights alone (proof format, 4).

Where V is a weighted one-norm around Y but for a small error,

    V_h(z) = Σ_i (up_i·max(z_i, 0) + down_i·max(−z_i, 0)),   |V(y) − V_h(y − Y)| ≤ error,

a factor κ with V_h(F(y) − F(y′)) ≤ κ·V_h(y − y′) for all y, y′ in Rⁿ follows from how far each
hidden unit can move when one coordinate does: a ReLU passes on between nothing and all of it.
"""

from fractions import Fraction
from operator import neg
from typing import Any, NamedTuple

from .exact import Matrix, Vector, Work, drop, rise, scaled
from .networks import Network, value_at
from .problem import Problem
from .reading import Rejected


class Gauge(NamedTuple):
    """V_h, how far V is from it, and floor > 0 with V_h(z) ≥ floor·‖z‖∞."""

    up: Vector
    down: Vector
    error: Fraction
    floor: Fraction

    def __call__(self, z: Vector) -> Fraction:
        return self.up.dot(z.each(rise)) + self.down.dot(z.each(drop))


def gauge_of(problem: Problem) -> Gauge | None:
    """V as a weighted one-norm that grows along both directions of every axis, if it is one."""
    if len(problem.lyapunov) != 2:
        return None
    inner, outer = problem.lyapunov
    axes = all(sum(value != 0 for value in row) == 1 for row in inner.weight.rows)
    if min(outer.weight.rows[0]) < 0 or not axes:
        return None
    up = (outer.weight @ inner.weight.each(rise)).row(0)
    down = (outer.weight @ inner.weight.each(drop)).row(0)
    shift = outer.weight.apply(inner.apply(problem.equilibrium).each(abs))
    error = (shift + outer.bias.each(abs)).fractions()[0]
    floor = min(up.joined(down).fractions())
    return Gauge(up, down, error, floor) if floor > 0 else None


def contraction_factor(forward: Network, gauge: Gauge) -> Fraction:
    """κ = max_i Σ_j max(G_j·U_ji, S_j·N_ji)/up_i, and the same downwards with U and N exchanged.

    U_ji, N_ji: how far unit j of the last hidden layer goes up and down while y_i grows by one;
    G_j, S_j: what V_h grows by when that unit goes up, and down, by one.
    """
    n, last = len(gauge.up), forward[-1].weight
    columns = [Vector(column, last.exp) for column in last.columns]
    sizes = [(gauge(column), gauge(column.each(neg))) for column in columns]
    up, down = Matrix([[int(i == j) for j in range(n)] for i in range(n)]), Matrix([[0] * n] * n)
    for layer in forward[:-1]:
        plus, less = layer.weight.each(rise), layer.weight.each(drop)
        up, down = plus @ up + less @ down, plus @ down + less @ up
    factor = Fraction(0)
    for (above, below), shares in (((up, down), gauge.up), ((down, up), gauge.down)):
        for i, share in enumerate(shares.fractions()):
            total = Fraction(0)
            for (grows, shrinks), ups, downs in zip(sizes, above.rows, below.rows, strict=True):
                rises, drops = scaled(ups[i], above.exp), scaled(downs[i], below.exp)
                total += max(grows * rises, shrinks * drops)
            factor = max(factor, total / share)
    return factor


def check_contraction(problem: Problem, condition: str, _proof: Any, _work: Work) -> int:
    """Rejected unless the weights alone give the condition; no leaf is needed for it."""
    gauge = gauge_of(problem)
    gives = {"positivity": _gives_positivity, "decrease": _gives_decrease}
    if gauge is None or condition not in gives or not gives[condition](problem, gauge):
        raise Rejected(f"{condition}: the weights do not give a contraction that shows it")
    return 0


def _gives_positivity(problem: Problem, gauge: Gauge) -> bool:
    c, reach = problem.positivity, gauge.floor * problem.radius
    if c == 0:
        return gauge.error == 0 or reach > gauge.error
    return gauge.floor >= c and reach - c * problem.radius >= gauge.error


def _gives_decrease(problem: Problem, gauge: Gauge) -> bool:
    """V(F(y)) ≤ κ·V(y) + loss, and outside the hole (ρ − κ)·V(y) is at least that."""
    factor = contraction_factor(problem.forward, gauge)
    moved = value_at(problem.forward, problem.equilibrium) - problem.equilibrium
    loss = gauge(moved) + (1 + factor) * gauge.error
    gain = (problem.rho - factor) * (gauge.floor * problem.radius - gauge.error)
    if factor >= problem.rho:
        return False
    return gain > loss or (gain == loss and (problem.rho < 1 or loss == problem.radius == 0))
