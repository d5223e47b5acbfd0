"""Relaxation.upper against an independent implementation, and against the function itself."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from bound_queries import leaf_of, plain_answer, plain_row, random_query
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_bound import inputs, value
from run_cases import bound_of

from graphkeel import checker


@pytest.mark.parametrize("block", range(10))
def test_the_bound_is_that_of_the_format(block: int) -> None:
    for seed in range(60 * block, 60 * block + 60):
        query = random_query(seed)
        assert bound_of(checker, query) == plain_answer(query), seed


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(1000, 10**9))
def test_no_state_of_the_leaf_exceeds_its_bound(seed: int) -> None:
    query = random_query(seed)
    bound = bound_of(checker, query) / query["weights"][0]
    row = plain_row(query)
    signs = leaf_of(query, row).signs
    rng = random.Random(seed)
    for k in range(24):
        y = [
            Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(share)
            for low, high in zip(query["lower"], query["upper"], strict=True)
            for share in [rng.choice([0.0, 1.0]) if k < 8 else rng.random()]
        ]
        found = inputs(row, y)
        if all(
            (found[place] >= 0) if sign else (found[place] <= 0) for place, sign in signs.items()
        ):
            assert value(row, y) <= bound


def test_the_samples_reach_every_kind_of_choice() -> None:
    queries = [random_query(seed) for seed in range(600)]
    for name in ("slopes", "signs", "thetas"):
        assert sum(bool(query[name]) for query in queries) > 40, name
    assert {query["condition"] for query in queries} == {
        "decrease",
        "positivity",
        "invariance",
        "region",
    }
