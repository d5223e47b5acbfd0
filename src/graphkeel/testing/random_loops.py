"""Closed loops without a known answer: small ones to be contradicted on, a hard one to run out of
budget on."""

from __future__ import annotations

import numpy as np

from graphkeel.testing.loops import linear_loop
from graphkeel.verify.problem import Array, Network, Problem


def random_loop(seed: int) -> Problem:
    """Two states, few hidden units, weights of two decimals; each condition holds for some seeds,
    fails for others."""
    rng = np.random.default_rng(seed)
    n, h = 2, 3

    def layer(out: int, inp: int) -> tuple[Array, Array]:
        return rng.normal(size=(out, inp)).round(2), (0.3 * rng.normal(size=out)).round(2)

    first, last, rows = layer(h, n), layer(n, h), layer(n, n)
    centred = float(rng.choice([0.0, 1.0]))
    sides = (np.vstack([rows[0], -rows[0]]), centred * np.concatenate([rows[1], -rows[1]]))
    return Problem(
        Network.of(
            (first[0], centred * first[1]),
            (float(rng.choice([0.1, 0.5])) * last[0], centred * last[1]),
        ),
        Network.of(sides, (np.ones((1, 2 * n)), np.array([centred * rng.choice([0.0, 0.5])]))),
        lower=-np.ones(n),
        upper=np.ones(n),
        equilibrium=np.zeros(n),
        hole_radius=float(rng.choice([0.25, 0.5])),
        hole_norm=str(rng.choice(["inf", "2"])),
        rho=float(rng.choice([1.0, 0.9])),
        positivity=float(rng.choice([0.0, 0.1, 1.0])),
        name=f"random loop {seed}",
    )


def suspicious_states(problem: Problem, condition: str, per_axis: int = 41) -> Array:
    """The states of a grid that seem to violate a condition in float64 (or hardly keep it)."""
    axes = [
        np.linspace(low, high, per_axis)
        for low, high in zip(problem.lower, problem.upper, strict=True)
    ]
    grid: Array = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, problem.n)
    image = problem.closed_loop(grid)
    if condition == "invariance":
        return grid[((image > problem.upper) | (image < problem.lower)).any(axis=1)]
    here = problem.lyapunov(grid)[:, 0]
    if condition == "positivity":
        distance = np.abs(grid - problem.equilibrium).max(axis=1)
        return grid[here <= problem.positivity * distance]
    return grid[problem.lyapunov(image)[:, 0] >= problem.rho * here]


def hard_loop(n: int = 8, faces: int = 16, seed: int = 0) -> Problem:
    """A rotation measured by a norm whose axes are askew: the bounds of no box are tight.

    It is shrunk so that the largest ratio V(F(y))/V(y) among many samples is 0.7; the true one lies
    above that."""
    rng = np.random.default_rng(seed)
    turn: Array = np.linalg.qr(rng.normal(size=(n, n)))[0]
    rows = rng.normal(size=(faces, n))
    norm = Network.of(
        (np.vstack([rows, -rows]), np.zeros(2 * faces)), (np.ones((1, 2 * faces)), np.zeros(1))
    )
    samples = rng.normal(size=(20_000, n))
    ratio = float((norm(samples @ turn.T) / norm(samples)).max())
    return Problem(
        linear_loop(0.7 / ratio * turn, np.zeros(n)),
        norm,
        lower=-np.ones(n),
        upper=np.ones(n),
        equilibrium=np.zeros(n),
        hole_radius=0.1,
        rho=0.999,
        positivity=0.1,
        name="hard loop",
    )
