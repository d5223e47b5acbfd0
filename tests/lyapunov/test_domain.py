"""The box holds the logits with room, and the equilibrium well inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.errors import DataError
from graphkeel.lyapunov.domain import domain_of


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(1, 20), st.floats(1e-3, 1e3), st.integers(0, 2**31))
def test_domain_holds_logits_and_equilibrium(n: int, nodes: int, scale: float, seed: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(nodes, n)) * scale
    target = np.eye(n)[0] * 2.0
    domain = domain_of(logits, target)
    width = domain.upper - domain.lower
    assert (logits >= domain.lower).all() and (logits <= domain.upper).all()
    # Y keeps about a quarter of the enlarged box on each side; the box may have grown by that margin itself
    assert (target - domain.lower >= 0.19 * width).all() and (domain.upper - target >= 0.19 * width).all()


def test_by_hand() -> None:
    # axis 0: logits 0 … 10, Y = 5: ± a tenth of 10. Axis 1: logits 0 … 0, Y = 0: the least box ± 0.5, enlarged.
    domain = domain_of(np.array([[0.0, 0.0], [10.0, 0.0]]), np.array([5.0, 0.0]))
    np.testing.assert_array_equal(domain.lower, [-1.0, np.floor(-0.6 * 64) / 64])
    np.testing.assert_array_equal(domain.upper, [11.0, np.ceil(0.6 * 64) / 64])


def test_unusable_logits_are_refused() -> None:
    with pytest.raises(DataError, match="at least one node"):
        domain_of(np.empty((0, 3)), np.zeros(3))
    with pytest.raises(DataError, match="finite"):
        domain_of(np.array([[np.nan, 0.0]]), np.zeros(2))
