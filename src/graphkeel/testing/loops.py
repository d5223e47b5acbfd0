"""Closed loops with known truth, for every engine's tests.

Each is small enough to be settled by hand. `truth` says what holds over real arithmetic; an engine
may answer that or `unknown`, never the opposite. Where the truth itself is open (weights known only
within bounds that straddle the limit) it is None, and only `unknown` is right. `decisive` names the
conditions that a complete engine has to decide."""

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


def rotation() -> Known:
    """A quarter turn with shrinking: V∘F = 0.6·V though no coordinate keeps its place."""
    turn = 0.6 * np.array([[0.0, -1.0], [1.0, 0.0]])
    return Known(base("rotation", turn), facts(HOLDS, HOLDS, HOLDS))


def plateau() -> Known:
    """F is the identity: V never falls, so strict decrease fails everywhere; F(D) = D touches its
    bounds."""
    return Known(
        base("plateau", np.eye(2), rho=1.0), facts(HOLDS, FAILS, HOLDS), ("positivity", "decrease")
    )


def plateau_in_a_part() -> Known:
    """Shrinks, but beyond y₀ = 1/2 it gives back twice what it took: at y₀ = 1 the state stays, y₁
    = 0."""
    loop = with_bumps(
        linear_loop(0.5 * np.eye(2), np.zeros(2)), [[1.0, 0.0]], [-0.5], [[1.0], [0.0]]
    )
    problem = base("plateau in a part", 0.5 * np.eye(2), closed_loop=loop, rho=1.0)
    return Known(problem, facts(HOLDS, FAILS, HOLDS), ("positivity", "decrease"))


def tangent() -> Known:
    """V∘F = ρV exactly along one axis, below it elsewhere: holds, with no margin to find."""
    return Known(
        base("tangent", np.diag([0.5, 0.25]), rho=0.5),
        facts(HOLDS, HOLDS, HOLDS),
        ("positivity", "invariance"),
    )


def tangent_strict() -> Known:
    """The same contact with ρ = 1, where equality is a violation."""
    return Known(
        base("tangent strict", np.diag([1.0, 0.5]), rho=1.0),
        facts(HOLDS, FAILS, HOLDS),
        ("decrease",),
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


def two_hidden_layers() -> Known:
    loop = Network.of(
        (np.vstack([np.eye(2), -np.eye(2)]), np.zeros(4)),
        (np.eye(4) + 0.0625 * np.ones((4, 4)), np.zeros(4)),
        (0.5 * np.hstack([np.eye(2), -np.eye(2)]), np.zeros(2)),
    )
    return Known(
        base("two hidden layers", 0.5 * np.eye(2), closed_loop=loop), facts(HOLDS, HOLDS, HOLDS)
    )


def no_hole() -> Known:
    """Only the equilibrium is excluded: needs an argument that reaches all the way in."""
    return Known(base("no hole", 0.5 * np.eye(2), hole_radius=0.0), facts(HOLDS, HOLDS, HOLDS))


def no_hole_violated() -> Known:
    problem = base("no hole, violated", 1.25 * np.eye(2), hole_radius=0.0)
    return Known(problem, facts(HOLDS, FAILS, FAILS))


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


def errors_that_fit() -> Known:
    return known_within(0.02, 0.6, "weight errors that fit", HOLDS)


def errors_that_matter() -> Known:
    """The stored weights give 0.5, those within the errors up to 0.51: neither proof nor refutation
    is right."""
    return known_within(0.02, 0.505, "weight errors that matter", OPEN)


def beside_the_hole(norm: str, decrease: bool) -> Known:
    """Throws states near (0.225, 0.225), all of them inside the square hole of radius 1/4, none
    inside the ball."""
    along, across = [[1.0, 1.0]] * 3, [[1.0, -1.0], [-1.0, 1.0]]
    first = (
        np.vstack([np.eye(2), -np.eye(2), along, across]),
        np.array([0.0, 0.0, 0.0, 0.0, -0.4, -0.45, -0.5, 0.0, 0.0]),
    )
    second = np.zeros((5, 9))
    second[:4, :4] = np.eye(4)
    second[4, 4:] = [1.0, -2.0, 1.0, -1.0, -1.0]  # hat(y₀ + y₁) − |y₀ − y₁|
    last = np.array([[0.5, 0.0, -0.5, 0.0, 16.0], [0.0, 0.5, 0.0, -0.5, 0.0]])
    loop = Network.of(first, (second, np.zeros(5)), (last, np.zeros(2)))
    problem = base(
        f"beside the hole, {norm}", np.eye(2), closed_loop=loop, hole_radius=0.25, hole_norm=norm
    )
    return Known(problem, facts(HOLDS, decrease, HOLDS))


def hidden_by_the_square() -> Known:
    return beside_the_hole("inf", HOLDS)


def seen_beside_the_ball() -> Known:
    return beside_the_hole("2", FAILS)


def round_hole() -> Known:
    return Known(
        base("round hole", 0.5 * np.eye(2), hole_norm="2", hole_radius=0.25),
        facts(HOLDS, HOLDS, HOLDS),
    )


def sinking() -> Known:
    """V is negative in a corner of the box."""
    v = Network.of(
        (np.vstack([np.eye(2), -np.eye(2), np.ones((1, 2))]), np.array([0, 0, 0, 0, -1.5])),
        (np.array([[1.0, 1, 1, 1, -6]]), np.zeros(1)),
    )
    return Known(
        base("sinking", 0.25 * np.eye(2), lyapunov=v),
        facts(FAILS, FAILS, HOLDS),
        ("positivity", "invariance"),
    )


def flat_floor() -> Known:
    """V ≥ 0 but zero on half the box: strict positivity fails."""
    v = Network.of((np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1)))
    problem = base("flat floor", 0.5 * np.eye(2), lyapunov=v, positivity=0.0)
    return Known(problem, facts(FAILS, HOLDS, HOLDS), ("positivity", "invariance"))


def touching(top: float = 1.0) -> Problem:
    """F(y) = top − |3y − 1|/4 on [−1, 1]: with top = 1 it reaches the end at the kink 1/3 only,
    which is no float."""
    one = np.ones(1)
    loop = Network.of(
        (np.array([[3.0], [-3.0]]), np.array([-1.0, 1.0])),
        (np.full((1, 2), -0.25), np.array([top])),
    )
    return Problem(loop, norm_one(np.zeros(1)), -one, one, np.zeros(1), 0.25, rho=1.0)


def turning(rho: float = 0.8) -> Problem:
    """F turns and shrinks around Y = 0 and bends elsewhere; without a hole V∘F − ρV is zero at Y:
    no box has slack."""
    eye = np.eye(2)
    first, offset = np.vstack([eye, [[1.0, 0.25]]]), np.array([2.0, 2.0, -0.5])
    last = np.hstack([np.array([[0.5, 0.125], [-0.125, 0.5]]), np.full((2, 1), 0.125)])
    loop = Network.of((first, offset), (last, -last @ np.maximum(offset, 0.0)))
    return Problem(
        loop,
        norm_one(np.zeros(2)),
        -np.ones(2),
        np.ones(2),
        np.zeros(2),
        0.0,
        rho=rho,
        positivity=0.5,
    )


ALL = [
    make()
    for make in (
        stable, unstable, rotation, plateau, plateau_in_a_part, tangent, tangent_strict,
        corner_only, tiny_cell, two_hidden_layers, no_hole, no_hole_violated, on_the_face,
        rounding_trap, errors_that_fit, errors_that_matter, hidden_by_the_square,
        seen_beside_the_ball, round_hole, sinking, flat_floor,
    )
]  # fmt: skip
