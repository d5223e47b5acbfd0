"""Where the loop is positively homogeneous around Y, the faces of the box carry its whole inside.

With z = y − Y, a loop without offsets satisfies g(Y + t·z) = t·g(Y + z), so a margin on the faces
that do not contain Y becomes a margin in proportion to the distance everywhere, and no hole is
needed. Real weights are homogeneous only up to the last bits; `deviation` bounds that in exact
rationals, and the margin on the faces covers it (docs/formats.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from graphkeel.verify.conditions import rows_of
from graphkeel.verify.problem import Network, Problem
from graphkeel.verify.query import Row
from graphkeel.verify.rational import Exact, ExactLayer, exact, rationals, sup_radius, times
from graphkeel.verify.settings import BRANCH


@dataclass(frozen=True, eq=False)
class Face:
    """One row on one face of the box."""

    row: Row
    axis: int
    side: str


@dataclass(frozen=True, eq=False)
class Plan:
    """The task on the faces: g + margin ≤ 0 on every one of them."""

    margin: float
    faces: tuple[Face, ...]


def plan(problem: Problem, condition: str, max_margin: float = BRANCH.max_margin) -> Plan | None:
    """The faces and the margin that would prove a condition, or None where the loop is not
    homogeneous or a search over faces does not pay."""
    inside = (problem.lower <= problem.equilibrium) & (problem.equilibrium <= problem.upper)
    if condition not in ("decrease", "positivity") or not inside.all():
        return None
    # the rows of positivity have to be shown on all the faces: only worth it where there is no
    # other way
    if condition == "positivity" and problem.hole_radius > 0.0:
        return None
    margin = _margin(problem, condition, max_margin)
    if margin is None:
        return None
    faces = [face for row in rows_of(problem, condition) for face in _faces(problem, row)]
    return Plan(margin, tuple(faces))


def _margin(problem: Problem, condition: str, max_margin: float) -> float | None:
    size = _size_of_v(problem)
    if _quick_deviation(problem) > max_margin * size:
        return None
    delta, radius = deviation(problem, condition), sup_radius(problem)
    if delta == 0:
        return 1e-12 * size if size > 0.0 else None
    if radius == 0:
        return None
    bounds = (rationals(problem.lower), rationals(problem.equilibrium), rationals(problem.upper))
    reach = max(max(u - y, y - low) for low, y, u in zip(*bounds, strict=True))
    margin = float(delta * (1 + reach / radius)) * (1.0 + 1e-9)
    paid = (Fraction(margin) - delta) * radius > delta * reach
    return margin if paid and margin <= max_margin * size else None


def _size_of_v(problem: Problem) -> float:
    """A typical value of V on the faces."""
    rng = np.random.default_rng(0)
    corners = np.where(rng.random((64, problem.n)) < 0.5, problem.lower, problem.upper)
    return float(np.abs(problem.lyapunov(corners)).mean())


def _quick_deviation(problem: Problem) -> float:
    """How far F(Y) is from Y and first layers are from vanishing there, in floats, as a quick
    test before the exact one."""
    f, v = problem.closed_loop.layers, problem.lyapunov.layers
    centre = problem.equilibrium
    first = [
        np.abs(v[0].weight @ centre + v[0].bias).max(),
        np.abs(v[-1].bias).max() if len(v) > 1 else 0.0,
    ]
    if len(f) > 1:
        first.append(np.abs(f[0].weight @ centre + f[0].bias).max())
    return float(max(*first, *(np.abs(layer.bias).max() for layer in f[1:-1]), 0.0))


def _faces(problem: Problem, row: Row) -> list[Face]:
    faces = []
    for axis in range(problem.n):
        for side, bound in (("lower", problem.lower[axis]), ("upper", problem.upper[axis])):
            if bound == problem.equilibrium[axis]:
                continue
            lower, upper = problem.lower.copy(), problem.upper.copy()
            lower[axis] = upper[axis] = bound
            flat = replace(row, lower=lower, upper=upper, hole=False, strict=False, empty=False)
            faces.append(Face(flat, axis, side))
    return faces


def deviation(problem: Problem, condition: str) -> Fraction:
    """δ: a bound on |g − g_h| over all of R^n and all weights within the errors."""
    still, centre = exact(np.zeros(problem.n)), exact(problem.equilibrium)
    here = _through(problem.lyapunov, still, centre, exact([0.0]))
    if condition == "positivity":
        return here[0]
    displaced = _through(problem.closed_loop, still, centre, centre)
    after = _through(problem.lyapunov, displaced, centre, exact([0.0]))
    return after[0] + Fraction(problem.rho) * here[0]


def _through(network: Network, deviation: Exact, centre: Exact, target: Exact) -> Exact:
    """Propagate a deviation through a network whose homogeneous part maps `centre` to `target`."""
    last = len(network.layers) - 1
    for index, layer in enumerate(map(ExactLayer.of, network.layers)):
        known = centre if index == 0 else 0 * layer.weight[0]
        rest = layer.bias + times(layer.weight, known) - (target if index == last else 0)
        sizes = abs(layer.weight) + layer.weight_error
        spread = times(sizes, deviation) + times(layer.weight_error, abs(known))
        deviation = abs(rest) + layer.bias_error + spread
    return deviation
