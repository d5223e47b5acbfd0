"""More closed loops with known truth, beside those of `graphkeel.testing.loops`."""

from __future__ import annotations

import numpy as np
from loops import (
    FAILS,
    HOLDS,
    KNOWN,
    Known,
    base,
    facts,
    known_within,
    linear_loop,
    norm_one,
    with_bumps,
)

from graphkeel.verify.problem import Network, Problem


def rotation() -> Known:
    """A quarter turn with shrinking: V∘F = 0.6·V though no coordinate keeps its place."""
    turn = 0.6 * np.array([[0.0, -1.0], [1.0, 0.0]])
    return Known(base("rotation", turn), facts(HOLDS, HOLDS, HOLDS))


def plateau_in_a_part() -> Known:
    """Shrinks, but beyond y₀ = 1/2 it gives back twice what it took: at y₀ = 1 the state stays, y₁
    = 0."""
    loop = with_bumps(
        linear_loop(0.5 * np.eye(2), np.zeros(2)), [[1.0, 0.0]], [-0.5], [[1.0], [0.0]]
    )
    problem = base("plateau in a part", 0.5 * np.eye(2), closed_loop=loop, rho=1.0)
    return Known(problem, facts(HOLDS, FAILS, HOLDS), ("positivity", "decrease"))


def tangent_strict() -> Known:
    """V∘F = V along one axis, with ρ = 1: equality is a violation."""
    return Known(
        base("tangent strict", np.diag([1.0, 0.5]), rho=1.0),
        facts(HOLDS, FAILS, HOLDS),
        ("decrease",),
    )


def two_hidden_layers() -> Known:
    loop = Network.of(
        (np.vstack([np.eye(2), -np.eye(2)]), np.zeros(4)),
        (np.eye(4) + 0.0625 * np.ones((4, 4)), np.zeros(4)),
        (0.5 * np.hstack([np.eye(2), -np.eye(2)]), np.zeros(2)),
    )
    return Known(
        base("two hidden layers", 0.5 * np.eye(2), closed_loop=loop), facts(HOLDS, HOLDS, HOLDS)
    )


def no_hole_violated() -> Known:
    problem = base("no hole, violated", 1.25 * np.eye(2), hole_radius=0.0)
    return Known(problem, facts(HOLDS, FAILS, FAILS))


def errors_that_fit() -> Known:
    return known_within(0.02, 0.6, "weight errors that fit", HOLDS)


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
    *KNOWN,
    *(
        make()
        for make in (
            rotation,
            plateau_in_a_part,
            tangent_strict,
            two_hidden_layers,
            no_hole_violated,
            errors_that_fit,
            hidden_by_the_square,
            seen_beside_the_ball,
            round_hole,
            sinking,
            flat_floor,
        )
    ),
]
