"""The tests of drift: as SciPy has them, quiet without drift, and quiet about small effects."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp

from graphkeel.core.statistics import wilson
from graphkeel.monitor.advice import ACTIONS, Prices, advise
from graphkeel.monitor.drift import DriftSettings, DriftTest, count_drift, sample_drift

SETTINGS = DriftSettings()


def feature_drift(before: np.ndarray, after: np.ndarray) -> DriftTest:
    return sample_drift("features", before, after, SETTINGS)


def share_drift(*counts: list[int]) -> DriftTest:
    return count_drift("class shares", *map(np.array, counts), SETTINGS.shares, SETTINGS)


def draws(seed: int, rows: int, moved: float = 0.0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(rows, 30)).astype(np.float32)
    x[:, 4] += moved
    return x


def test_one_feature_of_thirty_that_moves_is_found() -> None:
    found = feature_drift(draws(0, 800), draws(1, 800, moved=1.0))
    assert found.drifted
    assert found.effect == pytest.approx(ks_2samp(draws(0, 800)[:, 4], draws(1, 800, 1.0)[:, 4])[0])


def test_without_drift_it_stays_quiet() -> None:
    alarms = [feature_drift(draws(2 * i, 300), draws(2 * i + 1, 300)) for i in range(100)]
    assert sum(one.drifted for one in alarms) <= 3
    assert sum(one.p_value < 0.01 for one in alarms) <= 5, "corrected for thirty features"


def test_on_a_large_graph_a_small_difference_is_significant_and_no_drift() -> None:
    before = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    found = feature_drift(before[:, None], before[::-1, None] + 0.05)
    assert found.p_value < 1e-20
    assert not found.drifted


def test_class_shares() -> None:
    found = share_drift([50, 50, 0], [80, 20, 0])
    assert found.effect == pytest.approx(0.3)
    assert found.drifted
    assert not share_drift([5, 5], [7, 3]).drifted, "too few"
    assert not share_drift([50_000, 50_000], [51_000, 49_000]).drifted
    assert share_drift([9, 0], [9, 0]).p_value == 1.0


def test_homophily() -> None:
    found = share_drift([80, 20], [500, 500])
    assert found.effect == pytest.approx(0.3)
    assert found.drifted
    assert share_drift([0, 0], [0, 0]).effect == 0


@pytest.mark.parametrize(
    ("after", "action"),
    [
        ((90.0, 90.2, 91.0, 91.0), "nothing"),
        ((90.0, 90.3, 91.0, 91.0), "update"),
        ((60.0, 80.0, 81.7, 84.0), "update"),
        ((60.0, 80.0, 81.8, 84.0), "label"),
        ((60.0, 62.0, 64.0, 75.0), "retrain"),
        ((90.0, 70.0, 91.0, 91.0), "nothing"),
    ],
)
def test_the_advice_is_the_step_that_leaves_most_after_its_price(after, action) -> None:
    found, reason = advise(dict(zip(ACTIONS, after, strict=True)), Prices())
    assert found == action
    assert ("price" in reason) and (action == "nothing" or "points" in reason)


def test_prices_are_the_users() -> None:
    after = dict(zip(ACTIONS, (80.0, 82.0, 83.0, 85.0), strict=True))
    told = {
        price: advise(after, Prices(*price))[0] for price in ((3, 4, 9), (1, 1.5, 9), (1, 3, 4))
    }
    assert told == {(3, 4, 9): "nothing", (1, 1.5, 9): "label", (1, 3, 4): "update"}


def test_the_interval_is_that_of_a_few_labels() -> None:
    interval = binomtest(36, 45).proportion_ci(0.9, method="wilson")
    assert wilson(0.8, 45.0, 0.9) == pytest.approx((interval.low, interval.high))
    low, high = wilson(1.0, 45.0, 0.9)
    assert 0.9 < low < high == 1.0
