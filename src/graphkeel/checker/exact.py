"""Exact numbers: integers that share one power of two.

A float is a rational number m·2^e, and so are sums and products of floats; Python's integers hold
m without a limit. Nothing in this package is rounded, and no operation on floats decides anything.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import add, mul, neg
from typing import Any

from .limits import MOST_BITS, MOST_PRODUCTS

Ints = list[int]


@dataclass(slots=True)
class Vector:
    """The numbers ints[i]·2^exp."""

    ints: Ints
    exp: int = 0

    @staticmethod
    def of(numbers: Sequence[float | Fraction]) -> "Vector":
        """The exact values of finite floats, or of fractions that are dyadic."""
        ratios = [value.as_integer_ratio() for value in numbers]
        if any(bottom & (bottom - 1) for _, bottom in ratios):
            raise ArithmeticError("a number is no multiple of a power of two")
        bits = max((bottom.bit_length() for _, bottom in ratios), default=1)
        return Vector([top << (bits - bottom.bit_length()) for top, bottom in ratios], 1 - bits)

    def __len__(self) -> int:
        return len(self.ints)

    @property
    def bits(self) -> int:
        """How long its numbers are, before and behind the point."""
        return max(1 - self.exp, *map(int.bit_length, self.ints), 1)

    def at(self, exp: int) -> Ints:
        """The integers for an exponent that is not above the own one."""
        return shifted(self.ints, self.exp - exp)

    def __add__(self, other: "Vector") -> "Vector":
        exp = min(self.exp, other.exp)
        _fits(len(self), len(other))
        return Vector(list(map(add, self.at(exp), other.at(exp))), exp)

    def __sub__(self, other: "Vector") -> "Vector":
        return self + other.each(neg)

    def times(self, factor: Fraction) -> "Vector":
        """All numbers times one dyadic number."""
        by = Vector.of([factor])
        return Vector([value * by.ints[0] for value in self.ints], self.exp + by.exp)

    def each(self, change: Callable[[int], int]) -> "Vector":
        """`rise`, `drop`, `abs` or the like of every number."""
        return Vector(list(map(change, self.ints)), self.exp)

    def joined(self, other: "Vector") -> "Vector":
        exp = min(self.exp, other.exp)
        return Vector(self.at(exp) + other.at(exp), exp)

    def dot(self, other: "Vector") -> Fraction:
        _fits(len(self), len(other))
        return scaled(sum(map(mul, self.ints, other.ints)), self.exp + other.exp)

    def fractions(self) -> list[Fraction]:
        return [scaled(value, self.exp) for value in self.ints]


class Matrix:
    """The numbers rows[i][j]·2^exp."""

    def __init__(self, rows: list[Ints], exp: int = 0) -> None:
        self.rows = rows
        self.exp = exp
        self.height = len(rows)
        self.width = len(rows[0])

    def at(self, exp: int) -> list[Ints]:
        return [shifted(row, self.exp - exp) for row in self.rows]

    @cached_property
    def columns(self) -> list[Ints]:
        return [list(column) for column in zip(*self.rows, strict=True)]

    @cached_property
    def bits(self) -> int:
        return max(self.row(index).bits for index in range(self.height))

    def row(self, index: int) -> "Vector":
        return Vector(self.rows[index], self.exp)

    def each(self, change: Callable[[int], int]) -> "Matrix":
        return Matrix([list(map(change, row)) for row in self.rows], self.exp)

    def apply(self, vector: Vector) -> "Vector":
        """The product with a vector."""
        _fits(self.width, len(vector))
        values = [sum(map(mul, row, vector.ints)) for row in self.rows]
        return Vector(values, self.exp + vector.exp)

    def __matmul__(self, other: "Matrix") -> "Matrix":
        _fits(self.width, other.height)
        numbers = self.height * other.width
        if numbers * self.width > MOST_PRODUCTS or numbers * (self.bits + other.bits) > MOST_BITS:
            raise ArithmeticError("the file asks for more memory than the limit allows")
        product = [[sum(map(mul, row, column)) for column in other.columns] for row in self.rows]
        return Matrix(product, self.exp + other.exp)

    def __add__(self, other: "Matrix") -> "Matrix":
        exp = min(self.exp, other.exp)
        pairs = zip(self.at(exp), other.at(exp), strict=True)
        return Matrix([list(map(add, left, right)) for left, right in pairs], exp)


def _fits(width: int, height: int) -> None:
    if width != height:
        raise ArithmeticError("numbers of the file do not fit together")


def folded(values: Sequence[Any], width: int) -> list[Any]:
    """Lines of so many values."""
    return [values[i : i + width] for i in range(0, len(values), width or 1)]


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


def float_above(value: Fraction) -> float:
    """The next float that is not below; for the reader, nothing is decided by it."""
    near = value.numerator / value.denominator
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


class Work:
    """A limit on products of integers of about a thousand bits, spent before they are formed: no
    file can make its reader compute for days."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def spend(self, products: int, bits: int) -> None:
        self.left -= products * (1 + bits // 1024) ** 2
        if self.left < 0:
            raise ArithmeticError("the file asks for more arithmetic than the limit allows")
