"""Mean, spread and a paired test; every number of a table comes from here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from graphkeel.core.statistics import sample_std

TEST = "Wilcoxon signed-rank, two-sided, paired by seed"
CORRECTION = "Holm, over the rows of the same group in a column"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (ddof 1; None for a single value)."""

    n: int
    mean: float
    std: float | None


def summarise(values: Sequence[float]) -> Summary:
    """Mean and sample standard deviation."""
    return Summary(len(values), float(np.mean(values)), sample_std(values))


def paired_p(values: Sequence[float], base: Sequence[float]) -> float | None:
    """The p-value of "no difference", exact where no two differences tie; None for fewer than two
    pairs.

    Wilcoxon's test rather than Student's: accuracies over a handful of biased splits are far from
    normal. Pairs without a difference say nothing and are left out; if all are, p is 1. With n
    pairs p cannot fall below 2^(1−n)."""
    from scipy.stats import wilcoxon

    # Accuracies are multiples of 100 / |test|; what float adds must not break their ties.
    differences = np.round(_differences(values, base), 4)
    if len(differences) < 2:
        return None
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)


def gain_error(values: Sequence[float], base: Sequence[float]) -> float:
    """Standard error of the mean paired difference; 0 for a single pair."""
    summary = summarise(_differences(values, base).tolist())
    return 0.0 if summary.std is None else summary.std / float(np.sqrt(summary.n))


def gain_interval(
    values: Sequence[float], base: Sequence[float]
) -> tuple[float, float] | tuple[None, None]:
    """Student's interval of the mean paired difference at `CONFIDENCE`; None for a single pair."""
    from scipy.stats import t

    differences = _differences(values, base)
    if len(differences) < 2:
        return None, None
    quantile = float(t.ppf(0.5 + CONFIDENCE / 2, len(differences) - 1))
    margin = quantile * gain_error(values, base)
    mean = float(differences.mean())
    return mean - margin, mean + margin


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: what each p-value is worth among all of them, in their order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]"""
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def holm_by(families: Sequence[Hashable], p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction within each family; where there is no test there is no value."""
    corrected: list[float | None] = [None] * len(p_values)
    members: dict[Hashable, list[int]] = {}
    for i, family in enumerate(families):
        if p_values[i] is not None:
            members.setdefault(family, []).append(i)
    for places in members.values():
        known = [value for value in (p_values[i] for i in places) if value is not None]
        for i, value in zip(places, holm(known), strict=True):
            corrected[i] = value
    return corrected


def _differences(values: Sequence[float], base: Sequence[float]) -> np.ndarray:
    return np.asarray(values, dtype=np.float64) - np.asarray(base, dtype=np.float64)
