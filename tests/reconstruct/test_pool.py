"""The pool: one minimum, found and proved by its conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from graphkeel.reconstruct.pool import Judged, PoolSettings, fit_pool, gram, held_out

SETTINGS = PoolSettings(pull=2.0, few=10.0, small=0.0)


def problem(seed: int, n_sources: int = 5, n_labels: int = 40, n_classes: int = 3):
    """Sources from very good to misleading, their labels, and a prior."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n_labels)
    good = np.linspace(2.0, -1.0, n_sources)[:, None, None] * np.eye(n_classes)[classes]
    evidence = log_softmax(good + rng.normal(size=(n_sources, n_labels, n_classes)), axis=2)
    return evidence, classes, rng.random(n_sources)


def fit(evidence, classes, prior, settings=SETTINGS):
    """Weights and offsets; all nodes are those that have a label."""
    parts = np.arange(len(classes)) % 5
    return fit_pool(Judged(evidence, classes, prior, gram(evidence), parts), settings)


def pull_of(n_labels: int) -> float:
    return SETTINGS.pull * (1 + SETTINGS.few / n_labels)


def value(evidence, classes, prior, weights, offsets) -> float:
    """The minimised function, written out."""
    logs = log_softmax(np.tensordot(weights, evidence, 1) + offsets, axis=1)
    away = weights - prior
    moved = away @ gram(evidence) @ away + offsets @ offsets
    return pull_of(len(classes)) * moved - logs[np.arange(len(classes)), classes].sum()


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_the_minimum_satisfies_its_conditions(seed, n_sources, n_labels) -> None:
    """Slope 0 where a weight is positive, none downwards where it is 0."""
    evidence, classes, prior = problem(seed, n_sources, n_labels)
    weights, offsets = fit(evidence, classes, prior)
    assert (weights >= 0).all()
    p = softmax(np.tensordot(weights, evidence, 1) + offsets, axis=1)
    error = p - np.eye(3)[classes]
    slope = np.tensordot(evidence, error, axes=([1, 2], [0, 1]))
    slope += 2 * pull_of(n_labels) * gram(evidence) @ (weights - prior)
    tolerance = 2e-5 * n_labels + 1e-6
    assert np.abs(slope[weights > 0]).max(initial=0.0) <= tolerance
    assert slope[weights == 0].min(initial=0.0) >= -tolerance
    below = error.sum(axis=0) + 2 * pull_of(n_labels) * offsets
    seen = np.bincount(classes, minlength=3) > 0
    assert np.abs(below[seen]).max() <= tolerance
    assert not offsets[~seen].any()  # a class that no label has seen keeps its offset


def test_it_is_the_one_minimum_from_wherever_one_starts() -> None:
    evidence, classes, prior = problem(0)
    weights, offsets = fit(evidence, classes, prior)
    least = value(evidence, classes, prior, weights, offsets)
    rng = np.random.default_rng(1)
    for _ in range(5):
        found = minimize(
            lambda point: value(evidence, classes, prior, point[:5], point[5:]),
            rng.normal(size=8) ** 2,
            method="L-BFGS-B",
            bounds=[(0, None)] * 5 + [(None, None)] * 3,
        )
        assert least <= found.fun + 1e-6
        np.testing.assert_allclose(found.x[:5], weights, atol=5e-3)


def test_where_sources_are_unsure_scores_are_harder_to_move() -> None:
    evidence, classes, prior = problem(0)
    products = gram(evidence)
    size = products.diagonal().mean()
    unsure = replace(SETTINGS, small=3 * size)
    dear = Judged(evidence, classes, prior, 3 * products, np.arange(len(classes)) % 5)
    for found, wanted in zip(
        fit(evidence, classes, prior, unsure), fit_pool(dear, SETTINGS), strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    plain = fit(evidence, classes, prior)[0]
    assert np.array_equal(fit(evidence, classes, prior, replace(SETTINGS, small=size))[0], plain)


def test_it_is_deterministic() -> None:
    one, two = (fit(*problem(3)) for _ in range(2))
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])


def test_without_labels_the_prior_is_the_answer() -> None:
    prior = np.array([0.3, 0.0, 1.2])
    weights, offsets = fit(np.zeros((3, 0, 4)), np.zeros(0, np.int64), prior)
    assert np.array_equal(weights, prior)
    assert np.array_equal(offsets, np.zeros(4))


def test_the_prior_stands_as_firmly_as_it_is_pulled() -> None:
    evidence, classes, prior = problem(0)
    distances = [
        np.abs(fit(evidence, classes, prior, PoolSettings(pull=pull))[0] - prior).max()
        for pull in (0.1, 10.0, 1e3, 1e6)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-4


def test_labels_outweigh_the_prior_as_they_become_more() -> None:
    """A source that misleads and was believed in loses its weight; a good one gets some."""
    prior = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    few = fit(*problem(0, n_labels=3)[:2], prior, PoolSettings())[0]
    many = fit(*problem(0, n_labels=600)[:2], prior, PoolSettings())[0]
    assert few[4] > 0.5 > many[4]
    assert many[4] < 0.05 < 0.3 < many[0]


def test_held_out_scores_are_made_with_the_weights_of_the_other_parts() -> None:
    evidence, classes, prior = problem(4)
    parts = np.arange(40) % 3
    judged = Judged(evidence, classes, prior, gram(evidence), parts)
    found = held_out(judged, SETTINGS)
    for part in range(3):
        weights, offsets = fit_pool(judged.chosen(parts != part), SETTINGS)
        expected = np.tensordot(weights, evidence[:, parts == part], 1) + offsets
        np.testing.assert_allclose(found[parts == part], expected)


def test_offsets_take_up_what_all_sources_have_wrong() -> None:
    """Evidence that says nothing, nine labels of ten of one class."""
    classes = np.array([0] * 90 + [1] * 10)
    evidence = np.full((1, 100, 2), np.log(0.5))
    weights, offsets = fit(evidence, classes, np.array([0.4]), PoolSettings(pull=0.01, few=0.0))
    assert weights == pytest.approx([0.4])
    assert softmax(offsets)[0] == pytest.approx(0.9, abs=0.01)
