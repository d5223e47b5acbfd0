"""Couplings: non-negative matrices Θ that explain V∘F by V, unit by unit, and who uses which.

V(y) = v·relu(Ry + r) is bounded through z_B = Ry + r and V(F(y)) through z_A = R·F(y) + r. Bounded
one by one, both lose as much as the box is wide, although F hardly turns the state: where F has the
slope J, z_A changes like RJ, and with RJ ≈ ΘR, Θ ≥ 0, the difference z_A − Θz_B is small. Any Θ ≥ 0
is sound (docs/formats.md), so a linear program picks it: the smallest total remainder, using
no more of V's own terms than ρ allows.

A coupling made for a large box explains little of a small one where F has another slope. So a box
that has shrunk enough may get a coupling of its own; a leaf names its coupling by number, and the
proof lists them."""

from __future__ import annotations

import threading

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, kron, vstack

from graphkeel.verify.boxes.pack import Coupling, accepts_coupling, no_coupling, pack_coupling
from graphkeel.verify.problem import Array, Network, Problem
from graphkeel.verify.query import Row
from graphkeel.verify.settings import BRANCH, CouplingSettings

_MOST_COUPLINGS = 255  # a leaf names its coupling in one byte, 0 is none


def _mean_slope(network: Network, lower: Array, upper: Array, samples: int) -> Array:
    """The mean Jacobian of a network over a box, by sampling, shape (n_out, n)."""
    points = np.random.default_rng(0).uniform(lower, upper, (samples, lower.shape[0]))
    points[0] = 0.5 * (lower + upper)
    sums = network.pre_activations(points)
    jacobian = np.broadcast_to(network.layers[0].weight, (samples, *network.layers[0].weight.shape))
    for z, layer in zip(sums, network.layers[1:], strict=False):
        jacobian = layer.weight @ (jacobian * (z > 0.0)[:, :, None])
    return np.asarray(jacobian.mean(axis=0))


def find_coupling(
    problem: Problem, lower: Array, upper: Array, settings: CouplingSettings
) -> Array | None:
    """A coupling for a box, or None where none helps."""
    first, last = problem.lyapunov.layers
    v = last.weight[0]
    rows = first.weight
    target = rows @ _mean_slope(problem.closed_loop, lower, upper, settings.samples)
    points = np.random.default_rng(1).uniform(lower, upper, (settings.samples, lower.shape[0]))
    height = np.maximum(points @ rows.T + first.bias, 0.0).mean(axis=0)
    width = 0.25 * (upper - lower)
    if v.size <= settings.lp_units:
        own = settings.own_terms * height
        theta = _by_program(np.maximum(v, 0.0), rows, target, width, own, problem.rho)
    else:
        theta = _by_diagonal(rows, target, width, problem.rho)
    if theta is None:
        return None
    theta = np.where((v > 0.0)[:, None], np.maximum(theta, 0.0), 0.0)
    theta[theta < 1e-9] = 0.0
    return theta if theta.any() else None


def _by_program(
    v: Array, rows: Array, target: Array, width: Array, own: Array, rho: float
) -> Array | None:
    """min Σ_k v_k·(Σ_d w_d·|target − ΘR|_kd + Σ_i own_i·Θ_ki) subject to Θ ≥ 0 and vΘ ≤ ρv.

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
    cost = np.concatenate([np.outer(v, own).ravel(), np.outer(v, width).ravel()])
    answer = linprog(cost, A_ub=a.tocsr(), b_ub=b, bounds=(0, None), method="highs")
    return None if answer.x is None else answer.x[: units * units].reshape(units, units)


def _by_diagonal(rows: Array, target: Array, width: Array, rho: float) -> Array:
    """The best multiple of each unit's own row (a weighted median), at most ρ."""
    theta = np.zeros(len(rows))
    for k, (row, goal) in enumerate(zip(rows, target, strict=True)):
        used = np.flatnonzero(row)
        if used.size:
            ratio, weight = goal[used] / row[used], np.abs(row[used]) * width[used]
            order = np.argsort(ratio)
            middle = np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())
            theta[k] = np.clip(ratio[order[min(int(middle), order.size - 1)]], 0.0, rho)
    return np.diag(theta)


class Couplings:
    """The couplings of one search by number; number 0 is none. Shared by all workers.

    Reads: the problem, the row. Writes: `packed`, `thetas` and `made`, under its lock.
    """

    def __init__(
        self,
        problem: Problem,
        row: Row,
        given: Array | None = None,
        settings: CouplingSettings = BRANCH.couplings,
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.row = row
        self.wanted = accepts_coupling(row)
        self.packed: list[Coupling] = [no_coupling(row.n)]
        self.thetas: list[Array] = []  # what the proof keeps of them, from number 1 on
        self.made: list[tuple[Array, Array, Array]] = [(row.lower, row.upper, np.zeros((0, 0)))]
        self.given = given
        self.lock = threading.Lock()

    def __getitem__(self, number: int) -> Coupling:
        return self.packed[number]

    def first(self) -> int:
        """The coupling of the whole box: the one that was given, or a new one."""
        given, self.given = self.given, None
        return self._add(self.row.lower, self.row.upper, given)

    def number_for(self, lower: Array, upper: Array, old: int, explored: int) -> int:
        """A coupling of its own for a box that has shrunk since the old one was made and sees
        another slope of F."""
        if not self.wanted or len(self.packed) > _MOST_COUPLINGS:
            return old
        settings = self.settings
        made_lower, made_upper, slope = self.made[old]
        with np.errstate(divide="ignore", invalid="ignore"):
            shrunk = float(np.nansum(np.log2((made_upper - made_lower) / (upper - lower))))
        if shrunk < settings.halvings or explored < settings.nodes * len(self.thetas):
            return old
        here = _mean_slope(self.problem.closed_loop, lower, upper, settings.samples)
        if slope.size and np.abs(here - slope).sum() < settings.slope_change * np.abs(here).sum():
            return old
        return self._add(lower, upper, None)

    def _add(self, lower: Array, upper: Array, given: Array | None) -> int:
        if not self.wanted:
            return 0
        theta = given
        if theta is None:
            theta = find_coupling(self.problem, lower, upper, self.settings)
        if theta is None:
            return 0
        slope = _mean_slope(self.problem.closed_loop, lower, upper, self.settings.samples)
        with self.lock:
            if len(self.packed) > _MOST_COUPLINGS:
                return 0
            self.packed.append(pack_coupling(self.row, theta, len(self.packed)))
            self.thetas.append(theta)
            self.made.append((lower, upper, slope))
            return len(self.thetas)
