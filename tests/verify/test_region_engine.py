"""Regions: verdicts against known truth, confirmed violations, and proofs that the independent
check accepts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import installed
from reproof import reprove

from graphkeel.core.errors import ProblemError
from graphkeel.verify import (
    Affine,
    Budget,
    ConditionReport,
    Network,
    Problem,
    Region,
    Verdict,
    verify,
)
from graphkeel.verify.attack import find_violation
from graphkeel.verify.conditions import multipliers
from graphkeel.verify.portfolio import on_whole_box
from graphkeel.verify.rational import violates


def loop(matrix: object, offset: object, half: float = 1.0) -> Problem:
    """F(y) = A·y + b on [−half, half]ⁿ, written with ReLU pairs; V is the one-norm."""
    weight = np.asarray(matrix, dtype=float)
    n = weight.shape[0]
    pairs = Affine(np.concatenate([np.eye(n), -np.eye(n)]), np.zeros(2 * n))
    network = Network(
        (pairs, Affine(np.concatenate([weight, -weight], axis=1), np.asarray(offset, dtype=float)))
    )
    value = Network((pairs, Affine(np.ones((1, 2 * n)), np.zeros(1))))
    return Problem(
        network, value, -half * np.ones(n), half * np.ones(n), np.zeros(n), hole_radius=0.1, rho=0.9
    )


def about(problem: Problem, axis: int, margin: float = 0.0) -> Problem:
    return replace(problem, region=Region(axis, margin))


def decided(problem: Problem, seconds: float = 600.0, engine: str = "branch") -> ConditionReport:
    return verify(problem, engine, Budget(seconds=seconds), ("region",))["region"]


def test_a_loop_that_keeps_its_region() -> None:
    problem = about(loop(np.eye(3) / 4, [0.5, 0.0, 0.0]), 0)
    report = decided(problem)
    assert report.verdict is Verdict.PROVED
    assert reprove(problem, report.proof) > 0
    assert find_violation(problem, "region") is None


def test_a_loop_that_loses_a_state() -> None:
    """F reflects: (1, −1) of class 0 goes to (−1/2, 3/4)."""
    problem = about(loop(-np.eye(2) / 2, [0.0, 0.25]), 0)
    report = decided(problem)
    assert report.verdict is Verdict.REFUTED and report.counterexample is not None
    assert violates(problem, "region", report.counterexample)
    other = about(problem, 1)
    assert not violates(other, "region", report.counterexample)  # it is no state of class 1


def test_a_tie_is_a_violation_without_a_margin_and_none_with_one() -> None:
    still = loop(np.eye(2), [0.0, 0.0])
    assert violates(about(still, 0), "region", np.zeros(2))
    assert not violates(about(still, 0, 0.25), "region", np.array([0.5, 0.25]))
    assert decided(about(still, 0, 0.25), 5).verdict is not Verdict.REFUTED


def test_the_multiplier_cancels_the_slopes_of_a_linear_loop() -> None:
    active = Network.of((np.eye(2), 2 * np.ones(2)), (np.eye(2) / 2, -np.ones(2)))
    problem = Problem(active, active_value(), -np.ones(2), np.ones(2), np.zeros(2))
    assert multipliers(about(problem, 0)).tolist() == [[0.0, 0.5]]


def test_a_region_is_asked_about_only_where_there_is_one() -> None:
    with pytest.raises(ProblemError, match="needs a problem with a region"):
        verify(loop(np.eye(2), [0.0, 0.0]), "branch", conditions=("region",))


@pytest.mark.parametrize("engine", installed())
def test_every_engine_takes_the_region_like_any_condition(engine: str) -> None:
    kept = about(loop(np.eye(3) / 4, [0.5, 0.0, 0.0]), 0)
    lost = about(loop(-np.eye(2) / 2, [0.0, 0.25]), 0)
    assert decided(kept, engine=engine).verdict in (Verdict.PROVED, Verdict.UNKNOWN)
    assert decided(lost, engine=engine).verdict in (Verdict.REFUTED, Verdict.UNKNOWN)
    if engine in ("auto", "branch", "smt"):
        assert decided(kept, engine=engine).verdict is Verdict.PROVED
        assert decided(lost, engine=engine).verdict is Verdict.REFUTED


def active_value() -> Network:
    return Network.of((np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1)))


@pytest.mark.parametrize(("axis", "margin"), [(2, 0.0), (-1, 0.0), (0, -1.0), (0, float("nan"))])
def test_regions_that_make_no_sense(axis: int, margin: float) -> None:
    with pytest.raises(ProblemError):
        about(loop(np.eye(2), [0.0, 0.0]), axis, margin)


def random_region(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    layers, width = [], n
    for size in [*(int(k) for k in rng.integers(2, 7, int(rng.integers(1, 3)))), n]:
        layers.append(
            Affine(
                rng.normal(size=(size, width)) * rng.uniform(0.1, 0.8), 0.5 * rng.normal(size=size)
            )
        )
        width = size
    value = Network.of((np.eye(n), np.zeros(n)), (np.ones((1, n)), np.zeros(1)))
    middle, half = 0.3 * rng.normal(size=n), rng.uniform(0.3, 1.5, n)
    problem = Problem(Network(tuple(layers)), value, middle - half, middle + half, middle)
    return about(problem, int(rng.integers(n)), float(rng.choice([0.0, 0.25])))


@given(st.integers(0, 10**6))
@settings(max_examples=120, deadline=None)
def test_no_verdict_is_wrong(seed: int) -> None:
    """Dense samples next to every verdict; every proof is checked, every counterexample confirmed
    exactly."""
    problem = random_region(seed)
    report = decided(problem, 0.5)
    if report.verdict is Verdict.REFUTED:
        assert report.counterexample is not None
        assert violates(problem, "region", report.counterexample)
    if report.verdict is Verdict.PROVED:
        assert report.proof is not None
        reprove(problem, report.proof)
    quick = on_whole_box(problem, "region")
    if quick.verdict is Verdict.PROVED:
        assert report.verdict is not Verdict.REFUTED
        reprove(problem, quick.proof)
    if Verdict.PROVED not in (report.verdict, quick.verdict):
        return
    rng, region = np.random.default_rng(seed), problem.region
    points = rng.uniform(problem.lower, problem.upper, (4000, problem.n))
    points = points[region.margins(points) >= region.margin]
    assert (region.margins(problem.closed_loop(points)) >= region.margin - 1e-9).all()


def test_a_violation_by_a_hair_is_not_called_proved() -> None:
    """At the tie (1, 1) the second logit gets ahead by 2⁻⁴⁰: no state of the region may be lost,
    however little."""
    for sign, verdict in ((1.0, Verdict.REFUTED), (-1.0, Verdict.PROVED)):
        problem = loop(np.zeros((2, 2)), [0.5, 0.5 + sign * 2.0**-40])
        report = decided(about(problem, 0))
        assert report.verdict is verdict, report
    assert Fraction(0.5 + 2.0**-40) > Fraction(1, 2)
