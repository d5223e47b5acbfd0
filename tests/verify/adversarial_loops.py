"""Closed loops made to mislead an engine: ties, needles, huge and tiny numbers, thin boxes.

Each comes with what is known of it: the truth of a condition, worked out by hand, or a *twin*, the
same loop written otherwise, about which no engine may say the opposite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from loops import base, linear_loop, norm_one, random_loop, with_bumps

from graphkeel.verify.problem import Affine, Array, Network, Problem

Rng = np.random.Generator


@dataclass(frozen=True)
class Adversary:
    """A loop that is hard to be right about.

    Args:
        kind: how it misleads.
        problem: the loop.
        truth: of some conditions, whether they hold.
        twin: the same loop written otherwise: its conditions hold if and only if these do.
    """

    kind: str
    problem: Problem
    truth: dict[str, bool] = field(default_factory=dict)
    twin: Problem | None = None


def adversarial_loop(seed: int) -> Adversary:
    """One loop; kinds take turns."""
    kinds = list(KINDS)
    kind = kinds[seed % len(kinds)]
    rng = np.random.default_rng([seed, 77])
    found = KINDS[kind](rng)
    problem = replace(found.problem, name=f"{kind} {seed}")
    return replace(found, kind=kind, problem=problem)


def _beside_the_ratio(rng: Rng) -> Adversary:
    """V(F(y)) = a·V(y) exactly, and ρ is a, or the float below or above."""
    n = int(rng.integers(1, 4))
    factor = float(rng.uniform(0.1, 0.9))
    side = int(rng.integers(-1, 2))
    rho = [factor, math.nextafter(factor, 1.0), math.nextafter(factor, 0.0)][side]
    problem = base("", factor * np.eye(n), rho=rho, positivity=float(rng.choice([0.0, 1.0])))
    truth = {"positivity": True, "decrease": rho >= factor, "invariance": True}
    return Adversary("", problem, truth)


def _beside_the_box(rng: Rng) -> Adversary:
    """F(D) reaches to the box's upper end, or to a float below or above it."""
    n = int(rng.integers(1, 4))
    factor = float(rng.uniform(0.1, 0.9))
    end = float(rng.choice([factor, math.nextafter(factor, 1.0), math.nextafter(factor, 0.0)]))
    first, last = linear_loop(factor * np.eye(n), np.zeros(n)).layers
    shift = np.zeros(n)
    shift[0] = 1.0 - end
    loop = Network((first, Affine(last.weight, shift)))
    highest = Fraction(factor) + Fraction(float(shift[0]))
    problem = base("", np.eye(n), closed_loop=loop, rho=1.0)
    return Adversary("", problem, {"positivity": True, "invariance": highest <= 1})


def _needle(rng: Rng) -> Adversary:
    """A loop that shrinks, but for a spike in one corner, 2^-3 to 2^-24 wide: V grows there."""
    n = int(rng.integers(1, 4))
    width = 2.0 ** -int(rng.integers(3, 25))
    corner = rng.choice([-1.0, 1.0], size=n)
    gain = rng.uniform(1.0, 8.0) / width * corner[:, None]  # adds 1 or more in the corner itself
    loop = with_bumps(linear_loop(0.5 * np.eye(n), np.zeros(n)), corner[None, :], [width - n], gain)
    problem = base("", np.eye(n), closed_loop=loop)
    return Adversary("", problem, {"positivity": True, "decrease": False, "invariance": False})


def _rescaled(rng: Rng) -> Adversary:
    """Another loop in other units: states times 2^a, V times 2^b, up to where numbers leave the
    usual range."""
    problem = _dyadic(rng)
    by_state = 2.0 ** int(rng.integers(-300, 301))
    by_value = 2.0 ** int(rng.integers(-300, 301))
    return Adversary("", in_units(problem, by_state, by_value), twin=problem)


def in_units(problem: Problem, by_state: float, by_value: float) -> Problem:
    """A loop in other units."""

    def changed(network: Network, out: float) -> Network:
        first, *rest = network.layers
        scaled = [Affine(first.weight / by_state, first.bias), *rest]
        last = scaled[-1]
        scaled[-1] = Affine(last.weight * out, last.bias * out)
        return Network(tuple(scaled))

    return replace(
        problem,
        closed_loop=changed(problem.closed_loop, by_state),
        lyapunov=changed(problem.lyapunov, by_value),
        lower=problem.lower * by_state,
        upper=problem.upper * by_state,
        equilibrium=problem.equilibrium * by_state,
        hole_radius=problem.hole_radius * by_state,
        positivity=problem.positivity * by_value / by_state,
    )


def _rewritten(rng: Rng) -> Adversary:
    """Units in another order, cut in two halves, their weights moved from one layer to the next."""
    problem = _dyadic(rng)

    def changed(network: Network) -> Network:
        first, last = network.layers
        order = rng.permutation(first.n_out)
        gains = 2.0 ** rng.integers(-9, 10, size=first.n_out)
        inner = Affine(first.weight[order] * gains[:, None], first.bias[order] * gains)
        outer = last.weight[:, order] / gains
        twice = Affine(np.vstack([inner.weight] * 2), np.concatenate([inner.bias] * 2))
        halves = Affine(np.hstack([0.25 * outer, 0.75 * outer]), last.bias)
        return Network((twice, halves))

    twin = replace(
        problem, closed_loop=changed(problem.closed_loop), lyapunov=changed(problem.lyapunov)
    )
    return Adversary("", problem, twin=twin)


def _thin(rng: Rng) -> Adversary:
    """A box without a width along some axes, or of one state."""
    problem = random_loop(int(rng.integers(10**6)))
    flat = rng.random(problem.n) < 0.7
    middle = rng.uniform(problem.lower, problem.upper)
    lower = np.where(flat, middle, problem.lower)
    return Adversary("", replace(problem, lower=lower, upper=np.where(flat, lower, problem.upper)))


def _on_the_face(rng: Rng) -> Adversary:
    """The equilibrium on a face, an edge or a corner of the box, the hole of radius 0 or not."""
    n = int(rng.integers(1, 4))
    side = rng.choice([-1.0, 0.0, 1.0], size=n)
    radius = float(rng.choice([0.0, 0.125, 2.0**-40]))
    factor = float(rng.choice([0.5, -0.5, 0.75, 1.25]))
    matrix = factor * np.eye(n)
    changes = {"equilibrium": side, "hole_radius": radius, "rho": float(rng.choice([0.75, 1.0]))}
    problem = base(
        "", matrix, closed_loop=linear_loop(matrix, side), lyapunov=norm_one(side), **changes
    )
    truth = {"positivity": True, "decrease": abs(factor) <= problem.rho}
    return Adversary("", problem, truth)


def _subnormal(rng: Rng) -> Adversary:
    """Biases and weights near the smallest float there is."""
    problem = _dyadic(rng)
    tiny = float(rng.choice([5e-324, 1e-310, 2.0**-1022, 1e-200]))
    first, last = problem.closed_loop.layers
    noise = tiny * rng.choice([-1.0, 0.0, 1.0], size=last.bias.shape)
    return Adversary(
        "", replace(problem, closed_loop=Network((first, Affine(last.weight, last.bias + noise))))
    )


def _uncertain(rng: Rng) -> Adversary:
    """Weights known to within a bound: what is proved has to hold of all of them."""
    problem = random_loop(int(rng.integers(10**6)))
    size = float(rng.choice([1e-12, 1e-6, 1e-3, 0.05]))

    def widened(network: Network) -> Network:
        return Network(
            tuple(
                Affine(
                    layer.weight,
                    layer.bias,
                    size * rng.random(layer.weight.shape),
                    size * rng.random(layer.bias.shape),
                )
                for layer in network.layers
            )
        )

    return Adversary("", replace(problem, closed_loop=widened(problem.closed_loop)))


def _kinks(rng: Rng) -> Adversary:
    """Many units whose kinks all meet in one state, on a grid of sixteenths."""
    n = 2
    meeting: Array = np.round(16 * rng.uniform(-1.0, 1.0, n)) / 16
    rows = np.round(4 * rng.normal(size=(6, n))) / 4
    gains = np.round(8 * rng.normal(size=(n, 6))) / 16
    loop = with_bumps(linear_loop(0.25 * np.eye(n), np.zeros(n)), rows, -rows @ meeting, gains)
    return Adversary("", base("", np.eye(n), closed_loop=loop, rho=float(rng.choice([0.75, 1.0]))))


def _dyadic(rng: Rng) -> Problem:
    """A small loop whose weights are sixteenths, so that rescaling it rounds nothing."""
    n, hidden = int(rng.integers(1, 3)), int(rng.integers(1, 5))

    def coarse(*shape: int) -> Array:
        return np.asarray(np.round(8 * rng.normal(size=shape)) / 16)

    loop = Network.of((coarse(hidden, n), coarse(hidden)), (coarse(n, hidden), coarse(n) / 4))
    return base(
        "",
        np.eye(n),
        closed_loop=loop,
        rho=float(rng.choice([0.75, 1.0])),
        hole_radius=float(rng.choice([0.125, 0.5])),
    )


KINDS: dict[str, Callable[[Rng], Adversary]] = {
    "beside the ratio": _beside_the_ratio,
    "beside the box": _beside_the_box,
    "needle": _needle,
    "rescaled": _rescaled,
    "rewritten": _rewritten,
    "thin box": _thin,
    "on the face": _on_the_face,
    "subnormal": _subnormal,
    "uncertain": _uncertain,
    "kinks": _kinks,
}
