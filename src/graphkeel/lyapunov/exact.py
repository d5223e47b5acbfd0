"""Dot products of floats rounded once, with a rigorous bound on what that rounding lost.

Each product is split into a float and its exact rounding error (Dekker, Veltkamp); `math.fsum` then
adds all of them as if in infinite precision. What comes back is the float nearest to the true
rational number, and a bound on the distance between the two."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from torch import Tensor

from graphkeel.verify.problem import Array

_SPLIT = 134217729.0  # 2^27 + 1
_SAFE = (2.0**-450, 2.0**450)  # inside, neither a product nor its error over- or underflows


def float64(tensor: Tensor) -> Array:
    """A tensor's numbers, whose products are formed exactly."""
    return tensor.detach().double().numpy()


def exact_dot(left: Array, right: Array) -> tuple[float, float]:
    """(value, error): |true dot product − value| ≤ error."""
    used = (left != 0) & (right != 0)
    left, right = left[used], right[used]
    if not len(left):
        return 0.0, 0.0
    sizes = np.abs(np.concatenate([left, right]))
    if sizes.min() < _SAFE[0] or sizes.max() > _SAFE[1]:
        return _rational_dot(left, right)
    product = left * right
    terms = np.concatenate([product, _product_error(left, right, product)]).tolist()
    value = math.fsum(terms)
    terms.append(-value)
    return value, _round_up(abs(math.fsum(terms)))


def sum_up(values: Iterable[float]) -> float:
    """An upper bound on the exact sum of non-negative floats."""
    return _round_up(math.fsum(values))


def _round_up(value: float) -> float:
    """The next float: covers the half unit by which a correctly rounded result may fall short."""
    return math.nextafter(value, math.inf) if value else 0.0


def product_up(left: float, right: float) -> float:
    """An upper bound on the exact product of two non-negative floats."""
    return math.nextafter(left * right, math.inf) if left and right else 0.0


def _product_error(left: Array, right: Array, product: Array) -> Array:
    left_high, left_low = _halves(left)
    right_high, right_low = _halves(right)
    rest = left_high * right_high - product
    return left_low * right_low + (left_low * right_high + (left_high * right_low + rest))


def _halves(values: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * values
    high = scaled - (scaled - values)
    return high, values - high


def _rational_dot(left: Array, right: Array) -> tuple[float, float]:
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    true = sum((Fraction(a) * Fraction(b) for a, b in pairs), start=Fraction(0))
    value = float(true)
    lost = abs(true - Fraction(value))
    error = float(lost)
    return value, error if Fraction(error) >= lost else math.nextafter(error, math.inf)
