"""The closed-form factor against hand-computed numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from known_loops import ALL
from loops import base, stable
from reproof import checker_problem

from graphkeel.checker.contraction import contraction_factor as checked_factor
from graphkeel.checker.contraction import gauge_of as checked_gauge
from graphkeel.verify import Affine, Network, Verdict
from graphkeel.verify.contraction import (
    ContractionVerifier,
    Gauge,
    contraction_factor,
    gauge_of,
)
from graphkeel.verify.contraction import (
    loop_of as engine_loop,
)
from graphkeel.verify.rational import sup_radius

ENGINE = ContractionVerifier()


def factor(problem: object) -> Fraction:
    gauge = gauge_of(problem)  # type: ignore[arg-type]
    assert isinstance(gauge, Gauge)
    return contraction_factor(gauge, engine_loop(problem))  # type: ignore[arg-type]


def test_the_factor_of_a_linear_loop_is_its_weighted_column_sum() -> None:
    # A split loop moves a coordinate through one of its two units: column sums of |A| are 0.5 +
    # 0.25 and 0.125 + 0.25
    assert factor(base("x", [[0.5, 0.125], [-0.25, 0.25]])) == Fraction(
        3, 2
    )  # both units of a pair count
    direct = Network.of(
        (np.eye(2), np.ones(2)), (np.array([[0.5, 0.125], [-0.25, 0.25]]), -np.ones(2))
    )
    assert factor(base("x", np.eye(2), closed_loop=direct)) == Fraction(3, 4)


def one_sided(matrix: object) -> Network:
    """Hidden units that stay active on the box: F(y) = A·y, each coordinate through one unit."""
    weights = np.asarray(matrix, dtype=float)
    return Network.of((np.eye(2), 2 * np.ones(2)), (weights, -2 * weights.sum(axis=1)))


def test_decrease_everywhere_from_the_factor() -> None:
    problem = base(
        "x", np.eye(2), closed_loop=one_sided(0.5 * np.eye(2)), hole_radius=0.0, rho=0.625
    )
    report = ENGINE.solve(problem, None, ("positivity", "decrease"))
    assert report.verdict is Verdict.PROVED
    assert all(condition.proof["kind"] == "contraction" for condition in report.conditions)
    assert ENGINE.decide(replace(problem, rho=0.5), "decrease").verdict is Verdict.UNKNOWN


def test_a_residual_is_paid_for_by_the_hole() -> None:
    # (ρ − κ)·floor·r = 0.25·0.125 = 2⁻⁵ is exactly what a residual of 2⁻⁵ needs
    first, last = one_sided(0.5 * np.eye(2)).layers
    for residual, verdict in ((2.0**-5, Verdict.PROVED), (2.0**-5 + 2.0**-50, Verdict.UNKNOWN)):
        loop = Network((first, Affine(last.weight, last.bias + np.array([residual, 0.0]))))
        problem = base("x", np.eye(2), closed_loop=loop)
        assert ENGINE.decide(problem, "decrease").verdict is verdict


def test_weight_errors_raise_the_factor() -> None:
    first, last = one_sided(0.5 * np.eye(2)).layers
    loop = Network((first, Affine(last.weight, last.bias, np.full((2, 2), 0.0625), None)))
    # a column (0.5, 0) within 1/16: V of it is at most 0.5 + 2/16
    assert factor(base("x", np.eye(2), closed_loop=loop)) == Fraction(5, 8)


def test_it_says_why_it_does_not_apply() -> None:
    mixed = Network.of(
        (np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.0]]), np.zeros(3)),
        (np.ones((1, 3)), np.zeros(1)),
    )
    assert "several coordinates" in str(ENGINE.supports(replace(stable().problem, lyapunov=mixed)))
    one_way = Network.of((np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1)))
    assert "every direction" in str(ENGINE.supports(replace(stable().problem, lyapunov=one_way)))
    assert ENGINE.decide(stable().problem, "invariance").verdict is Verdict.UNKNOWN


def test_it_never_proves_what_fails() -> None:
    for known in ALL:
        for condition in ("positivity", "decrease", "invariance"):
            if ENGINE.decide(known.problem, condition).verdict is Verdict.PROVED:
                assert known.truth[condition] is True


def test_the_radius_inside_a_ball_is_rounded_down() -> None:
    problem = base("x", np.eye(2), hole_norm="2", hole_radius=0.25)
    radius = sup_radius(problem)
    assert 2 * radius * radius <= Fraction(1, 16)
    assert float(radius) > 0.25 / np.sqrt(2) - 1e-12


# ---- any depth


def deep(*layers: tuple[object, object]) -> Network:
    return Network.of(*layers)


def test_the_factor_of_a_deep_loop_by_hand() -> None:
    # y_0 moves the first unit by up to 1, the second by [−1/2, 0] of it; V of the last columns is
    # 1/2 and 1/4
    first = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2))
    second = (np.array([[0.5, 0.0], [-0.5, 0.25]]), np.ones(2))
    last = (np.array([[0.5, 0.0], [0.0, 0.25]]), np.zeros(2))
    # axis 0: 1/2·1/2 + 1/4·1/2 = 3/8; axis 1: 1/4·1/4 = 1/16
    assert factor(base("x", np.eye(2), closed_loop=deep(first, second, last))) == Fraction(3, 8)
    # a loop without hidden layers: the larger column sum
    assert factor(base("x", np.eye(2), closed_loop=deep(last))) == Fraction(1, 2)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), max_size=4), st.booleans())
@settings(max_examples=120, deadline=None)
def test_no_pair_of_states_and_no_network_within_the_errors_beats_the_factor(
    seed: int, sizes: list[int], uncertain: bool
) -> None:
    """κ bounds V(F(y) − F(y')) / V(y − y') for random pairs; engine and check agree on it to the
    last digit."""
    rng = np.random.default_rng(seed)
    layers, width = [], 2
    for size in [*sizes, 2]:
        error = 0.05 * rng.random((size, width)) if uncertain else None
        layers.append(Affine(rng.normal(size=(size, width)), rng.normal(size=size), error))
        width = size
    problem = base("x", np.eye(2), closed_loop=Network(tuple(layers)))
    kappa, loop = factor(problem), checker_problem(problem)
    checked = checked_factor(loop.forward, checked_gauge(loop))  # of the stored weights
    assert kappa >= checked if uncertain else kappa == checked
    one, two = rng.normal(size=(2, 200, 2)) * rng.choice([0.01, 1.0, 30.0], (2, 200, 1))
    for k, layer in enumerate(layers):
        shake = (
            0.0
            if layer.weight_error is None
            else layer.weight_error * rng.choice([-1.0, 1.0], layer.weight.shape)
        )
        if k == 0:
            start = np.abs(one - two).sum(axis=1)  # V of `base` is the one-norm
        one, two = (points @ (layer.weight + shake).T + layer.bias for points in (one, two))
        if k + 1 < len(layers):
            one, two = np.maximum(one, 0.0), np.maximum(two, 0.0)
    assert (np.abs(one - two).sum(axis=1) <= float(kappa) * start * (1 + 1e-9) + 1e-9).all()


def test_a_deep_proof_is_about_its_own_weights() -> None:
    first = (np.eye(2), 2 * np.ones(2))
    last = (0.5 * np.eye(2), -np.ones(2))
    problem = base(
        "x",
        np.eye(2),
        closed_loop=deep(first, (np.eye(2), np.zeros(2)), last),
        hole_radius=0.0,
        rho=0.625,
    )
    report = ENGINE.decide(problem, "decrease")
    assert report.verdict is Verdict.PROVED
    for spoilt in (
        replace(problem, rho=0.5),
        replace(problem, closed_loop=deep(first, (1.3 * np.eye(2), np.zeros(2)), last)),
        replace(
            problem, closed_loop=deep(first, (np.eye(2), np.ones(2)), last)
        ),  # F(Y) is no longer Y
    ):
        assert ENGINE.decide(spoilt, "decrease").verdict is Verdict.UNKNOWN
