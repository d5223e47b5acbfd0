"""Numbers with bounds on their rounding, float64; what leaves the range of floats is refused.

Every operation carries a bound on what its rounding may have lost. A number enters only through
`finite`, and so does whatever is compared or counted: infinity and NaN decide nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkeel.core.errors import CertificateError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNIT = 2.0**-53
SLACK = 1.0 + 2.0**-20  # covers the rounding of the bounds themselves, by orders of magnitude
TINY = 1e-290  # what underflow may lose
_TERMS = 1 << 26  # of one sum: what SLACK covers, and squares of such counts are exact


def finite(values: ArrayLike) -> Floats:
    """The values, not to be written to; refused if one is infinite or no number."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise CertificateError("the loop on the graph leaves the range of floats")
    view = numbers.view()
    view.flags.writeable = False
    return view


def exceeds(values: ArrayLike, needed: ArrayLike) -> Flags:
    """Where values are larger than what is needed, their own rounding included."""
    return np.asarray(finite(values) * (1 - 4 * UNIT) > finite(needed) * SLACK + TINY)


def clear_classes(values: Floats, needed: ArrayLike) -> tuple[Ints, Flags]:
    """The class of each row (N, n), and whether its margin is larger than needed, (N, 1) or
    (N, n)."""
    best = finite(values).argmax(axis=1)
    margins = np.take_along_axis(values, best[:, None], axis=1) - values
    clear = exceeds(margins, needed)
    np.put_along_axis(clear, best[:, None], True, axis=1)
    return best, np.asarray(clear.all(axis=1))


@dataclass(frozen=True, eq=False)
class Bounded:
    """Numbers, and how far each is from the exact one at most. All of them are finite.

    Attributes:
        value: any shape.
        error: the same shape, not below zero.
    """

    value: Floats
    error: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", finite(self.value))
        object.__setattr__(self, "error", finite(self.error))
        if self.value.shape != self.error.shape or (self.error < 0).any():
            raise CertificateError("a bound on rounding fits its number and is not negative")

    @classmethod
    def exact(cls, value: ArrayLike) -> Bounded:
        return cls(np.asarray(value, dtype=np.float64), np.zeros(np.shape(value)))

    def clear_classes(self, slack: float) -> tuple[Ints, Flags]:
        """The class of each row, and whether it is beyond `slack` times what rounding may lose."""
        needed = slack * 2.0 * self.error.max(axis=1)
        return clear_classes(self.value, needed[:, None])


def relu(given: Bounded) -> Bounded:
    """max(x, 0), which moves no two numbers apart."""
    return Bounded(np.maximum(given.value, 0.0), given.error)


def plus(one: Bounded, two: Bounded) -> Bounded:
    """The sum of two arrays of one shape."""
    value = one.value + two.value
    error = (one.error + two.error + 4 * UNIT * np.abs(value)) * SLACK + TINY
    return Bounded(value, error)


def dense(given: Bounded, weight: Floats, bias: Floats) -> Bounded:
    """H·Wᵀ + b for H of shape (N, in) and W of shape (out, in); however the sums are ordered, each
    loses at most γ times the sum of its sizes."""
    sizes = np.abs(weight).T
    loss = 4 * (checked_terms(weight.shape[1]) + 8) * UNIT
    value = given.value @ weight.T + bias
    spread = (given.error + loss * np.abs(given.value)) @ sizes + loss * np.abs(bias)
    return Bounded(value, spread * SLACK + TINY)


def checked_terms(terms: int) -> int:
    """The number of terms of a sum, refused where the bounds on its rounding would not hold."""
    if terms >= _TERMS:
        raise CertificateError(f"a sum on the graph has fewer than {_TERMS} terms", got=terms)
    return terms
