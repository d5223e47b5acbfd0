"""Intervals and corrections beside the paired test; every number of a table comes from here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from graphkeel.store.statistics import gains, summarise

CORRECTION = "Holm, over the rows of the same group in a column"


def gain_error(values: Sequence[float], base: Sequence[float]) -> float:
    """Standard error of the mean paired difference; 0 for a single pair."""
    summary = summarise(gains(values, base).tolist())
    return 0.0 if summary.std is None else summary.std / float(np.sqrt(summary.n))


def gain_interval(
    values: Sequence[float], base: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | tuple[None, None]:
    """Student's interval of the mean paired difference at a confidence; None for a single pair."""
    from scipy.stats import t

    differences = gains(values, base)
    if len(differences) < 2:
        return None, None
    quantile = float(t.ppf(0.5 + confidence / 2, len(differences) - 1))
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
