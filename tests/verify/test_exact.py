"""Exact evaluation against hand-computed rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from loops import base, errors_that_matter, rounding_trap

from graphkeel.verify.problem import Affine, Network
from graphkeel.verify.rational import evaluate, in_hole, rationals, violates


def test_a_network_has_an_exact_value() -> None:
    network = Network.of(
        (np.array([[0.1, 1.0]]), np.array([0.25])), (np.array([[3.0]]), np.array([-1.0]))
    )
    value = evaluate(network, [(Fraction(1), Fraction(1)), (Fraction(1, 3), Fraction(1, 3))])[0]
    expected = 3 * (Fraction(0.1) + Fraction(1, 3) + Fraction(1, 4)) - 1
    assert value == (expected, expected)


def test_weight_errors_give_an_interval() -> None:
    network = Network(
        (Affine(np.array([[1.0, -2.0]]), np.zeros(1), np.array([[0.5, 0.0]]), np.array([0.25])),)
    )
    low, high = evaluate(network, [(Fraction(2), Fraction(2)), (Fraction(1), Fraction(1))])[0]
    assert (low, high) == (Fraction(-5, 4), Fraction(5, 4))  # 2 − 2 ± (0.5·2 + 0.25)


def test_a_violation_of_1e_12_is_seen() -> None:
    assert violates(rounding_trap().problem, "decrease", np.array([0.5, 0.5]))
    assert not violates(rounding_trap().problem, "decrease", np.array([-0.5, -0.5]))


def test_a_violation_must_hold_for_all_weights_within_the_errors() -> None:
    assert not violates(errors_that_matter().problem, "decrease", np.array([0.5, 0.5]))


def test_the_hole_is_open_and_the_equilibrium_is_never_a_counterexample() -> None:
    problem = base("x", 2 * np.eye(2))
    assert in_hole(problem, rationals([0.1, -0.1]))
    assert not in_hole(problem, rationals([0.125, 0.0]))
    assert violates(problem, "decrease", np.array([0.125, 0.0]))
    assert not violates(problem, "decrease", np.array([np.nextafter(0.125, 0.0), 0.0]))
    assert not violates(base("x", 2 * np.eye(2), hole_radius=0.0), "positivity", np.zeros(2))


def test_the_round_hole_is_decided_exactly() -> None:
    problem = base("x", 2 * np.eye(2), hole_norm="2", hole_radius=0.625)
    assert not in_hole(problem, rationals([0.375, 0.5]))  # 3-4-5: exactly on the sphere
    assert in_hole(problem, rationals([0.375, np.nextafter(0.5, 0.0)]))


def test_states_outside_the_box_count_for_nothing() -> None:
    assert not violates(base("x", 2 * np.eye(2)), "decrease", np.array([1.5, 0.0]))


def test_invariance_and_positivity() -> None:
    problem = base("x", 2 * np.eye(2), positivity=1.5)
    assert violates(problem, "invariance", np.array([0.75, 0.0]))
    assert not violates(problem, "invariance", np.array([0.5, 0.5]))
    assert violates(problem, "positivity", np.array([0.5, 0.0]))
    assert not violates(problem, "positivity", np.array([0.5, 0.25]))  # |y|₁ = 0.75 = 1.5·0.5
