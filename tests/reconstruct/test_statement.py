"""What is stated of a choice covers as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from graphkeel.reconstruct.guard.statement import (
    CROSS_FITTED,
    CROSS_FITTED_GAIN,
    LEARNING,
    approximate_statement,
    exact_statement,
)


def draw(rng: np.random.Generator, n: int, right: float) -> torch.Tensor:
    return torch.from_numpy(rng.random(n) < right)


def test_with_very_many_nodes_the_interval_is_wilsons():
    correct = torch.arange(50) < 40
    statement = approximate_statement(correct, correct)
    wilson = binomtest(40, 50).proportion_ci(0.9, method="wilson")
    assert statement.accuracy == pytest.approx(80.0)
    assert statement.accuracy_low == pytest.approx(100 * wilson.low)
    assert statement.accuracy_high == pytest.approx(100 * wilson.high)


def test_as_many_nodes_as_labels_count_like_half_the_labels():
    correct = torch.arange(100) < 80
    half = approximate_statement(torch.arange(50) < 40, torch.arange(50) < 40)
    both = approximate_statement(correct, correct, n_predicted=100)
    assert both.accuracy_low == pytest.approx(half.accuracy_low)
    assert both.n_labels == 100


@pytest.mark.parametrize(("n", "m"), [(20, 2000), (100, 500), (500, 500)])
def test_intervals_cover_nine_times_in_ten(n, m):
    rng = np.random.default_rng(n + m)
    covered = {"accuracy": 0, "gain": 0}
    rounds = 1000
    for _ in range(rounds):
        before, after = draw(rng, n + m, 0.65), draw(rng, n + m, 0.75)
        said = approximate_statement(after[:n], before[:n], n_predicted=m)
        truth = 100 * float(after[n:].double().mean())
        gain = truth - 100 * float(before[n:].double().mean())
        covered["accuracy"] += said.accuracy_low <= truth <= said.accuracy_high
        covered["gain"] += said.gain_low <= gain <= said.gain_high
    for name, count in covered.items():
        assert 0.87 <= count / rounds <= 0.94, name


def test_exact_bounds_hold_for_small_samples():
    rng = np.random.default_rng(0)
    rounds = 200
    covered = 0
    for _ in range(rounds):
        after = draw(rng, 10, 0.7)
        said = exact_statement(after, draw(rng, 10, 0.6))
        covered += said.accuracy_low <= 70.0 <= said.accuracy_high
    assert covered / rounds >= 0.9


def test_features_from_all_labels_err_less_than_those_that_were_judged():
    correct = torch.arange(100) < 80
    base = torch.arange(100) < 70
    judged = approximate_statement(correct, base)
    shipped = approximate_statement(correct, base, served=0.8)
    errors_left = 0.8**LEARNING
    assert shipped.accuracy == pytest.approx(100.0 - 20.0 * errors_left)
    assert shipped.gain - judged.gain == pytest.approx(shipped.accuracy - judged.accuracy)
    assert shipped.gain_low < shipped.gain < shipped.gain_high


def test_labels_that_serve_and_judge_have_wider_intervals():
    correct = torch.arange(200) < 160
    base = torch.arange(200) < 140
    fresh, used = (approximate_statement(correct, base, served=s) for s in (1.0, 1.0 - 1e-12))
    lengths = [one.accuracy_high - one.accuracy_low for one in (fresh, used)]
    assert lengths[1] / lengths[0] == pytest.approx(CROSS_FITTED, rel=0.03)
    lengths = [one.gain_high - one.gain_low for one in (fresh, used)]
    assert lengths[1] / lengths[0] == pytest.approx(CROSS_FITTED_GAIN, rel=0.03)
