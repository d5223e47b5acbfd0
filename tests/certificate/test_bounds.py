"""Numbers with bounds: the exact one lies within them, and what is beyond floats is no number."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from graphkeel.certificate import bounds
from graphkeel.certificate.bounds import (
    Bounded,
    clear_classes,
    dense,
    exceeds,
    finite,
    plus,
)
from graphkeel.certificate.layers import Operator
from graphkeel.core.errors import CertificateError

BEYOND = [np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("bad", BEYOND)
def test_what_is_beyond_floats_never_becomes_a_number(bad: float) -> None:
    good = np.zeros(2)
    makers: list[Any] = [
        lambda: finite([0.0, bad]),
        lambda: Bounded(np.array([0.0, bad]), good),
        lambda: Bounded(good, np.array([0.0, bad])),
        lambda: Bounded.exact([0.0, bad]),
        lambda: exceeds([0.0, bad], 0.0),
        lambda: exceeds([0.0, 1.0], bad),
        lambda: clear_classes(np.array([[0.0, bad]]), 0.0),
    ]
    for make in makers:
        with pytest.raises(CertificateError):
            make()


def test_bounds_fit_their_numbers_and_stay_as_they_are() -> None:
    for error in (np.array([-1.0, 0.0]), np.zeros(3)):
        with pytest.raises(CertificateError):
            Bounded(np.zeros(2), error)
    with pytest.raises(ValueError, match="read-only"):
        Bounded.exact([1.0]).value[0] = np.inf


@pytest.mark.parametrize("act", ["plus", "dense"])
def test_an_operation_that_overflows_is_refused(act: str) -> None:
    large = Bounded.exact(np.full((1, 2), 1.7e308))
    actions: dict[str, Any] = {
        "plus": lambda: plus(large, large),
        "dense": lambda: dense(large, np.ones((1, 2)), np.zeros(1)),
    }
    with pytest.raises(CertificateError), np.errstate(all="ignore"):
        actions[act]()


def drawn(generator: np.random.Generator, *shape: int) -> np.ndarray:
    exponents = generator.integers(-1074, 1023, shape)
    narrow = generator.integers(-3, 3, shape)
    chosen = np.where(generator.random() < 0.5, narrow, exponents)
    return generator.normal(size=shape) * np.ldexp(1.0, chosen)


def exact(values: Any) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(values)


def inside(found: Bounded, true: np.ndarray) -> bool:
    return bool((abs(exact(found.value) - true) <= exact(found.error)).all())


def test_the_exact_number_lies_within_the_bounds() -> None:
    """From the least float to the largest; what overflows is refused."""
    generator = np.random.default_rng(0)
    kept = 0
    for _ in range(600):
        one, two = drawn(generator, 2, 3), drawn(generator, 2, 3)
        weight, bias = drawn(generator, 4, 3), drawn(generator, 4)
        try:
            with np.errstate(all="ignore"):
                first = plus(Bounded.exact(one), Bounded.exact(two))
                last = dense(first, weight, bias)
        except CertificateError:
            continue
        kept += 1
        true = exact(one) + exact(two)
        assert inside(first, true)
        assert inside(last, true @ exact(weight).T + exact(bias))
    assert kept > 100


def test_sums_of_more_terms_than_the_bounds_cover_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "_TERMS", 8)
    star = np.stack([np.arange(1, 9), np.zeros(8, np.int64)])
    with pytest.raises(CertificateError, match="terms"):
        Operator.of("symmetric", star, 9)
    assert Operator.of("symmetric", star[:, 1:], 9).most == 7
    with pytest.raises(CertificateError, match="terms"):
        dense(Bounded.exact(np.ones((1, 8))), np.ones((1, 8)), np.ones(1))
