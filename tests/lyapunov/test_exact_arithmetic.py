"""Dot products come with a bound that the exact rational value confirms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.lyapunov.closed_loop import exact_dot, product_up, sum_up

finite = st.floats(
    allow_nan=False, allow_infinity=False, width=64, min_value=-1e100, max_value=1e100
)
pairs = st.lists(st.tuples(finite, finite), max_size=30)


def true_dot(values: list[tuple[float, float]]) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in values), start=Fraction(0))


@settings(max_examples=300, deadline=None)
@given(pairs)
def test_error_covers_the_true_value(values: list[tuple[float, float]]) -> None:
    left, right = (np.array([p[i] for p in values], dtype=np.float64) for i in (0, 1))
    value, error = exact_dot(left, right)
    lost = abs(true_dot(values) - Fraction(value))
    assert lost <= Fraction(error)
    assert Fraction(error) <= Fraction(abs(value)) * Fraction(2) ** -52 + Fraction(2) ** -1000


def test_cancellation_keeps_what_a_float_sum_loses() -> None:
    value, error = exact_dot(np.array([1e16, 1.0, -1e16]), np.ones(3))
    assert (value, error) == (1.0, 0.0)


def test_tiny_factors_do_not_underflow_unnoticed() -> None:
    value, error = exact_dot(np.array([1e-200]), np.array([1e-200]))
    assert value == 0.0
    assert Fraction(error) >= Fraction(1e-200) ** 2
    assert product_up(1e-200, 1e-200) > 0


def test_sum_up_bounds_from_above() -> None:
    assert Fraction(sum_up([0.1] * 10)) >= 10 * Fraction(0.1)
