"""Closed loops for every engine's checks: some with known truth, random ones, and a hard one.

A loop with known truth is small enough to be worked out by hand. `truth` says what holds over real
arithmetic; an engine may answer that or `unknown`, never the opposite. Where the truth itself is
open (weights known only within bounds that straddle the limit) it is None, and only `unknown` is
right. `decisive` names the conditions that a complete engine has to decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from graphkeel.verify.problem import Affine, Array, Network, Problem

HOLDS, FAILS, OPEN = True, False, None


@dataclass(frozen=True)
class Known:
    """A problem and, condition by condition, whether it holds (True), fails (False) or is open
    (None)."""

    problem: Problem
    truth: dict[str, bool | None]
    decisive: tuple[str, ...] = field(default=("positivity", "decrease", "invariance"))

    @property
    def name(self) -> str:
        return self.problem.name


def norm_one(centre: Array) -> Network:
    """V(y) = Σ|y_i − Y_i|."""
    n = centre.shape[0]
    eye = np.eye(n)
    return Network.of(
        (np.vstack([eye, -eye]), np.concatenate([-centre, centre])),
        (np.ones((1, 2 * n)), np.zeros(1)),
    )


def linear_loop(matrix: Array, centre: Array) -> Network:
    """F(y) = Y + A(y − Y) through a pair of ReLUs per coordinate."""
    n = centre.shape[0]
    eye = np.eye(n)
    first = (np.vstack([eye, -eye]), np.concatenate([-centre, centre]))
    return Network.of(first, (np.hstack([matrix, -matrix]), centre))


def with_bumps(loop: Network, rows: ArrayLike, offsets: ArrayLike, gains: ArrayLike) -> Network:
    """Add gains·relu(rows·y + offsets) to a loop with one hidden layer."""
    first, last = loop.layers
    return Network.of(
        (
            np.vstack([first.weight, np.asarray(rows)]),
            np.concatenate([first.bias, np.asarray(offsets)]),
        ),
        (np.hstack([last.weight, np.asarray(gains)]), last.bias),
    )


def base(name: str, matrix: ArrayLike, **changes: object) -> Problem:
    weights = np.asarray(matrix, dtype=float)
    centre = np.zeros(weights.shape[0])
    problem = Problem(
        linear_loop(weights, centre),
        norm_one(centre),
        centre - 1.0,
        centre + 1.0,
        centre,
        hole_radius=0.125,
        rho=0.75,
        positivity=0.5,
        name=name,
    )
    return replace(problem, **changes)  # type: ignore[arg-type]


def facts(
    positivity: bool | None, decrease: bool | None, invariance: bool | None
) -> dict[str, bool | None]:
    return {"positivity": positivity, "decrease": decrease, "invariance": invariance}


def stable() -> Known:
    return Known(base("stable", 0.5 * np.eye(2)), facts(HOLDS, HOLDS, HOLDS))


def unstable() -> Known:
    return Known(base("unstable", 1.25 * np.eye(2)), facts(HOLDS, FAILS, FAILS))


def plateau() -> Known:
    """F is the identity: V never falls, so strict decrease fails everywhere; F(D) = D touches its
    bounds."""
    return Known(
        base("plateau", np.eye(2), rho=1.0), facts(HOLDS, FAILS, HOLDS), ("positivity", "decrease")
    )


def tangent() -> Known:
    """V∘F = ρV exactly along one axis, below it on the others: holds, with no margin to find."""
    return Known(
        base("tangent", np.diag([0.5, 0.25]), rho=0.5),
        facts(HOLDS, HOLDS, HOLDS),
        ("positivity", "invariance"),
    )


def corner_only() -> Known:
    """A violation only where all three coordinates are nearly 1: V∘F = 2.1 > 0.6·3 at the
    corner."""
    loop = with_bumps(
        linear_loop(0.5 * np.eye(3), np.zeros(3)), np.ones((1, 3)), [-2.9], np.full((3, 1), 2.0)
    )
    problem = base("corner only", 0.5 * np.eye(3), closed_loop=loop, rho=0.6)
    return Known(problem, facts(HOLDS, FAILS, HOLDS))


def tiny_cell() -> Known:
    """Two hidden layers: a bump of width 1/64 around (0.3, −0.7) throws the state out."""
    width, spot = 1.0 / 64.0, np.array([0.3, -0.7])
    rows, offsets = [np.eye(2), -np.eye(2)], [np.zeros(2), np.zeros(2)]
    for shift in (-width, 0.0, width):
        rows.append(np.eye(2))
        offsets.append(-(spot + shift))
    first = (np.vstack(rows), np.concatenate(offsets))
    keep = np.hstack([np.eye(4), np.zeros((4, 6))])
    hat = np.zeros((1, 10))
    hat[0, 4:] = np.tile([1.0, 1.0], 3) * np.repeat([1.0, -2.0, 1.0], 2) / width
    second = (np.vstack([keep, hat]), np.array([0.0, 0.0, 0.0, 0.0, -1.5]))
    last = (0.5 * np.array([[1.0, 0, -1, 0, 8], [0, 1, 0, -1, 0]]), np.zeros(2))
    problem = base("tiny cell", 0.5 * np.eye(2), closed_loop=Network.of(first, second, last))
    return Known(problem, facts(HOLDS, FAILS, FAILS))


def no_hole() -> Known:
    """Only the equilibrium is excluded: needs an argument that reaches all the way in."""
    return Known(base("no hole", 0.5 * np.eye(2), hole_radius=0.0), facts(HOLDS, HOLDS, HOLDS))


def on_the_face() -> Known:
    """Y is a corner of the box, so F(D) touches D's boundary there: invariance holds without any
    margin."""
    centre = np.array([1.0, 0.0])
    problem = base(
        "Y on the face",
        0.5 * np.eye(2),
        closed_loop=linear_loop(0.5 * np.eye(2), centre),
        lyapunov=norm_one(centre),
        lower=np.zeros(2),
        upper=np.ones(2),
        equilibrium=centre,
    )
    return Known(problem, facts(HOLDS, HOLDS, HOLDS), ("positivity", "decrease"))


def rounding_trap() -> Known:
    """V∘F = ρV + 10⁻¹² in the positive quadrant: a violation far below any tolerance, and a real
    one."""
    first, last = linear_loop(0.5 * np.eye(2), np.zeros(2)).layers
    loop = Network((first, Affine(last.weight, np.array([1e-12, 0.0]))))
    return Known(
        base("rounding trap", 0.5 * np.eye(2), closed_loop=loop, rho=0.5),
        facts(HOLDS, FAILS, HOLDS),
        (),
    )


def known_within(error: float, rho: float, name: str, decrease: bool | None) -> Known:
    first, last = linear_loop(0.5 * np.eye(2), np.zeros(2)).layers
    loop = Network((first, Affine(last.weight, last.bias, np.abs(last.weight) * error, None)))
    problem = base(name, 0.5 * np.eye(2), closed_loop=loop, rho=rho)
    return Known(problem, facts(HOLDS, decrease, HOLDS))


def errors_that_matter() -> Known:
    """The stored weights give 0.5, those within the errors up to 0.51: neither proof nor refutation
    is right."""
    return known_within(0.02, 0.505, "weight errors that matter", OPEN)


KNOWN = [
    make()
    for make in (
        stable, unstable, plateau, tangent, corner_only, tiny_cell, no_hole, on_the_face,
        rounding_trap, errors_that_matter,
    )
]  # fmt: skip


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
