"""Exact numbers: integers that share one power of two.

A float is a rational number m·2^e, and so are sums and products of floats; Python's integers hold
m without a limit. Nothing in this package is rounded, and no operation on floats decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import add, mul, sub

Ints = list[int]
MOST_BITS = 1 << 32  # of one network: half a gigabyte


class Vector:
    """The numbers ints[i]·2^exp."""

    __slots__ = ("exp", "ints")

    def __init__(self, ints: Ints, exp: int = 0) -> None:
        self.ints = ints
        self.exp = exp

    @staticmethod
    def of(floats: Sequence[float | Fraction]) -> Vector:
        """The exact values of finite floats, or of fractions that are dyadic."""
        ratios = [value.as_integer_ratio() for value in floats]
        bits = max((bottom.bit_length() for _, bottom in ratios), default=1)
        return Vector([top << (bits - bottom.bit_length()) for top, bottom in ratios], 1 - bits)

    @staticmethod
    def single(number: Fraction) -> Vector:
        """One dyadic number."""
        return Vector([number.numerator], 1 - number.denominator.bit_length())

    def __len__(self) -> int:
        return len(self.ints)

    def at(self, exp: int) -> Ints:
        """The integers for an exponent that is not above the own one."""
        return shifted(self.ints, self.exp - exp)

    def __add__(self, other: Vector) -> Vector:
        exp = min(self.exp, other.exp)
        return Vector(list(map(add, self.at(exp), other.at(exp))), exp)

    def __sub__(self, other: Vector) -> Vector:
        exp = min(self.exp, other.exp)
        return Vector(list(map(sub, self.at(exp), other.at(exp))), exp)

    def times(self, factor: Fraction) -> Vector:
        """All numbers times one dyadic number."""
        by = Vector.single(factor)
        return Vector([value * by.ints[0] for value in self.ints], self.exp + by.exp)

    def each(self, change: Callable[[int], int]) -> Vector:
        """`rise`, `drop` or `abs` of every number."""
        return Vector(list(map(change, self.ints)), self.exp)

    def joined(self, other: Vector) -> Vector:
        exp = min(self.exp, other.exp)
        return Vector(self.at(exp) + other.at(exp), exp)

    def dot(self, other: Vector) -> Fraction:
        return scaled(sum(map(mul, self.ints, other.ints)), self.exp + other.exp)

    def fractions(self) -> list[Fraction]:
        return [scaled(value, self.exp) for value in self.ints]


class Matrix:
    """The numbers rows[i][j]·2^exp."""

    __slots__ = ("exp", "height", "rows", "width")

    def __init__(self, rows: list[Ints], exp: int = 0) -> None:
        self.rows = rows
        self.exp = exp
        self.height = len(rows)
        self.width = len(rows[0])

    def at(self, exp: int) -> list[Ints]:
        return [shifted(row, self.exp - exp) for row in self.rows]

    def row(self, index: int) -> Vector:
        return Vector(self.rows[index], self.exp)

    def each(self, change: Callable[[int], int]) -> Matrix:
        return Matrix([list(map(change, row)) for row in self.rows], self.exp)

    def apply(self, vector: Vector) -> Vector:
        """The product with a vector."""
        ints = vector.ints
        return Vector([sum(map(mul, row, ints)) for row in self.rows], self.exp + vector.exp)

    def bits(self) -> int:
        """About how many bits its numbers have behind the point."""
        return self.height * self.width * (1 - self.exp)

    def __matmul__(self, other: Matrix) -> Matrix:
        if self.height * other.width * (1 - self.exp - other.exp) > MOST_BITS:
            raise ArithmeticError("the file asks for more memory than the limit allows")
        columns = list(zip(*other.rows, strict=True))
        product = [[sum(map(mul, row, column)) for column in columns] for row in self.rows]
        return Matrix(product, self.exp + other.exp)

    def __add__(self, other: Matrix) -> Matrix:
        exp = min(self.exp, other.exp)
        pairs = zip(self.at(exp), other.at(exp), strict=True)
        return Matrix([list(map(add, left, right)) for left, right in pairs], exp)


def shifted(ints: Ints, by: int) -> Ints:
    if by < 0:
        raise ArithmeticError("a number would lose its last bits")
    return ints if by == 0 else [value << by for value in ints]


def scaled(value: int, exp: int) -> Fraction:
    """value·2^exp."""
    return Fraction(value << exp) if exp >= 0 else Fraction(value, 1 << -exp)


def rise(value: int) -> int:
    """relu(value)."""
    return max(value, 0)


def drop(value: int) -> int:
    """relu(−value)."""
    return max(-value, 0)


class Work:
    """A limit on products of integers of about a thousand bits, spent before they are formed: no
    file can make its reader compute for days."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def spend(self, products: int, bits: int) -> None:
        self.left -= products * (1 + bits // 1024) ** 2
        if self.left < 0:
            raise ArithmeticError("the file asks for more arithmetic than the limit allows")
