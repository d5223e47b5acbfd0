"""Accuracy in percent, the spread of a few values, and intervals of shares: one definition each
for the whole package."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def percent(correct: Tensor) -> float:
    """How many of the entries (k,) are true, in percent; NaN where there are none."""
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


def wilson(share: float, size: float, confidence: float) -> tuple[float, float]:
    """Wilson's score interval for a share seen in a sample of this size."""
    z = _deviations(confidence)
    centre = (share + z * z / (2.0 * size)) / (1.0 + z * z / size)
    spread = (share * (1.0 - share) / size + z * z / (4.0 * size * size)) ** 0.5
    reach = z * spread / (1.0 + z * z / size)
    return max(0.0, min(share, centre - reach)), min(1.0, max(share, centre + reach))


def agresti_min(won: float, lost: float, size: float, confidence: float) -> tuple[float, float]:
    """An adjusted Wald interval for the difference of paired proportions: half a label is added to
    each of the four cells."""
    total = size + 2.0
    won = (won * size + 0.5) / total
    lost = (lost * size + 0.5) / total
    centre = won - lost
    reach = _deviations(confidence) * ((won + lost - centre**2) / total) ** 0.5
    return max(-1.0, centre - reach), min(1.0, centre + reach)


def _deviations(confidence: float) -> float:
    """Standard deviations within which a normal variable lies so often."""
    return statistics.NormalDist().inv_cdf(0.5 + confidence / 2.0)
