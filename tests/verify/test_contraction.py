"""The closed-form factor against hand-computed numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from graphkeel.certificates.checker import _check_proof
from graphkeel.certificates.schema import loop_of
from graphkeel.testing.loops import ALL, base, stable
from graphkeel.verify import Affine, Network, Verdict
from graphkeel.verify.contraction import ContractionVerifier, Gauge, Loop, contraction_factor, gauge_of, outside_radius

ENGINE = ContractionVerifier()


def factor(problem: object) -> Fraction:
    gauge = gauge_of(problem)  # type: ignore[arg-type]
    assert isinstance(gauge, Gauge)
    return contraction_factor(gauge, Loop.of(problem))  # type: ignore[arg-type]


def test_the_factor_of_a_linear_loop_is_its_weighted_column_sum() -> None:
    # A split loop moves a coordinate through one of its two units: column sums of |A| are 0.5 + 0.25 and 0.125 + 0.25
    assert factor(base("x", [[0.5, 0.125], [-0.25, 0.25]])) == Fraction(3, 2)  # both units of a pair count
    direct = Network.of((np.eye(2), np.ones(2)), (np.array([[0.5, 0.125], [-0.25, 0.25]]), -np.ones(2)))
    assert factor(base("x", np.eye(2), closed_loop=direct)) == Fraction(3, 4)


def one_sided(matrix: object) -> Network:
    """Hidden units that stay active on the box: F(y) = A·y, each coordinate through one unit."""
    weights = np.asarray(matrix, dtype=float)
    return Network.of((np.eye(2), 2 * np.ones(2)), (weights, -2 * weights.sum(axis=1)))


def test_decrease_everywhere_from_the_factor() -> None:
    problem = base("x", np.eye(2), closed_loop=one_sided(0.5 * np.eye(2)), hole_radius=0.0, rho=0.625)
    report = ENGINE.solve(problem, None, ("positivity", "decrease"))
    assert report.verdict is Verdict.PROVED
    for condition in report.conditions:
        _check_proof(loop_of(problem), condition.condition, condition.proof)
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
    mixed = Network.of((np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.0]]), np.zeros(3)), (np.ones((1, 3)), np.zeros(1)))
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
    radius = outside_radius(problem)
    assert 2 * radius * radius <= Fraction(1, 16)
    assert float(radius) > 0.25 / np.sqrt(2) - 1e-12
