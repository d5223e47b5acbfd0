"""Relaxation.upper against an independent implementation, and against the function itself."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from bound_queries import leaf_of, plain_answer, plain_row, random_query
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_bound import inputs, value
from run_cases import asked_of, bound_of

from graphkeel import checker
from graphkeel.checker.relaxation import BITS, _square_line


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


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_view_of_a_box_bounds_its_parts(seed: int) -> None:
    """A unit of one sign on a box is multiplied out for all parts of it: along a path of three
    cuts, each with the view of the part before, no state exceeds its part's bound."""
    rng = random.Random(seed)
    query = random_query(seed)
    relaxation, box, leaf = asked_of(checker, query)
    row, signs = plain_row(query), leaf_of(query, plain_row(query)).signs
    view = relaxation.root
    exp = relaxation.box_exp
    for _ in range(3):
        view = relaxation.narrowed(view, box, leaf.signs)
        axis = rng.randrange(len(box[0]))
        low, high = list(box[0]), list(box[1])
        middle = (low[axis] + high[axis]) // 2
        (low if rng.random() < 0.5 else high)[axis] = middle
        box = (low, high)
        bound = relaxation.upper(view, box, leaf) / query["weights"][0]
        for k in range(8):
            shares = [Fraction(rng.choice([0, 1]) if k < 4 else rng.random()) for _ in low]
            ends = zip(low, high, shares, strict=True)
            y = [(a + (b - a) * share) * Fraction(2) ** exp for a, b, share in ends]
            found = inputs(row, y)
            inside = all(
                found[place] >= 0 if sign else found[place] <= 0 for place, sign in signs.items()
            )
            assert not inside or value(row, y) <= bound


def test_the_lines_around_a_square_hold_whatever_is_rounded() -> None:
    rng = random.Random(0)
    for _ in range(500):
        exp = rng.randint(-140, 4)
        least, most = sorted(rng.randrange(-(2**70), 2**70) for _ in range(2))
        slope, chord, drop, lift, _ = _square_line(least, most, exp)
        for at in (least, most, rng.randint(least, most), (least + most) // 2):
            square = Fraction(at * at) * Fraction(2) ** (exp + BITS)
            assert slope * at + drop <= square <= chord * at + lift
