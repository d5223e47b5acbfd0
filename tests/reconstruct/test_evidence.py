"""Evidence by hand on small graphs, and the honesty of cross-fitting: no layer knows a label that
its set leaves out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from small_graphs import PATH, rows_of, small_scene

from graphkeel.graph.propagate.rowwise import rowwise
from graphkeel.graph.ridge import RidgeSettings
from graphkeel.graph.rows import log_rows, softmax
from graphkeel.reconstruct.evidence import (
    EvidenceSettings,
    LabelSets,
    first_evidence,
    nearest_mean,
    pseudo_labels,
    second_evidence,
    tempered,
)
from graphkeel.reconstruct.scene import Scene

ROOT6 = 6**-0.5
ONE_STEP = EvidenceSettings(steps=1)
ONE_RIDGE = EvidenceSettings(ridge=RidgeSettings(strengths=(0.1,), sharpness=(5.0,)))


def sets(nodes, classes, n_classes, used=None) -> LabelSets:
    nodes = np.asarray(nodes, dtype=np.int64)
    used = np.ones((1, len(nodes)), bool) if used is None else np.asarray(used, bool)
    return LabelSets(nodes, np.asarray(classes, dtype=np.int64), used, n_classes)


def path_scene(x=None) -> Scene:
    """0 - 1 - 2; the model says class 0, undecided, class 1."""
    x = rows_of([1, 0], [1, 1], [0, 1]) if x is None else x
    return Scene(rows_of([2, 0], [0, 0], [0, 2]), x, PATH.numpy())


# ---- labels, the model


def test_labels_spread_by_hand() -> None:
    """One step: Z = 0.9·Ŝv + 0.1·v, from class 0 at node 0 and class 1 at node 2."""
    found = dict(first_evidence(path_scene(), sets([0, 2], [0, 1], 2), ONE_STEP))
    near = np.array([[0.55, 0.0], [0.9 * ROOT6, 0.9 * ROOT6], [0.0, 0.55]])
    expected = log_rows(near + ONE_STEP.floor)
    np.testing.assert_allclose(found["labels"][:, 0], expected, rtol=1e-4)


def test_balanced_labels_count_classes_alike() -> None:
    """Class 0 has two labels, at 0 and 1, class 1 one, at 2: both are made of one size."""
    found = dict(first_evidence(path_scene(), sets([0, 1, 2], [0, 0, 1], 2), ONE_STEP))
    side = 0.9 * ROOT6
    near = np.array([[0.55 + side, 0.0], [0.4 + side, side], [side, 0.55]])
    sizes = near.sum(axis=0)
    expected = log_rows(near * sizes.mean() / sizes + ONE_STEP.floor)
    np.testing.assert_allclose(found["labels="][:, 0], expected, rtol=1e-3)


def test_the_models_answer_is_its_log_softmax_for_every_set() -> None:
    scene = path_scene()
    labels = sets([0, 2], [0, 1], 2, used=[[True, False], [False, True], [True, True]])
    found = dict(first_evidence(scene, labels, EvidenceSettings()))
    expected = log_softmax(scene.logits, axis=1)
    for layer in range(3):
        np.testing.assert_allclose(found["model"][:, layer], expected, rtol=1e-5)
    smoothed = scene.spread(np.exp(expected).astype(np.float32))
    np.testing.assert_allclose(found["model~"][:, 0], log_rows(smoothed), rtol=1e-4, atol=1e-6)


def test_without_labels_the_model_is_the_only_witness() -> None:
    found = dict(first_evidence(path_scene(), sets([], [], 2), EvidenceSettings()))
    assert list(found) == ["model", "model~"]


# ---- features


def test_class_means_by_hand() -> None:
    """Nodes at -2, -1, 1, 2; the outer ones are labelled, and one more member of each class is
    taken to lie at the centre: means -1 and 1, mean squared distance 7/2."""
    x = rows_of([-2], [-1], [1], [2])
    found = nearest_mean(x, x[[0, 3]], np.eye(2, dtype=np.float32)[:, None], sharpness=10.0)
    distance = np.array([[1, 9], [0, 4], [4, 0], [9, 1]])
    expected = log_rows(softmax(-10.0 * distance / 3.5))
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4, atol=1e-6)


def test_members_of_weight_two_count_twice() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 3)).astype(np.float32)
    members = np.eye(2, dtype=np.float32)[np.arange(20) % 2]
    heavier = members * (1 + (np.arange(20) < 5))[:, None]
    twice = np.concatenate([np.arange(20), np.arange(5)])
    weighted = nearest_mean(x, x, heavier[:, None].astype(np.float32), sharpness=10.0)
    repeated = nearest_mean(x, x[twice], members[twice][:, None], sharpness=10.0)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-3, atol=1e-4)


# ---- the second round


def test_pseudo_labels_are_the_surest_of_each_class() -> None:
    sure = np.array([0.95, 0.9, 0.85, 0.8, 0.75, 0.55, 0.3, 0.1], dtype=np.float32)
    posterior = np.stack([sure, 1 - sure], axis=1)[:, None]
    labels = sets([7], [0], 2)  # what is known, against the posterior
    made = pseudo_labels(labels, posterior, EvidenceSettings(share=0.5, at_least=1))
    found = rowwise(*made)[:, 0]
    assert found[:3, 0].tolist() == [1, 1, 1]  # three of the six of class 0
    assert found[3:6].sum() == 0
    assert found[6].tolist() == [0, 1]  # of one there is one
    assert found[7].tolist() == [1, 0]  # a label stands
    made = pseudo_labels(labels, posterior, EvidenceSettings(share=0.1, at_least=2))
    at_least = rowwise(*made)[:, 0]
    assert np.flatnonzero(at_least[:, 0]).tolist() == [0, 1, 7]


def test_pseudo_labels_spread_with_classes_of_one_size() -> None:
    scene = path_scene()
    posterior = np.array([[[0.9, 0.1]], [[0.75, 0.25]], [[0.2, 0.8]]], dtype=np.float32)
    settings = EvidenceSettings(steps=1, share=1.0)
    found = dict(second_evidence(scene, sets([], [], 2), posterior, settings))
    side = 0.9 * ROOT6  # from nodes 0 and 1, and from node 2
    near = np.array([[0.55 + side, 0.0], [0.4 + side, side], [side, 0.55]])
    sizes = near.sum(axis=0)
    alike = log_rows((near * sizes.mean() / sizes + settings.floor).astype(np.float32))
    expected = tempered(alike[:, None], posterior, settings)
    np.testing.assert_allclose(found["pseudo-labels="], expected, rtol=1e-3, atol=1e-4)


def test_soft_members_are_sharpened_and_known_labels_stand() -> None:
    labels = sets([0], [1], 2)
    posterior = np.array([[[0.9, 0.1]], [[0.75, 0.25]], [[0.5, 0.5]]], dtype=np.float32)
    expected = rows_of([0, 1], [0.9, 0.1], [0.5, 0.5])  # 9 : 1 is 3 : 1 squared
    np.testing.assert_allclose(labels.soft(posterior, np.arange(3))[:, 0], expected, rtol=1e-6)


def test_tempering_finds_the_sharpness_that_agrees_best() -> None:
    rng = np.random.default_rng(0)
    plain = log_rows(rng.random((200, 1, 3)).astype(np.float32))
    wanted = np.exp(log_rows(np.exp(2.5 * plain)))
    np.testing.assert_allclose(tempered(plain, wanted, ONE_STEP), log_rows(wanted), atol=1e-3)


def test_evidence_that_does_not_agree_says_nothing() -> None:
    rng = np.random.default_rng(0)
    plain = log_rows(rng.random((4000, 1, 3)).astype(np.float32))
    wanted = np.exp(log_rows(rng.random((4000, 1, 3)).astype(np.float32)))
    assert np.abs(tempered(plain, wanted, ONE_STEP) + np.log(3)).max() < 0.2


# ---- honesty


@given(st.integers(0, 10**6), st.sampled_from([4, 70]))
@settings(max_examples=15, deadline=None)
def test_no_layer_knows_a_label_that_its_set_leaves_out(seed, n_features) -> None:
    """Labels that a set leaves out are flipped: its layers stay the same to the bit.

    The ridge's strength is given: its choice, one of 35, reads all labels."""
    rng = np.random.default_rng(seed)
    scene, y = small_scene(40, n_features, seed=seed % 3)
    nodes = rng.permutation(40)[:14]
    fold = rng.permutation(14) % 3
    used = np.stack([*(fold != part for part in range(3)), np.ones(14, bool)])
    posterior = softmax(rng.normal(size=(40, 4, 3)).astype(np.float32))
    part = int(rng.integers(3))
    changed = np.where(fold == part, rng.integers(0, 3, 14), y[nodes])
    for evidence in (
        lambda labels: first_evidence(scene, labels, ONE_RIDGE),
        lambda labels: second_evidence(scene, labels, posterior, ONE_RIDGE),
    ):
        before = dict(evidence(sets(nodes, y[nodes], 3, used)))
        after = dict(evidence(sets(nodes, changed, 3, used)))
        for name, values in before.items():
            assert np.array_equal(values[:, part], after[name][:, part]), name


def test_a_set_of_labels_gives_what_these_labels_alone_give() -> None:
    scene, y = small_scene(40)
    nodes = np.arange(0, 40, 3)
    used = np.ones((2, len(nodes)), bool)
    used[0, ::2] = False
    both = dict(first_evidence(scene, sets(nodes, y[nodes], 3, used), ONE_RIDGE))
    kept = nodes[used[0]]
    alone = dict(first_evidence(scene, sets(kept, y[kept], 3), ONE_RIDGE))
    for name, values in alone.items():
        if name in ("own", "hops", "hops~", "links"):
            continue  # their strength is in units of all labels' rows; see the ridge's own tests
        np.testing.assert_allclose(both[name][:, 0], values[:, 0], atol=1e-4, err_msg=name)


def test_every_evidence_is_a_distribution() -> None:
    scene, y = small_scene(40)
    labels = sets([0, 5, 9, 20], y[[0, 5, 9, 20]], 3, used=[[True, True, False, True], [True] * 4])
    posterior = softmax(np.zeros((40, 2, 3), np.float32))
    found = dict(first_evidence(scene, labels, EvidenceSettings()))
    found |= dict(second_evidence(scene, labels, posterior, EvidenceSettings()))
    for name, values in found.items():
        assert values.shape == (40, 2, 3)
        np.testing.assert_allclose(np.exp(values).sum(axis=2), 1.0, atol=1e-4, err_msg=name)
