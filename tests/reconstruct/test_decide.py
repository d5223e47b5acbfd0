"""The decision: honest where labels judge it, sane where there is hardly anything to go by."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import known, rows_of, small_scene

from graphkeel.graph.ridge import RidgeSettings
from graphkeel.reconstruct.decide import (
    DecideSettings,
    Known,
    decide,
    decide_again,
    neighbour_agreement,
    prior_corners,
    prior_weights,
)
from graphkeel.reconstruct.evidence import EvidenceSettings
from graphkeel.reconstruct.pool import PoolSettings
from graphkeel.reconstruct.scene import Scene

FIXED = DecideSettings(
    seen_edges=10**9,
    pool=PoolSettings(pull=1e9),
    evidence=EvidenceSettings(ridge=RidgeSettings(strengths=(0.1,), sharpness=(5.0,))),
)


# ---- the labels


@given(st.integers(0, 30), st.integers(0, 10), st.integers(1, 6), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_every_judging_label_is_judged_by_a_set_without_it(n_judging, n_trained, folds, seed):
    n = n_judging + n_trained
    judging = np.arange(n) >= n_trained
    labels = known(np.arange(n), np.zeros(n), 2, judging=judging)
    sets, judged_by = labels.sets(folds, seed)
    assert sets.used[-1].all()
    assert sets.used[:, :n_trained].all()  # what the model was trained on always serves
    for place, part in zip(np.flatnonzero(judging), judged_by, strict=True):
        assert not sets.used[part, place] or part == len(sets.used) - 1 == 0
    assert not sets.used[:-1].all(axis=1).any() or not n_judging


def test_labels_that_only_judge_serve_nothing() -> None:
    labels = known(
        [3, 5, 7], [0, 1, 1], 2, judging=np.array([False, True, True]), cross_fitted=False
    )
    sets, judged_by = labels.sets(5, 0)
    assert sets.nodes.tolist() == [3]
    assert judged_by.tolist() == [0, 0]


# ---- honesty


def flipped(labels: Known, place: int) -> Known:
    classes = labels.classes.copy()
    classes[place] = (classes[place] + 1) % labels.n_classes
    return replace(labels, classes=classes)


@pytest.mark.parametrize("place", [0, 7, 19])
def test_a_label_has_no_part_in_the_answer_that_it_judges(place) -> None:
    """With weights and strengths given, which all labels choose, its row stays what it was, also
    by way of the second round."""
    scene, y = small_scene()
    nodes = np.arange(0, 60, 3)
    labels = known(nodes, y[nodes], 3)
    before = decide(scene, labels, settings=FIXED)
    after = decide(scene, flipped(labels, place), settings=FIXED)
    np.testing.assert_allclose(after.held[place], before.held[place], atol=1e-4)
    assert np.abs(after.held - before.held).max() > 1e-3  # others have heard of it


def test_nor_where_labels_only_judge() -> None:
    scene, y = small_scene()
    nodes = np.arange(0, 60, 3)
    labels = known(nodes, y[nodes], 3, judging=np.arange(20) >= 8, cross_fitted=False)
    before = decide(scene, labels, settings=FIXED)
    after = decide(scene, flipped(labels, 10), settings=FIXED)
    np.testing.assert_allclose(after.held[2], before.held[2], atol=1e-5)
    assert before.held.shape == (12, 3)


def test_random_labels_are_not_found_to_be_predictable() -> None:
    """With all that is chosen by labels (weights, strengths, rounds), held answers are no better
    than chance on labels that mean nothing."""
    scene, _ = small_scene(150)
    right = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        labels = known(np.arange(0, 150, 2), rng.integers(0, 3, 75), 3)
        held = decide(scene, labels, seed=seed).held
        right.append((held.argmax(axis=1) == labels.classes).mean())
    assert np.mean(right) < 1 / 3 + 0.06  # three standard errors


# ---- what weights say


def test_evidence_that_leans_on_neighbours_gets_no_weight_where_these_differ() -> None:
    """A ring whose neighbours always differ; features tell the classes."""
    n = 240
    y = np.arange(n) % 2
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    rng = np.random.default_rng(0)
    x = (np.eye(2)[y] + 0.4 * rng.normal(size=(n, 2))).astype(np.float32)
    scene = Scene(rng.normal(size=(n, 2)).astype(np.float32), x, ring)
    nodes = np.arange(n // 2)
    found = decide(scene, known(nodes, y[nodes], 2))
    assert found.agreement == pytest.approx(-1.0, abs=0.02)
    names = ("labels", "labels=", "model~", "means~", "soft means~")
    leaning = sum(found.weights[name] for name in names)
    assert leaning < 0.1 * sum(found.weights.values())
    assert (found.scores.argmax(axis=1) == y).mean() > 0.85


def test_a_source_can_be_left_out() -> None:
    scene, y = small_scene()
    for labels in (known(range(9), y[:9], 3), known([], [], 3)):
        found = decide(scene, labels, without=("model", "model~"))
        assert not {"model", "model~"} & set(found.weights)
        assert np.isfinite(found.posterior).all() and found.posterior.shape == (60, 3)


# ---- agreement and prior


def test_agreement_is_beyond_chance() -> None:
    pairs = np.array([[0, 2], [1, 3]])
    scene = Scene(rows_of([1, 0], [1, 0], [0, 1], [0, 1]), np.zeros((4, 1), np.float32), pairs)
    nobody = known([], [], 2)
    assert neighbour_agreement(scene, nobody, 20) == pytest.approx(1.0)  # by the model
    crossed = known(range(4), [0, 1, 0, 1], 2)
    assert neighbour_agreement(scene, crossed, 2) == pytest.approx(-1.0)  # by labels
    assert neighbour_agreement(scene, crossed, 3) == pytest.approx(1.0)  # too few to tell
    assert neighbour_agreement(scene, known(range(4), [1] * 4, 2), 1) == 0.0
    alone = Scene(scene.logits, scene.x, np.zeros((2, 0), np.int64))
    assert neighbour_agreement(alone, crossed, 1) == 0.0


@given(st.floats(-1, 1), st.integers(0, 10**6))
def test_corners_of_the_prior_share_one(agreement, n_labels) -> None:
    shares = prior_corners(agreement, n_labels, DecideSettings())
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= 0.0
    for weights in prior_weights(agreement, n_labels, DecideSettings()):
        assert min(weights.values()) >= 0.0


def test_labels_the_model_was_trained_on_count_for_more_and_judges_only_where_they_serve() -> None:
    crossed = Known(np.arange(5), np.zeros(5, int), np.arange(5) >= 3, 2)
    assert crossed.count(trained=3.0) == 3 * 3 + 2
    assert replace(crossed, cross_fitted=False).count(trained=3.0) == 3 * 3


def test_each_round_has_its_own_prior() -> None:
    """Half way in agreement and in labels, all four corners count alike."""
    settings = DecideSettings(homophilous=0.6, heterophilous=0.2, half=10)
    stored = json.loads(files("graphkeel.reconstruct").joinpath("prior.json").read_text())["rounds"]
    found = prior_weights(0.4, 10, settings)
    assert len(found) == len(stored) == 3
    assert found[0] != found[1] != found[2]
    for weights, corners in zip(found, stored, strict=True):
        for name, weight in weights.items():
            assert weight == pytest.approx(sum(c.get(name, 0.0) for c in corners.values()) / 4)
    first = prior_weights(0.7, 10**9, settings)[0]
    named = {name: weight for name, weight in first.items() if weight > 1e-9}
    assert named == pytest.approx(stored[0]["homophilous, many labels"])


def test_the_prior_names_sources_that_its_round_has() -> None:
    scene, y = small_scene()
    found = decide(scene, known(range(9), y[:9], 3))
    priors = prior_weights(0.4, 3, DecideSettings())
    for prior, chosen in zip(priors, found.rounds, strict=True):
        assert set(prior) <= set(chosen.weights)
    assert not any(name.startswith(("soft", "pseudo")) for name in priors[0])


def test_without_labels_the_prior_is_what_counts() -> None:
    scene, _ = small_scene()
    found = decide(scene, known([], [], 3))
    expected = prior_weights(found.agreement, 0.0, DecideSettings())
    assert found.held.shape == (0, 3)
    for prior, chosen in zip(expected, found.rounds, strict=True):
        assert chosen.weights == {name: prior.get(name, 0.0) for name in chosen.weights}
    assert found.offsets.tolist() == [0.0, 0.0, 0.0]


# ---- hardly anything to go by


def odd(name: str) -> tuple[Scene, Known]:  # noqa: C901 - a list of cases
    """A scene of thirty nodes, spoilt in one way."""
    rng = np.random.default_rng(0)
    n = 2 if name == "two nodes" else 30
    y = np.arange(n) % 3
    x = rng.normal(size=(n, 4)).astype(np.float32)
    edges = rng.integers(0, n, (2, 40))
    nodes = np.arange(0, n, 2)
    if name == "no label":
        nodes = nodes[:0]
    if name == "one label":
        nodes = nodes[:1]
    if name == "two labels":
        nodes = nodes[:2]
    if name == "one class":
        y = np.zeros(n, int)
    if name == "a class without a label":
        y = y % 2
    if name == "all labelled":
        nodes = np.arange(n)
    if name == "no edge":
        edges = edges[:, :0]
    if name == "isolated nodes":
        edges = edges % 10
    if name == "one edge, one way":
        edges = np.array([[0], [1]])
    if name == "loops and repeats":
        edges = np.zeros((2, 9), np.int64)
    if name == "zero features":
        x = np.zeros_like(x)
    if name == "constant features":
        x = np.full_like(x, 3.0)
    if name == "one feature":
        x = x[:, :1]
    if name == "wide features":
        x = rng.normal(size=(n, 100)).astype(np.float32)
    if name == "huge features":
        x = 1e12 * x
    if name == "tiny features":
        x = 1e-12 * x
    logits = rng.normal(size=(n, 3)).astype(np.float32)
    if name == "sure model":
        logits = 1e4 * logits
    return Scene(logits, x, edges), known(nodes, y[nodes], 3)


ODD = [
    "two nodes",
    "no label",
    "one label",
    "two labels",
    "one class",
    "a class without a label",
    "all labelled",
    "no edge",
    "isolated nodes",
    "loops and repeats",
    "zero features",
    "constant features",
    "one feature",
    "wide features",
    "huge features",
    "tiny features",
    "sure model",
]


@pytest.mark.parametrize("cross_fitted", [True, False])
@pytest.mark.parametrize("name", [*ODD, "one edge, one way"])
def test_hardly_anything_to_go_by(name, cross_fitted) -> None:
    scene, labels = odd(name)
    if not cross_fitted:
        judging = np.arange(len(labels.nodes)) % 2 == 0
        labels = replace(labels, judging=judging, cross_fitted=False)
    found = decide(scene, labels)
    assert found.posterior.shape == (scene.n_nodes, 3)
    assert np.isfinite(found.posterior).all() and np.isfinite(found.held).all()
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1.0, atol=1e-5)
    assert len(found.held) == labels.judging.sum()
    assert min(found.weights.values()) >= 0.0
    again = decide_again(scene, labels, found.rounds)
    np.testing.assert_allclose(again.scores, found.scores, atol=1e-3)


def test_labels_that_mean_nothing_may_leave_no_source_a_weight(monkeypatch) -> None:
    """All weights zero: every node gets the offsets, and none gets lost."""
    scene, y = small_scene()
    nothing = lambda judged, _: (np.zeros(len(judged.prior)), OFF)  # noqa: E731
    monkeypatch.setattr("graphkeel.reconstruct.decide.fit_pool", nothing)
    found = decide(scene, known(range(9), y[:9], 3))
    assert found.scores.shape == (60, 3)
    np.testing.assert_allclose(found.scores, np.broadcast_to(OFF, (60, 3)))


OFF = np.array([0.1, 0.2, -0.3])


# ---- again


@pytest.mark.parametrize("balanced", [False, True])
def test_the_same_weights_decide_the_same(balanced) -> None:
    scene, y = small_scene()
    nodes = np.arange(0, 60, 4)
    labels = known(nodes, y[nodes], 3, judging=np.arange(15) >= 5)
    found = decide(scene, labels, balanced=balanced)
    again = decide_again(scene, labels, found.rounds)
    np.testing.assert_allclose(again.scores, found.scores, atol=1e-4)
    assert again.weights == found.weights


def test_seeds_reproduce_and_folds_depend_on_them() -> None:
    scene, y = small_scene()
    labels = known(range(0, 60, 2), y[::2], 3)
    one, two, other = (decide(scene, labels, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(one.scores, two.scores) and np.array_equal(one.held, two.held)
    assert not np.array_equal(one.held, other.held)


def test_the_order_of_nodes_does_not_matter() -> None:
    scene, y = small_scene()
    labels = known(range(0, 60, 4), y[::4], 3)
    order = np.random.default_rng(0).permutation(60)
    place = np.argsort(order)
    links = scene.matrix.tocoo()
    edges = np.stack([place[links.row], place[links.col]])
    moved = Scene(scene.logits[order], scene.x[order], edges)
    before = decide(scene, labels)
    after = decide(moved, replace(labels, nodes=place[labels.nodes]))
    np.testing.assert_allclose(after.posterior[place], before.posterior, atol=5e-3)


@pytest.fixture(scope="module")
def plain_and_balanced():
    scene, y = small_scene(150, homophily=0.5)
    nodes = np.concatenate([np.flatnonzero(y == c)[:k] for c, k in ((0, 40), (1, 40), (2, 5))])
    labels = known(nodes, y[nodes], 3)
    return [decide(scene, labels, balanced=balanced) for balanced in (False, True)]


def test_balanced_divides_the_posterior_by_its_class_shares(plain_and_balanced) -> None:
    plain, fair = plain_and_balanced
    divided = plain.posterior / plain.posterior.mean(axis=0)
    expected = divided / divided.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fair.posterior, expected, atol=1e-5)
    shift = -np.log(plain.posterior.mean(axis=0))
    np.testing.assert_allclose(fair.held - plain.held, np.tile(shift, (85, 1)), atol=1e-4)
    np.testing.assert_allclose(fair.offsets - plain.offsets, shift, atol=1e-4)
    assert fair.weights == plain.weights
    assert fair.posterior[:, 2].mean() > plain.posterior[:, 2].mean()  # the small class


def test_balanced_answers_maximise_the_expected_balanced_accuracy(plain_and_balanced) -> None:
    """By the plain posterior's account, no node's answer can be changed for the better."""
    plain, fair = plain_and_balanced
    p = plain.posterior.astype(np.float64)

    def expected(answer) -> float:
        return np.mean([p[answer == c, c].sum() / p[:, c].sum() for c in range(3)])

    answer = fair.scores.argmax(axis=1)
    best = expected(answer)
    assert best > expected(plain.scores.argmax(axis=1))
    for node in range(150):
        for other in range(3):
            changed = answer.copy()
            changed[node] = other
            assert expected(changed) <= best + 1e-9
