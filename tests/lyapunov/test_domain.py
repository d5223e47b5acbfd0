"""The box holds the logits with room, and the equilibrium well inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.core.errors import DataError
from graphkeel.lyapunov.states import shared_box


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(1, 20), st.floats(1e-3, 1e3), st.integers(0, 2**31))
def test_domain_holds_logits_and_equilibrium(n: int, nodes: int, scale: float, seed: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(nodes, n)) * scale
    targets = np.eye(n) * 2.0
    low, high = shared_box(logits, targets)
    assert (logits >= low).all() and (logits <= high).all()
    # a quarter of the box as it was before that margin itself widened it: never less than a sixth
    # of the whole
    assert (targets - low >= (high - low) / 6 - 1e-9).all()
    assert (high - targets >= (high - low) / 6 - 1e-9).all()


def test_by_hand() -> None:
    # axis 0: logits 0 … 10, Y = 5: ± a tenth of 10. Axis 1: logits 0 … 0, Y = 0: the least box ±
    # 0.5, enlarged.
    low, high = shared_box(np.array([[0.0, 0.0], [10.0, 0.0]]), np.array([[5.0, 0.0]]))
    np.testing.assert_array_equal(low, [-1.0, np.floor(-0.6 * 64) / 64])
    np.testing.assert_array_equal(high, [11.0, np.ceil(0.6 * 64) / 64])


def test_unusable_logits_are_refused() -> None:
    with pytest.raises(DataError, match="at least one node"):
        shared_box(np.empty((0, 3)), np.eye(3))
    with pytest.raises(DataError, match="finite"):
        shared_box(np.array([[np.nan, 0.0]]), np.eye(2))
