"""Mean, spread and a paired test of values over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphkeel.core.statistics import sample_std

TEST = "Wilcoxon signed-rank, two-sided, paired by seed"


@dataclass(frozen=True)
class _Summary:
    n: int
    mean: float
    std: float | None


def summarise(values: Sequence[float]) -> _Summary:
    return _Summary(len(values), float(np.mean(values)), sample_std(values))


def paired_p(values: Sequence[float], base: Sequence[float]) -> float | None:
    """The p-value of "no difference", exact where no two differences tie; None for fewer than two
    pairs.

    Wilcoxon's test rather than Student's: accuracies over a handful of biased splits are far from
    normal. Pairs without a difference say nothing and are left out; if all are, p is 1. With n
    pairs p cannot fall below 2^(1−n)."""
    from scipy.stats import wilcoxon

    # Accuracies are multiples of 100 / |test|; what float adds must not break their ties.
    differences = np.round(gains(values, base), 4)
    if len(differences) < 2:
        return None
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)


def gains(values: Sequence[float], base: Sequence[float]) -> np.ndarray:
    """Value less base, seed by seed; float64, shape (n,)."""
    return np.asarray(values, dtype=np.float64) - np.asarray(base, dtype=np.float64)
