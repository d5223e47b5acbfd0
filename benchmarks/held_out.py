"""Seeded loops that no engine was tuned on: three families, made by least squares, not trained.

    paper        F and V are free two-layer networks: V a bent distance to Y, not convex, F a fit
                 of a quarter of the way
    contracting  the same with F a fit of half the way, so that V(F(y))/V(y) is near one half
                 everywhere
    gauge        V is a positive gauge around Y and F(Y) = Y, by construction

each on a narrow or a wide box, n = 3 to 20, 16 to 128 hidden units, and easy, tight or violated: ρ
is the largest rate V(F(y))/V(y) that a search finds, times 1.3, 1.02 or 0.98. V is lifted and F is
moved towards Y until no search finds a state that speaks against positivity, and until there is
room for a rate below one: so easy and tight loops hold as far as anybody knows, and violated ones
are violated by little. Weights are float32, as a model's are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from instances import rates, worst_states

from graphkeel.verify.attack import find_violation
from graphkeel.verify.problem import Array, Network, Problem

FAMILIES = ("paper", "contracting", "gauge")
HALF_WIDTHS = {"narrow": 0.5, "wide": 2.0}
SIZES = (3, 4, 5, 6, 8, 10, 12, 15, 20)
HIDDEN = (16, 32, 64, 128)
KINDS = {"easy": 1.3, "tight": 1.02, "violated": 0.98}
SHARES = {"paper": 0.25, "contracting": 0.5, "gauge": 0.5}  # of the way to Y that F leaves
SAMPLES = 20_000
HOLES = (0.1, 0.2, 0.4, 0.6, 0.8)  # radii as shares of the half width: the first that leaves ρ < 1
NEARER = (1.0, 0.4, 0.1)  # how much of F − Y is kept: the first that leaves ρ < 1
SEARCHES = 8  # how often a search for a worse state is begun anew
CONDITIONS = ("positivity", "decrease")  # the box is hardly ever invariant, and refuted at once

Rng = np.random.Generator


@dataclass(frozen=True)
class Spec:
    """Which loop; its name is its key."""

    family: str
    width: str
    n: int
    hidden: int
    kind: str

    @property
    def name(self) -> str:
        return f"n{self.n}_h{self.hidden}_{self.family}_{self.width}_{self.kind}"


def specs(count: int, seed: int = 2026) -> list[Spec]:
    """A sample of all combinations, in an order of its own.

    Args:
        count: how many.
        seed: of the order.
    """
    every = [
        Spec(*parts)
        for parts in product(FAMILIES, HALF_WIDTHS, SIZES, HIDDEN, KINDS)
        if parts[3] > parts[2] + 2  # V needs n + 1 units, and some that are free
    ]
    order = np.random.default_rng(seed).permutation(len(every))
    return [every[k] for k in order[:count]]


def held_out(count: int, seed: int = 2026) -> Iterator[Problem]:
    """The loops.

    Args:
        count: how many.
        seed: of everything.
    """
    for spec in specs(count, seed):
        yield made(spec, seed)


def made(spec: Spec, seed: int = 2026) -> Problem:
    """One loop.

    Args:
        spec: which.
        seed: of its weights.
    """
    place = [FAMILIES.index(spec.family), list(HALF_WIDTHS).index(spec.width), spec.n, spec.hidden]
    rng = np.random.default_rng([seed, *place])  # easy and tight are one loop
    centre = np.zeros(spec.n)
    centre[0] = 1.0
    half = HALF_WIDTHS[spec.width]
    # offsets from Y, at all distances: a box has hardly any states near its centre
    states = rng.uniform(-half, half, (SAMPLES, spec.n)) * rng.random((SAMPLES, 1))
    loop = _loop(rng, spec, centre, half, states)
    gauge = _gauge if spec.family == "gauge" else _distance
    lyapunov = gauge(rng, spec, centre, half, states)
    box = (centre - half, centre + half, centre)
    for nearer, share in product(NEARER, HOLES):
        problem = Problem(
            _towards(loop, centre, nearer), lyapunov, *box, hole_radius=share * half, name=spec.name
        )
        problem = _lifted(problem, 0.01 * half)
        rho = KINDS[spec.kind] * _worst_rate(problem, centre + states)
        if rho < 1.0:
            return replace(problem, rho=rho)
    return problem  # no room for a rate below 1


def _towards(loop: Network, centre: Array, share: float) -> Network:
    """Y + share·(F − Y)."""
    first, last = loop.layers
    moved = (share * last.weight, centre + share * (last.bias - centre))
    return Network.of((first.weight, first.bias), tuple(map(_shortened, moved)))


def _lifted(problem: Problem, least: float) -> Problem:
    """A loop with V + a constant, so that no search finds V ≤ 0."""
    for _ in range(SEARCHES):
        point = find_violation(problem, "positivity")
        if point is None:
            break
        first, last = problem.lyapunov.layers
        lift = _shortened(last.bias + least - problem.lyapunov(point)[0])
        lyapunov = Network.of((first.weight, first.bias), (last.weight, lift))
        problem = replace(problem, lyapunov=lyapunov)
    return problem


def _worst_rate(problem: Problem, states: Array) -> float:
    """The largest V(F(y))/V(y) that sampling finds, and then searches for worse states."""
    worst = float(rates(problem, worst_states(problem, states)[:1])[0])
    for _ in range(SEARCHES):
        if worst >= 1.0:
            break
        point = find_violation(replace(problem, rho=worst), "decrease")
        if point is None:
            break
        worst = max(float(rates(problem, point[None])[0]), 1.001 * worst)
    return worst


def _loop(rng: Rng, spec: Spec, centre: Array, half: float, states: Array) -> Network:
    """Y + share·(y − Y), as well as random units can fit it; a gauge's loop keeps Y exactly."""
    rows, offsets = _units(rng, spec, half)
    if spec.family == "gauge":
        offsets = offsets * 0.0
    target = SHARES[spec.family] * states
    out = _fitted(rows, offsets, states, target, constant=spec.family != "gauge")
    return _around(centre, rows, offsets, out[:-1].T, centre + out[-1])


def _distance(rng: Rng, spec: Spec, centre: Array, half: float, states: Array) -> Network:
    """A distance to Y that its free units bend: a gauge's rows with kinks near Y
    and units with weights of both signs and kinks anywhere, so that V is not convex."""
    span = spec.n + 1
    rows = _spanning(rng, spec.n)
    offsets = 0.02 * half * rng.normal(size=span)
    free = spec.hidden - span
    bends = rng.normal(size=(free, spec.n)) / np.sqrt(spec.n)
    kinks = rng.uniform(-0.7, 0.7, size=free) * half
    outer = np.concatenate(
        [rng.uniform(0.5, 1.5, size=span), 0.1 * rng.normal(size=free) / np.sqrt(free)]
    )
    every = np.vstack([rows, bends])
    return _around(centre, every, np.concatenate([offsets, kinks]), outer[None], np.zeros(1))


def _spanning(rng: Rng, n: int) -> Array:
    """n + 1 rows that span Rⁿ positively, shape (n + 1, n), the closing one first."""
    rows = np.eye(n) + 0.3 * rng.normal(size=(n, n)) / np.sqrt(n)
    back = -rng.uniform(0.5, 1.5, size=n) @ rows
    return np.vstack([back[None], rows])


def _gauge(rng: Rng, spec: Spec, centre: Array, half: float, states: Array) -> Network:
    """Σ w_k·relu(u_k·(y − Y)) with rows that span Rⁿ positively."""
    n, rest = spec.n, spec.hidden - spec.n - 1
    free = rng.normal(size=(rest, n)) / np.sqrt(n)
    every = np.vstack([_spanning(rng, n), free])
    weights = rng.uniform(0.5, 1.5, size=(1, len(every)))
    return _around(centre, every, np.zeros(len(every)), weights, np.zeros(1))


def _units(rng: Rng, spec: Spec, half: float) -> tuple[Array, Array]:
    """Directions in pairs ±u with kinks inside the box."""
    pairs = spec.hidden // 2
    rows = rng.normal(size=(pairs, spec.n)) / np.sqrt(spec.n)
    offsets = rng.uniform(-0.7, 0.7, size=2 * pairs) * half
    return np.vstack([rows, -rows]), offsets


def _fitted(rows: Array, offsets: Array, states: Array, target: Array, constant: bool) -> Array:
    """Outer weights by ridge regression, the constant last (0 where there is none)."""
    units = np.maximum(states @ rows.T + offsets, 0.0)
    inputs = np.hstack([units, np.full((len(states), 1), float(constant))])
    ridge = 1e-3 * len(states) * np.eye(inputs.shape[1])
    return np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ target)


def _shortened(part: Array) -> Array:
    return np.asarray(part, dtype=np.float32).astype(np.float64)


def _around(centre: Array, rows: Array, offsets: Array, outer: Array, bias: Array) -> Network:
    """The network of offsets z = y − Y, over y."""
    short = [_shortened(part) for part in (rows, outer, bias)]
    inner = _shortened(offsets - short[0] @ centre)
    return Network.of((short[0], inner), (short[1], short[2]))
