"""Closed loops small enough that the truth is known by hand; each with the expected verdict per
condition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphkeel.core.optional import is_installed
from graphkeel.verify import ENGINES
from graphkeel.verify.problem import Affine, Network, Problem

SPLIT = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
JOIN = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])


def installed() -> list[str]:
    """The names of the engines that can run here."""
    return [name for name in ENGINES if name != "smt" or is_installed("z3")]


def scaling(factor: float, **changes: object) -> Problem:
    """F(y) = factor·y through ReLUs and V(y) = |y₁| + |y₂| on [−1, 1]²: V(F(y)) = |factor|·V(y)."""
    problem = Problem(
        Network.of((SPLIT, np.zeros(4)), (factor * JOIN, np.zeros(2))),
        Network.of((SPLIT, np.zeros(4)), (np.ones((1, 4)), np.zeros(1))),
        lower=-np.ones(2),
        upper=np.ones(2),
        equilibrium=np.zeros(2),
        hole_radius=0.125,
        rho=0.75,
        positivity=0.5,
    )
    return replace(problem, **changes)  # type: ignore[arg-type]


def corner() -> Problem:
    """Halving, but for a kick of 8·relu(y₁ + y₂ − 1.75) on y₁: V grows in a tiny corner only."""
    problem = scaling(0.5)
    first = problem.closed_loop.layers[0]
    kicked = np.zeros((2, 5))
    kicked[:, :4], kicked[0, 4] = 0.5 * JOIN, 8.0
    weight = np.concatenate([first.weight, [[1.0, 1.0]]])
    return replace(
        problem, closed_loop=Network.of((weight, [0, 0, 0, 0, -1.75]), (kicked, np.zeros(2)))
    )


def with_errors(problem: Problem, size: float) -> Problem:
    """The problem with weights known only to ±size."""

    def widened(network: Network) -> Network:
        return Network(
            tuple(
                Affine(a.weight, a.bias, np.full(a.weight.shape, size), np.full(a.bias.shape, size))
                for a in network.layers
            )
        )

    return replace(
        problem, closed_loop=widened(problem.closed_loop), lyapunov=widened(problem.lyapunov)
    )


Truth = dict[str, str]
ALL = {"positivity": "proved", "decrease": "proved", "invariance": "proved"}

KNOWN: dict[str, tuple[Problem, Truth]] = {
    "halving": (scaling(0.5), ALL),
    "halving, L2 hole": (scaling(0.5, hole_norm="2"), ALL),
    "turning round": (scaling(-0.5), ALL),
    "doubling": (scaling(2.0), {**ALL, "decrease": "refuted", "invariance": "refuted"}),
    "plateau": (scaling(1.0, rho=1.0), {**ALL, "decrease": "refuted"}),
    "tangent": (scaling(0.75), ALL),  # V(F(y)) = ρV(y) everywhere
    "corner": (corner(), {**ALL, "decrease": "refuted", "invariance": "refuted"}),
    "too much positivity": (scaling(0.5, positivity=1.5), {**ALL, "positivity": "refuted"}),
    "no hole": (scaling(0.5, hole_radius=0.0, rho=1.0, positivity=0.0), ALL),
    "equilibrium on a face": (scaling(0.5, lower=np.array([0.0, -1.0])), ALL),
    "a little unsure": (with_errors(scaling(0.5), 1e-6), ALL),
}
