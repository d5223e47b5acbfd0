"""Exact arithmetic against Python's fractions."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.certificate.dyadic import Dyadic, down, product, square_root_up, up
from graphkeel.certificate.encoding import canonical

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(
    st.lists(numbers, min_size=1, max_size=6), st.sampled_from([1, 30])
)  # few numbers go another way than many
def test_floats_are_taken_exactly(values: list[float], times: int) -> None:
    assert Dyadic.of(values * times).fractions() == [Fraction(v) for v in values] * times


@given(st.integers(0, 10**6), st.integers(0, 70))
def test_many_floats_of_any_spread_are_taken_exactly(seed: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.ldexp(
        rng.normal(size=40).astype(np.float32), rng.integers(-spread, spread + 1, size=40)
    )
    values[rng.integers(0, 40, size=3)] = 0.0
    assert Dyadic.of(values).fractions() == [Fraction(float(v)) for v in values]


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_operations_agree_with_fractions(pairs: list[tuple[float, float]]) -> None:
    a, b = (Dyadic.of([pair[i] for pair in pairs]) for i in (0, 1))
    exact = [(Fraction(x), Fraction(y)) for x, y in pairs]
    assert (a + b).fractions() == [x + y for x, y in exact]
    assert (a - b).fractions() == [x - y for x, y in exact]
    assert (a @ b).fraction() == sum(x * y for x, y in exact)
    assert a.relu().fractions() == [max(x, 0) for x, _ in exact]
    assert a.maximum(b).fractions() == [max(pair) for pair in exact]
    assert (a <= b).tolist() == [x <= y for x, y in exact]
    assert (a < b).tolist() == [x < y for x, y in exact]
    assert (a == b).tolist() == [x == y for x, y in exact]
    assert a.where(np.array([x > 0 for x, _ in exact]), b).fractions() == [
        x if x > 0 else y for x, y in exact
    ]


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    inner=st.integers(1, 60),
    spread=st.sampled_from([0, 5, 40, 150, 600]),
)
def test_limb_products_are_exact(seed: int, inner: int, spread: int) -> None:
    rng = np.random.default_rng(seed)

    def matrix(*shape: int) -> np.ndarray:
        return np.ldexp(rng.normal(size=shape), rng.integers(-spread, spread + 1, size=shape) // 2)

    a, b = matrix(3, inner), matrix(inner, 2)
    slow = Dyadic.of(a) @ Dyadic.of(b)
    assert product(a, b).fractions() == slow.fractions()
    assert product(a, b[:, 0]).fractions() == slow[:, 0].fractions()


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_products_over_nothing(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    exact = product(np.ones((rows, inner)), np.ones((inner, columns)))
    assert exact.shape == (rows, columns) and not any(exact.fractions())


@pytest.mark.parametrize("scale", [1e308, 1e150, 1e-150, 5e-324])
def test_products_at_the_ends_of_the_float_range(scale: float) -> None:
    a, b = np.array([[scale, 1.0, -scale]]), np.array([[scale], [5e-324], [1e-300]])
    expected = sum(
        Fraction(x) * Fraction(y) for x, y in zip(a[0].tolist(), b[:, 0].tolist(), strict=True)
    )
    assert product(a, b).fraction() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_inner_dimension_stays_exact(dtype: type) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 5000)).astype(dtype).astype(float)
    b = rng.normal(size=(5000, 1)).astype(dtype).astype(float)
    expected = [
        sum(Fraction(x) * Fraction(y) for x, y in zip(row, b[:, 0], strict=True)) for row in a
    ]
    assert product(a, b).fractions() == expected


@given(st.fractions(min_value=0, max_value=10**6))
def test_rounding_goes_outwards(value: Fraction) -> None:
    assert Fraction(down(value)) <= value <= Fraction(up(value))
    assert Fraction(np.nextafter(up(value), -1.0)) < value or up(value) == 0
    assert Fraction(square_root_up(value)) ** 2 >= value


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(json_values)
def test_the_canonical_text_is_that_of_the_json_module(value: object) -> None:
    whole = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    assert canonical(value) == whole.encode("ascii")


def test_the_canonical_text_has_no_room_for_what_is_not_json() -> None:
    for value in (float("nan"), float("inf"), [1, {"a": float("-inf")}]):
        with pytest.raises(ValueError):
            canonical(value)
    assert canonical({1: (2, 3), "a": {}, "b": []}.get("b")) == b"[]\n"
    assert canonical({"x": {2: 1}}) == b'{\n "x": {\n  "2": 1\n }\n}\n'
