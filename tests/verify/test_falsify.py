"""The search for violations: gradients, the climb, and never a claim that is not confirmed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_loops import ALL
from loops import Known, corner_only, norm_one, plateau, stable

from graphkeel.verify import Network, Problem, Verdict
from graphkeel.verify.attack import ConditionAttack, find_violation
from graphkeel.verify.portfolio import FalsifyVerifier
from graphkeel.verify.rational import violates


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
def test_what_it_refutes_is_false(known: Known) -> None:
    for report in FalsifyVerifier().solve(known.problem).conditions:
        assert report.verdict in (Verdict.REFUTED, Verdict.UNKNOWN)
        if report.verdict is Verdict.REFUTED:
            assert known.truth[report.condition] is False


def test_it_finds_the_corner_and_the_plateau() -> None:
    assert find_violation(corner_only().problem, "decrease") is not None
    assert find_violation(plateau().problem, "decrease") is not None


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
def test_the_quick_search_finds_only_true_violations(known: Known) -> None:
    for condition, truth in known.truth.items():
        point = ConditionAttack(known.problem, condition).quick()
        assert point is None or (truth is False and violates(known.problem, condition, point))


def test_the_quick_search_finds_a_plateau() -> None:
    assert ConditionAttack(plateau().problem, "decrease").quick() is not None


@pytest.mark.parametrize("condition", ["positivity", "decrease", "invariance"])
def test_the_gradient_is_that_of_the_violation(condition: str) -> None:
    rng = np.random.default_rng(3)
    loop = Network.of(
        (rng.normal(size=(5, 3)), rng.normal(size=5)), (rng.normal(size=(3, 5)), rng.normal(size=3))
    )
    problem = Problem(
        loop, norm_one(np.zeros(3)), -np.ones(3), np.ones(3), np.zeros(3), 0.1, positivity=0.7
    )
    points = rng.uniform(-1, 1, (20, 3))
    attack = ConditionAttack(replace(problem, hole_radius=0.0), condition)
    found = attack.gradient(points)
    for axis in range(3):
        step = np.zeros(3)
        step[axis] = 1e-7
        slope = (attack.margins(points + step) - attack.margins(points - step)) / 2e-7
        assert np.allclose(slope, found[:, axis], atol=1e-5)


def test_the_climb_reaches_the_top_of_its_cell() -> None:
    """V∘F − ρV is highest at a corner of the bump's cell, far from where the climb starts."""
    problem = corner_only().problem
    start = np.array([0.98, 0.97, 0.99])
    assert not violates(problem, "decrease", np.array([0.5, 0.5, 0.5]))
    top = ConditionAttack(problem, "decrease").climb(start)
    assert top is not None
    assert np.allclose(top, 1.0)


def test_points_stay_in_the_box_and_out_of_the_hole() -> None:
    problem = stable().problem
    attack = ConditionAttack(problem, "decrease")
    points = attack.project(attack.starts(np.random.default_rng(0), 1024) * 0.01)
    assert (points >= problem.lower).all() and (points <= problem.upper).all()
    moved = points[np.abs(points).max(axis=1) > 0]
    assert not problem.in_hole(moved).any()
