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


def feature_drift(before: Array, after: Array, settings: DriftSettings) -> DriftTest:
    """Each feature, of shapes (m, d) and (k, d), by the two-sample Kolmogorov–Smirnov test;
    p-values by Benjamini and Hochberg. The effect is the largest distance of a feature."""
    found = ks_2samp(before, after, axis=0, method="asymp")
    p_values = false_discovery_control(np.atleast_1d(found.pvalue))
    sizes = np.atleast_1d(found.statistic)
    largest = int(sizes.argmax())
    some = sizes[p_values < settings.level]
    return _judged(
        "features",
        f"Kolmogorov–Smirnov, largest distance of {len(sizes)} features",
        float(p_values[largest]),
        float(some.max()) if len(some) else float(sizes[largest]),
        settings.distribution,
        settings,
    )


def confidence_drift(before: Array, after: Array, settings: DriftSettings) -> DriftTest:
    """The frozen model's confidence, of shapes (m,) and (k,), by the two-sample Kolmogorov–Smirnov
    test."""
    found = ks_2samp(before, after, method="asymp")
    return _judged(
        "confidence",
        "Kolmogorov–Smirnov, distance",
        float(found.pvalue),
        float(found.statistic),
        settings.distribution,
        settings,
    )


def share_drift(before: Counts, after: Counts, settings: DriftSettings) -> DriftTest:
    """Shares of the answered classes, nodes of each of shape (C,), by the chi-square test."""
    words = "chi-square, total variation"
    return _counted("class shares", words, before, after, settings.shares, settings)


def homophily_drift(before: Counts, after: Counts, settings: DriftSettings) -> DriftTest:
    """Edges within a class and between two, shape (2,), by the chi-square test."""
    words = "chi-square, difference of shares"
    return _counted("homophily", words, before, after, settings.homophily, settings)


def _counted(
    name: str, test: str, before: Counts, after: Counts, large: float, settings: DriftSettings
) -> DriftTest:
    """By the chi-square test on categories that either has; the effect is the total variation."""
    table = np.stack([before, after])
    table = table[:, table.sum(axis=0) > 0]
    is_some = table.shape[1] > 1 and table.sum(axis=1).all()
    p_value = float(chi2_contingency(table).pvalue) if is_some else 1.0
    effect = np.abs(before / max(1, before.sum()) - after / max(1, after.sum())).sum() / 2
    return _judged(name, test, p_value, float(effect), large, settings)


def _judged(
    name: str, test: str, p_value: float, effect: float, large: float, settings: DriftSettings
) -> DriftTest:
    return DriftTest(name, test, p_value, effect, p_value < settings.level and effect >= large)
