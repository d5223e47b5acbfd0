"""Choosing a lens: a non-negative matrix Θ that explains V∘F by V, unit by unit.

V(y) = v·relu(Ry + r) is bounded through z_B = Ry + r and V(F(y)) through z_A = R·F(y) + r. Bounded
one by one, both lose as much as the box is wide, although F hardly turns the state: where F has the
slope J, z_A changes like RJ, and with RJ ≈ ΘR, Θ ≥ 0, the difference z_A − Θz_B is small. Any Θ ≥ 0
is sound (docs/proof-format.md), so a linear program picks it: the smallest total remainder, using
no more of V's own terms than the decrease leaves room for."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, kron, vstack

from graphkeel.verify.problem import Array, Network, Problem

LP_UNITS = 40  # the linear program has K² variables; beyond this the diagonal is chosen instead
SAMPLES = 64
FRUGAL = 0.3  # weight of using V's own terms against leaving a remainder; tuned on trained loops


def mean_slope(network: Network, lower: Array, upper: Array, seed: int = 0) -> Array:
    """The mean Jacobian of F over a box, by seeded sampling."""
    points = np.random.default_rng(seed).uniform(lower, upper, (SAMPLES, lower.shape[0]))
    points[0] = 0.5 * (lower + upper)
    jacobian = np.broadcast_to(np.eye(lower.shape[0]), (SAMPLES, lower.shape[0], lower.shape[0]))
    for index, layer in enumerate(network.layers):
        points = points @ layer.weight.T + layer.bias
        jacobian = layer.weight @ jacobian
        if index + 1 < len(network.layers):
            jacobian = jacobian * (points > 0.0)[:, :, None]
            points = np.maximum(points, 0.0)
    return np.asarray(jacobian.mean(axis=0))


def find_lens(problem: Problem, lower: Array, upper: Array) -> Array | None:
    """A lens for a box, or None where none helps."""
    first, last = problem.lyapunov.layers
    v, rows = last.weight[0], first.weight
    target = rows @ mean_slope(problem.closed_loop, lower, upper)
    points = np.random.default_rng(1).uniform(lower, upper, (SAMPLES, lower.shape[0]))
    height = np.maximum(points @ rows.T + first.bias, 0.0).mean(axis=0)
    solve = _by_program if v.size <= LP_UNITS else _by_diagonal
    theta = solve(np.maximum(v, 0.0), rows, target, 0.25 * (upper - lower), height, problem.rho)
    if theta is None:
        return None
    theta = np.where((v > 0.0)[:, None], np.maximum(theta, 0.0), 0.0)
    theta[theta < 1e-9] = 0.0
    return theta if theta.any() else None


def _by_program(
    v: Array, rows: Array, target: Array, width: Array, height: Array, rho: float
) -> Array | None:
    """min Σ_k v_k·(Σ_d w_d·|target − ΘR|_kd + Σ_i h_i·Θ_ki) subject to Θ ≥ 0 and vΘ ≤ ρv.

    The two costs are what the remainder's chord and V's own terms add to the bound, averaged over
    the box."""
    units, n = rows.shape
    explain = csr_matrix(kron(identity(units), rows.T))  # row-major Θ -> ΘR, flattened
    remainder = identity(units * n)
    usage = csr_matrix(kron(v[None, :], identity(units)))
    a = vstack(
        [
            hstack([explain, -remainder]),
            hstack([-explain, -remainder]),
            hstack([usage, csr_matrix((units, units * n))]),
        ]
    )
    flat = target.ravel()
    b = np.concatenate([flat, -flat, rho * v])
    cost = np.concatenate([FRUGAL * np.outer(v, height).ravel(), np.outer(v, width).ravel()])
    answer = linprog(cost, A_ub=a.tocsr(), b_ub=b, bounds=(0, None), method="highs")
    return None if answer.x is None else answer.x[: units * units].reshape(units, units)


def _by_diagonal(
    v: Array, rows: Array, target: Array, width: Array, height: Array, rho: float
) -> Array | None:
    """The best multiple of each unit's own row (a weighted median), at most ρ."""
    theta = np.zeros(v.size)
    for k, (row, goal) in enumerate(zip(rows, target, strict=True)):
        used = np.flatnonzero(row)
        if used.size:
            ratio, weight = goal[used] / row[used], np.abs(row[used]) * width[used]
            order = np.argsort(ratio)
            middle = np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())
            theta[k] = np.clip(ratio[order[min(int(middle), order.size - 1)]], 0.0, rho)
    return np.diag(theta)
