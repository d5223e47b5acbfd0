"""Exact arithmetic on arrays of dyadic rationals m·2^e: what floats are, and what their sums and products stay.

Python integers carry the mantissas, one exponent is shared by the whole array. Products of two float matrices with a
long inner dimension (the feature dimension) take a faster way that is just as exact: the mantissas are cut into limbs
so short that a float64 matrix product of two limbs cannot round.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Objects = NDArray[np.object_]

_FEW = 40  # numbers
_MAX_LIMBS = 16  # beyond, an exponent range of hundreds of bits: plain integers are then the better way


@dataclass(frozen=True, eq=False)
class Dyadic:
    """An array of exact numbers mantissa·2^exponent."""

    mantissa: Objects
    exponent: int

    @staticmethod
    def of(values: Any) -> Dyadic:
        """The exact value of float64 numbers."""
        array = np.asarray(values, dtype=np.float64)
        if not array.any():
            return Dyadic(np.full(array.shape, 0, dtype=object), 0)
        if array.size <= _FEW:
            return _of_few(array)
        fraction, power = np.frexp(array)
        digits = np.ldexp(fraction, 53).astype(np.int64)
        used = digits != 0
        lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1  # trailing zero bits
        exponents = np.where(used, power - 53 + lowest, np.iinfo(np.int32).max)
        shared = int(exponents.min())
        shift = np.where(used, exponents - shared, 0).astype(object)
        stripped = np.where(used, digits >> np.where(used, lowest, 0), 0).astype(object)
        return Dyadic(np.asarray(stripped << shift, dtype=object), shared)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mantissa.shape

    @property
    def T(self) -> Dyadic:
        return Dyadic(self.mantissa.T, self.exponent)

    def __getitem__(self, index: Any) -> Dyadic:
        return Dyadic(_objects(self.mantissa[index]), self.exponent)

    def __neg__(self) -> Dyadic:
        return Dyadic(_objects(-self.mantissa), self.exponent)

    def __add__(self, other: Dyadic) -> Dyadic:
        left, right, exponent = _aligned(self, other)
        return Dyadic(_objects(left + right), exponent)

    def __sub__(self, other: Dyadic) -> Dyadic:
        return self + (-other)

    def __mul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(_objects(self.mantissa * other.mantissa), self.exponent + other.exponent)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        product = np.dot(self.mantissa, other.mantissa)
        return Dyadic(_objects(product), self.exponent + other.exponent)

    def __abs__(self) -> Dyadic:
        return Dyadic(_objects(np.abs(self.mantissa)), self.exponent)

    def __le__(self, other: Dyadic) -> Bools:
        left, right, _ = _aligned(self, other)
        return np.asarray(left <= right, dtype=bool)

    def __lt__(self, other: Dyadic) -> Bools:
        left, right, _ = _aligned(self, other)
        return np.asarray(left < right, dtype=bool)

    def __eq__(self, other: object) -> Bools:  # type: ignore[override]
        if not isinstance(other, Dyadic):
            return NotImplemented
        left, right, _ = _aligned(self, other)
        return np.asarray(left == right, dtype=bool)

    def relu(self) -> Dyadic:
        return Dyadic(_objects(np.maximum(self.mantissa, 0)), self.exponent)

    def minimum(self, other: Dyadic) -> Dyadic:
        left, right, exponent = _aligned(self, other)
        return Dyadic(_objects(np.minimum(left, right)), exponent)

    def maximum(self, other: Dyadic) -> Dyadic:
        return -((-self).minimum(-other))

    def where(self, chosen: Bools, other: Dyadic) -> Dyadic:
        """This array where `chosen`, the other elsewhere."""
        left, right, exponent = _aligned(self, other)
        return Dyadic(_objects(np.where(chosen, left, right)), exponent)

    def sum(self) -> Dyadic:
        return Dyadic(_objects(self.mantissa.sum() if self.mantissa.size else 0), self.exponent)

    def max(self) -> Fraction:
        return Fraction(int(self.mantissa.max())) * Fraction(2) ** self.exponent

    def fraction(self) -> Fraction:
        """The one number of an array with one entry."""
        mantissa = int(self.mantissa.item())
        return Fraction(mantissa) * Fraction(2) ** self.exponent

    def fractions(self) -> list[Fraction]:
        scale = Fraction(2) ** self.exponent
        return [Fraction(int(m)) * scale for m in self.mantissa.ravel()]


def _of_few(array: Floats) -> Dyadic:
    """The same number by number, which takes less than numpy's calls do for a short array."""
    ratios = [value.as_integer_ratio() for value in array.ravel().tolist()]
    length = max(denominator.bit_length() for _, denominator in ratios)
    mantissa = np.empty(array.size, dtype=object)
    mantissa[:] = [numerator << (length - denominator.bit_length()) for numerator, denominator in ratios]
    return Dyadic(mantissa.reshape(array.shape), 1 - length)


def product(left: Floats, right: Floats) -> Dyadic:
    """left @ right of float64 arrays, exactly; fast also for a long inner dimension."""
    matrix = right if right.ndim == 2 else right[:, None]
    limbs = _limb_product(np.atleast_2d(left), matrix)
    exact = limbs if limbs is not None else Dyadic.of(np.atleast_2d(left)) @ Dyadic.of(matrix)
    return exact if right.ndim == 2 else exact[:, 0]


def _limb_product(left: Floats, right: Floats) -> Dyadic | None:
    inner = max(1, left.shape[1])
    bits = (53 - int(np.ceil(np.log2(inner)))) // 2  # inner · 2^(2·bits) <= 2^53: no partial sum can round
    cut = [_limbs(matrix, bits) for matrix in (left, right)]
    if cut[0] is None or cut[1] is None:
        return None
    (a_limbs, a_exponent), (b_limbs, b_exponent) = cut[0], cut[1]
    total: Objects = np.zeros((left.shape[0], right.shape[1]), dtype=object) + 0
    # Limb i of a stands at 2^(a_exponent - i·bits); Horner's scheme from the most to the least significant level.
    levels = len(a_limbs) + len(b_limbs) - 1
    for level in range(levels):
        part = np.zeros(total.shape, dtype=np.int64)
        for i in range(max(0, level - len(b_limbs) + 1), min(level, len(a_limbs) - 1) + 1):
            part += (a_limbs[i] @ b_limbs[level - i]).astype(np.int64)
        total = (total << bits) + part.astype(object)
    return Dyadic(_objects(total), a_exponent + b_exponent - (levels - 1) * bits)


def _limbs(matrix: Floats, bits: int) -> tuple[list[Floats], int] | None:
    """Integer-valued float matrices L_i, |L_i| < 2^bits, with matrix = Σ L_i · 2^(exponent − i·bits)."""
    largest = float(np.abs(matrix).max(initial=0.0))
    top = int(np.frexp(largest)[1])
    rest, exponent = matrix, top - bits
    limbs: list[Floats] = []
    while not limbs or rest.any():
        if len(limbs) == _MAX_LIMBS:
            return None
        position = exponent - len(limbs) * bits
        limb = np.trunc(np.ldexp(rest, -position))
        rest = rest - np.ldexp(limb, position)  # exact: the limb is a leading part of the number's own bits
        limbs.append(limb)
    return limbs, exponent


def _aligned(left: Dyadic, right: Dyadic) -> tuple[Objects, Objects, int]:
    exponent = min(left.exponent, right.exponent)
    return (
        _objects(left.mantissa << (left.exponent - exponent)),
        _objects(right.mantissa << (right.exponent - exponent)),
        exponent,
    )


def _objects(values: Any) -> Objects:
    return np.asarray(values, dtype=object)


def up(value: Fraction) -> float:
    """The smallest float64 that is not below an exact number."""
    near = _nearest(value)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))


def down(value: Fraction) -> float:
    """The largest float64 that is not above an exact number."""
    return -up(-value)


def _nearest(value: Fraction) -> float:
    return value.numerator / value.denominator


def square_root_up(value: Fraction) -> float:
    """A float64 that is not below the square root."""
    root = float(np.sqrt(_nearest(value)))
    while Fraction(root) ** 2 < value:
        root = float(np.nextafter(root, np.inf))
    return root
