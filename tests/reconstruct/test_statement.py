"""Statements cover as often as they say: intervals, prediction sets, the expected accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from graphkeel.core.errors import ConfigError
from graphkeel.graph.rows import expected_accuracy
from graphkeel.reconstruct.statement import (
    StatementSettings,
    allowed_margin,
    approximate_statement,
    exact_statement,
    margins_behind,
)

SETTINGS = StatementSettings()


def draw(rng: np.random.Generator, n: int, right: float) -> np.ndarray:
    return rng.random(n) < right


def test_with_very_many_nodes_the_interval_is_wilsons():
    correct = np.arange(50) < 40
    statement = approximate_statement(correct, correct)
    wilson = binomtest(40, 50).proportion_ci(0.9, method="wilson")
    assert statement.accuracy == pytest.approx(80.0)
    assert statement.accuracy_low == pytest.approx(100 * wilson.low)
    assert statement.accuracy_high == pytest.approx(100 * wilson.high)


def test_as_many_nodes_as_labels_count_like_half_the_labels():
    correct = np.arange(100) < 80
    half = approximate_statement(np.arange(50) < 40, np.arange(50) < 40)
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
        truth = 100 * float(after[n:].mean())
        gain = truth - 100 * float(before[n:].mean())
        covered["accuracy"] += said.accuracy_low <= truth <= said.accuracy_high
        covered["gain"] += said.gain_low <= gain <= said.gain_high
    for name, count in covered.items():
        assert 0.87 <= count / rounds <= 0.94, name


@pytest.mark.parametrize("n", [3, 10, 60])
def test_exact_bounds_hold_for_every_sample_size(n):
    rng = np.random.default_rng(n)
    rounds = 200
    covered = {"accuracy": 0, "gain": 0}
    for _ in range(rounds):
        said = exact_statement(draw(rng, n, 0.7), draw(rng, n, 0.6))
        covered["accuracy"] += said.accuracy_low <= 70.0 <= said.accuracy_high
        covered["gain"] += said.gain_low <= 10.0 <= said.gain_high
    assert min(covered.values()) / rounds >= 0.9
    assert said.exact


def test_no_label_makes_no_statement():
    nobody = np.zeros(0, bool)
    assert approximate_statement(nobody, nobody) is None
    assert exact_statement(nobody, nobody) is None


@pytest.mark.parametrize("right", [0, 1, 5])
def test_intervals_stay_within_what_is_possible(right):
    correct = np.arange(5) < right
    for said in (
        approximate_statement(correct, ~correct, n_predicted=3, served=0.8),
        exact_statement(correct, ~correct),
    ):
        assert 0.0 <= said.accuracy_low <= said.accuracy <= said.accuracy_high <= 100.0
        assert -100.0 <= said.gain_low <= said.gain <= said.gain_high <= 100.0


def test_features_from_all_labels_err_less_than_those_that_were_judged():
    correct = np.arange(100) < 80
    base = np.arange(100) < 70
    judged = approximate_statement(correct, base)
    shipped = approximate_statement(correct, base, served=0.8)
    errors_left = 0.8**SETTINGS.learning
    assert shipped.accuracy == pytest.approx(100.0 - 20.0 * errors_left)
    assert shipped.gain - judged.gain == pytest.approx(shipped.accuracy - judged.accuracy)
    assert shipped.gain_low < shipped.gain < shipped.gain_high


def test_labels_that_serve_and_judge_have_wider_intervals():
    correct = np.arange(200) < 160
    base = np.arange(200) < 140
    fresh, used = (approximate_statement(correct, base, served=s) for s in (1.0, 1.0 - 1e-12))
    lengths = [one.accuracy_high - one.accuracy_low for one in (fresh, used)]
    assert lengths[1] / lengths[0] == pytest.approx(SETTINGS.cross_fitted, rel=0.03)
    lengths = [one.gain_high - one.gain_low for one in (fresh, used)]
    assert lengths[1] / lengths[0] == pytest.approx(SETTINGS.cross_fitted, rel=0.03)


# ---- prediction sets


def test_margins_by_hand():
    scores = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, -1.0]], dtype=np.float32)
    assert margins_behind(scores).tolist() == [[-1.0, 2.0, 1.0], [0.0, 0.0, 1.0]]


def test_the_allowed_margin_is_a_rank():
    """Margins -3, -2, -1, 0, 1, …: of 19, the 18th smallest holds 90 % of 20."""
    own = np.arange(19, dtype=np.float32) - 3
    scores = np.stack([-own, np.zeros(19)], axis=1)
    classes = np.zeros(19, np.int64)
    assert allowed_margin(scores, classes, 0.9) == own[17]
    assert allowed_margin(scores, classes, 0.95) == own[18]
    assert allowed_margin(scores, classes, 0.96) == np.inf


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, 2.0])
def test_coverage_lies_between(coverage):
    with pytest.raises(ConfigError, match="strictly between 0 and 1"):
        allowed_margin(np.zeros((3, 2)), np.zeros(3, np.int64), coverage)


@pytest.mark.parametrize(("n", "coverage"), [(20, 0.8), (50, 0.9), (300, 0.95)])
def test_sets_hold_the_true_class_as_often_as_asked(n, coverage):
    """Whatever the scores mean: exchangeable labels and nodes are all it takes."""
    rng = np.random.default_rng(n)
    held = []
    for _ in range(300):
        classes = rng.integers(0, 4, n + 50)
        scores = rng.normal(size=(n + 50, 4)) + np.eye(4)[classes]
        allowed = allowed_margin(scores[:n], classes[:n], coverage)
        sets = margins_behind(scores[n:]) <= allowed
        held.append(sets[np.arange(50), classes[n:]].mean())
    assert coverage - 0.01 <= np.mean(held) <= coverage + 1 / (n + 1) + 0.01


# ---- without labels


def test_the_expected_accuracy_is_the_mean_of_the_largest():
    posterior = np.array([[0.9, 0.1], [0.4, 0.6]])
    assert expected_accuracy(posterior) == pytest.approx(75.0)
