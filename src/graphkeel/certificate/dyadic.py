"""Exact arithmetic on arrays of dyadic rationals m·2^e: what floats are, and what their sums and
products stay.

Python integers carry the mantissas, one exponent is shared by the whole array. Products of two
float matrices with a long inner dimension (the feature dimension) take a faster way that is just as
exact: the mantissas are cut into limbs so short that a float64 matrix product of two limbs cannot
round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
Objects = NDArray[np.object_]

_FEW = 24  # numbers
_MAX_LIMBS = (
    16  # beyond, an exponent range of hundreds of bits: plain integers are then the better way
)


@dataclass(
    eq=False, slots=True
)  # not frozen, which takes longer to make than many a sum; but never changed
class Dyadic:
    """An array of exact numbers mantissa·2^exponent."""

    mantissa: Objects
    exponent: int

    @staticmethod
    def of(values: Any) -> Dyadic:
        """The exact value of float64 numbers."""
        array = np.asarray(values, dtype=np.float64)
        if array.size <= _FEW:
            return _of_few(array)
        if not array.any():
            return Dyadic(np.full(array.shape, 0, dtype=object), 0)
        fraction, power = np.frexp(array)
        digits = np.ldexp(fraction, 53).astype(np.int64)
        lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1  # trailing zero bits
        exponents = power - 53 + lowest
        shared = int((exponents if array.all() else exponents[digits != 0]).min())
        if int(power.max()) - shared < 63:
            return Dyadic(np.ldexp(array, -shared).astype(np.int64).astype(object), shared)
        shift = np.where(digits != 0, exponents - shared, 0).astype(object)
        stripped = np.where(digits != 0, digits >> np.maximum(lowest, 0), 0).astype(object)
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
        left, right, exponent = _aligned(self, other)
        return Dyadic(_objects(left - right), exponent)

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
        left, right, exponent = _aligned(self, other)
        return Dyadic(_objects(np.maximum(left, right)), exponent)

    def where(self, chosen: Bools, other: Dyadic) -> Dyadic:
        """This array where `chosen`, the other elsewhere."""
        left, right, exponent = _aligned(self, other)
        return Dyadic(_objects(np.where(chosen, left, right)), exponent)

    def sum(self) -> Dyadic:
        return Dyadic(_objects(self.mantissa.sum() if self.mantissa.size else 0), self.exponent)

    def min(self) -> Fraction:
        return _scaled(self.mantissa.min(), self.exponent)

    def max(self) -> Fraction:
        return _scaled(self.mantissa.max(), self.exponent)

    def fraction(self) -> Fraction:
        """The one number of an array with one entry."""
        return _scaled(self.mantissa.item(), self.exponent)

    def fractions(self) -> list[Fraction]:
        return [_scaled(m, self.exponent) for m in self.mantissa.ravel().tolist()]


def _scaled(mantissa: int, exponent: int) -> Fraction:
    return (
        Fraction(int(mantissa) << exponent)
        if exponent >= 0
        else Fraction(int(mantissa), 1 << -exponent)
    )


def _of_few(array: Floats) -> Dyadic:
    """The same number by number, which takes less than numpy's calls do for a short array."""
    ratios = [value.as_integer_ratio() for value in array.ravel().tolist()]
    shared = max([denominator for _, denominator in ratios], default=1)  # each a power of two
    mantissa = np.empty(array.size, dtype=object)
    mantissa[:] = [numerator * (shared // denominator) for numerator, denominator in ratios]
    return Dyadic(mantissa.reshape(array.shape), 1 - shared.bit_length())


@dataclass(frozen=True, eq=False)
class Cut:
    """A float matrix Σ L_i·2^(exponent − i·(bits + 1)) of integer limbs |L_i| <= 2^bits, ready for
    exact products.

    The limbs are so short that no sum over the matrix's columns, of products with limbs of that
    length, can round."""

    whole: Floats
    limbs: Floats | None  # one matrix below the other; None where there is no such sum
    exponent: int
    bits: int

    @staticmethod
    def of(matrix: Floats) -> Cut:
        bits = (
            53 - (max(1, matrix.shape[1]) - 1).bit_length()
        ) // 2  # columns · 2^(2·bits) <= 2^53
        exponent = _exponent(matrix, bits)
        try:
            limbs = [
                limb * 2.0 ** (i * (bits + 1) - exponent)
                for i, limb in enumerate(_limbs(matrix, exponent, bits))
            ]
        except _TooWide:
            return Cut(matrix, None, exponent, bits)
        return Cut(matrix, np.concatenate(limbs), exponent, bits)


def _exponent(matrix: Floats, bits: int) -> int:
    """That of the first limb: no number is larger than 2^(bits + exponent)."""
    return int(np.frexp(max(matrix.max(initial=0.0), -matrix.min(initial=0.0)))[1]) - bits


class _TooWide(ArithmeticError):
    """Numbers are too far apart, too large or too small for limbs, or there are none."""


def _limbs(matrix: Floats, exponent: int, bits: int) -> Iterator[Floats]:
    """The limbs, each with its power of two, and each in the same place: to be used before the next
    is asked for."""
    rest, limb, count = matrix.copy(), np.empty_like(matrix), 0
    while not count or rest.any():
        position = exponent - count * (bits + 1)
        # Between these powers of two neither a limb nor a product of two can overflow or lose bits
        # at the low end.
        if count == _MAX_LIMBS or exponent > 400 or position < -500:
            raise _TooWide
        # The nearest multiples of 2^position: that is how far apart floats are at 1.5·2^(52 +
        # position).
        shift = 1.5 * 2.0 ** (52 + position)
        np.add(rest, shift, out=limb)
        limb -= shift
        # exact: what is left are the number's own low bits, at most 2^(position − 1) in size
        rest -= limb
        yield limb
        count += 1


def product(left: Floats | Cut, right: Floats) -> Dyadic:
    """left @ right of float64 arrays, exactly; fast also for a long inner dimension."""
    matrix = right if right.ndim == 2 else right[:, None]
    cut = left if isinstance(left, Cut) else Cut.of(np.atleast_2d(left))
    try:
        exact = _limb_product(cut, matrix)
    except _TooWide:
        exact = Dyadic.of(cut.whole) @ Dyadic.of(matrix)
    return exact if right.ndim == 2 else exact[:, 0]


def _limb_product(left: Cut, right: Floats) -> Dyadic:
    exponent, step = _exponent(right, left.bits), left.bits + 1
    levels = _levels(left, right, exponent)
    total: Any = 0
    for level in levels:  # Horner's scheme from the most to the least significant one
        total = (total << step) + level.astype(object)
    return Dyadic(_objects(total), left.exponent + exponent - (len(levels) - 1) * step)


def _levels(left: Cut, right: Floats, exponent: int) -> list[Integers]:
    """Σ_i L_i @ R_(k − i) for every k."""
    shape, levels = (-1, left.whole.shape[0], right.shape[1]), list[Integers]()
    if left.limbs is None or 0 in shape:
        raise _TooWide
    for j, limb in enumerate(_limbs(right, exponent, left.bits)):
        parts = (left.limbs @ limb) * 2.0 ** (j * (left.bits + 1) - exponent)
        for i, part in enumerate(parts.astype(np.int64).reshape(shape)):
            if i + j == len(levels):
                levels.append(part)
            else:
                levels[i + j] += part
    return levels


def _aligned(left: Dyadic, right: Dyadic) -> tuple[Objects, Objects, int]:
    above = left.exponent - right.exponent
    if above > 0:
        return _objects(left.mantissa << above), right.mantissa, right.exponent
    return (
        left.mantissa,
        _objects(right.mantissa << -above) if above else right.mantissa,
        left.exponent,
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
