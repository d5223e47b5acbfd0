"""Accuracy in percent and the spread of a few values: one definition each for the whole package."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def percent(correct: Tensor) -> float:
    """How many of the entries are true, in percent; NaN where there are none.

    Args:
        correct: bool, shape (k,).
    """
    return 100.0 * float(correct.float().mean()) if len(correct) else float("nan")


def sample_std(values: Sequence[float]) -> float | None:
    """The sample standard deviation (ddof 1); None for fewer than two values, which have none.

    >>> sample_std([1.0, 3.0]), sample_std([1.0])
    (1.4142135623730951, None)
    """
    return statistics.stdev(values) if len(values) > 1 else None


def plus_minus(mean: float, std: float | None) -> str:
    """`72.10 ± 1.02`, or the mean alone where there is no deviation."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
