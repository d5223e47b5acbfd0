"""Drift since the fit: one established test each, from SciPy, with the size of the effect.

On a large graph everything is significant. So a test alone says nothing here: what counts as drift
is both improbable by chance and large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, false_discovery_control, ks_2samp

Array = NDArray[np.float32]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class DriftTest:
    """One comparison of the graph now with the fitted one.

    Attributes:
        name: what is compared.
        test: which test, and what the effect is.
        p_value: after the correction for several tests, where there are several.
        effect: 0 for no difference, 1 for the largest there is.
        drifted: improbable by chance, and large.
    """

    name: str
    test: str
    p_value: float
    effect: float
    drifted: bool


@dataclass(frozen=True)
class DriftSettings:
    """Attributes:
    level: of significance, after correction.
    distribution: the Kolmogorov–Smirnov distance from which a difference is large.
    shares: the total variation distance of class shares from which it is.
    homophily: the difference of shares of edges from which it is.
    """

    level: float = 0.01
    distribution: float = 0.15
    shares: float = 0.1
    homophily: float = 0.05


def sample_drift(name: str, before: Array, after: Array, settings: DriftSettings) -> DriftTest:
    """Each column of two samples, of shapes (m, d) and (k, d), by the Kolmogorov–Smirnov test;
    p-values by Benjamini and Hochberg. The effect is the largest distance of a column."""
    found = ks_2samp(before, after, axis=0, method="asymp")
    p_values = false_discovery_control(found.pvalue)
    largest = int(found.statistic.argmax())
    some = found.statistic[p_values < settings.level]
    effect = float(some.max() if len(some) else found.statistic[largest])
    columns = before.shape[1]
    words = f"largest distance of {columns} features" if columns > 1 else "distance"
    p_value, drifted = float(p_values[largest]), effect >= settings.distribution
    drifted &= p_value < settings.level
    return DriftTest(name, f"Kolmogorov–Smirnov, {words}", p_value, effect, drifted)


def count_drift(
    name: str, before: Counts, after: Counts, large: float, settings: DriftSettings
) -> DriftTest:
    """Counts of categories, of shape (C,), by the chi-square test on those that either has; the
    effect is the total variation of the shares."""
    table = np.stack([before, after])
    table = table[:, table.sum(axis=0) > 0]
    is_some = table.shape[1] > 1 and table.sum(axis=1).all()
    p_value = float(chi2_contingency(table).pvalue) if is_some else 1.0
    shares = (before / max(1, before.sum()), after / max(1, after.sum()))
    effect = float(np.abs(shares[0] - shares[1]).sum() / 2)
    drifted = p_value < settings.level and effect >= large
    return DriftTest(name, "chi-square, total variation", p_value, effect, drifted)
