"""The ridge probe against fits without the fold, written out, and each label left out in turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.linear_model import Ridge

from graphkeel.graph.label_sets import LabelSets
from graphkeel.graph.propagate.view import View
from graphkeel.graph.ridge import RidgeSettings, ridge_probe, soft_ridge

STRENGTH, SHARP = 0.1, 5.0
FIXED = RidgeSettings(strengths=(STRENGTH,), sharpness=(SHARP,))


def problem(width: int, n_labels: int = 18, n_nodes: int = 40):
    """Narrow and wide features, labels of three classes, three folds and all."""
    rng = np.random.default_rng(width)
    x = rng.normal(size=(n_nodes, width)).astype(np.float32)
    nodes = rng.permutation(n_nodes)[:n_labels]
    classes = rng.integers(0, 3, n_labels)
    x[nodes, classes] += 1.5
    fold = np.arange(n_labels) % 3
    used = np.stack([*(fold != part for part in range(3)), np.ones(n_labels, bool)])
    return x, LabelSets(nodes, classes, used, 3)


def scale_of(x: np.ndarray, labels: LabelSets) -> float:
    return float((x[labels.nodes].astype(float) ** 2).sum(axis=1).mean())


def fitted_without(x: np.ndarray, labels: LabelSets, used: np.ndarray, ridge: float) -> np.ndarray:
    """Memberships of all nodes by scikit-learn's ridge on these labels."""
    one_hot = np.eye(3)[labels.classes]
    centre = (one_hot[used].sum(axis=0) + 1 / 3) / (used.sum() + 1)
    model = Ridge(alpha=ridge, fit_intercept=False)
    model.fit(x[labels.nodes[used]].astype(float), one_hot[used] - centre)
    return model.predict(x.astype(float)) + centre


@pytest.mark.parametrize("width", [4, 30])
def test_every_layer_is_a_fresh_fit_without_its_fold(width) -> None:
    x, labels = problem(width)
    found = ridge_probe([View(x)], labels, FIXED)
    for layer, used in enumerate(labels.used):
        fresh = fitted_without(x, labels, used, STRENGTH * scale_of(x, labels))
        np.testing.assert_allclose(found[:, layer], softmax(SHARP * fresh, axis=1), atol=1e-4)


@pytest.mark.parametrize("width", [4, 30])
def test_the_strength_is_the_likeliest_with_each_label_left_out(width) -> None:
    """By brute force: L fits for every strength; targets are centred once, for all."""
    x, labels = problem(width)
    settings = RidgeSettings()
    rows = x[labels.nodes].astype(float)
    one_hot = np.eye(3)[labels.classes]
    centre = one_hot.mean(axis=0)
    likelihood = {}
    for strength in settings.strengths:
        ridge = Ridge(alpha=strength * scale_of(x, labels), fit_intercept=False)
        left_out = np.stack(
            [
                ridge.fit(np.delete(rows, i, 0), np.delete(one_hot - centre, i, 0)).predict(
                    [rows[i]]
                )[0]
                for i in range(len(rows))
            ]
        )
        for sharp in settings.sharpness:
            said = log_softmax(sharp * (left_out + centre), axis=1)
            likelihood[strength, sharp] = float((one_hot * said).sum())
    strength, sharp = max(likelihood, key=likelihood.get)
    chosen = RidgeSettings(strengths=(strength,), sharpness=(sharp,))
    found = ridge_probe([View(x)], labels, settings)
    np.testing.assert_array_equal(found, ridge_probe([View(x)], labels, chosen))


def test_views_are_summed_and_hops_are_walked() -> None:
    """The Gram matrix of two views is that of their columns side by side."""
    from graphkeel.graph.propagate.adjacency import normalise

    x, labels = problem(4)
    edges = np.random.default_rng(0).integers(0, 40, (2, 80))
    matrix = normalise(edges, 40)
    views = [View(x), View(x, matrix, 2)]
    written = np.concatenate([x, matrix @ (matrix @ x)], axis=1).astype(np.float32)
    found = ridge_probe(views, labels, FIXED)
    np.testing.assert_allclose(found, ridge_probe([View(written)], labels, FIXED), atol=1e-5)


def test_features_that_are_all_zero_leave_the_share_of_labels() -> None:
    _, labels = problem(4)
    found = ridge_probe([View(np.zeros((40, 4), np.float32))], labels, FIXED)
    assert np.isfinite(found).all()
    assert np.ptp(found, axis=0).max() < 1e-6  # the same for all nodes


def test_of_very_many_labels_some_are_used() -> None:
    """A decomposition costs their cube."""
    x, labels = problem(4)
    few = ridge_probe([View(x)], labels, replace(FIXED, most=9))
    assert few.shape == (40, 4, 3)
    assert not np.array_equal(few, ridge_probe([View(x)], labels, FIXED))
    assert np.array_equal(few, ridge_probe([View(x)], labels, replace(FIXED, most=9)))
    enough = ridge_probe([View(x)], labels, replace(FIXED, most=18))
    assert np.array_equal(enough, ridge_probe([View(x)], labels, FIXED))


def test_soft_members_are_regressed_as_scikit_learn_does() -> None:
    """Two sets of memberships at half of the nodes, said of all."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 6)).astype(np.float32)
    nodes = np.arange(0, 40, 2)
    members = rng.dirichlet(np.ones(3), size=(20, 2)).astype(np.float32)
    found = soft_ridge(x, nodes, members, strength=0.5)
    rows = x[nodes].astype(float)
    model = Ridge(alpha=0.5 * (rows**2).sum() / 20, fit_intercept=False)
    for layer in range(2):
        centre = members[:, layer].mean(axis=0)
        model.fit(rows, members[:, layer] - centre)
        np.testing.assert_allclose(found[:, layer], model.predict(x) + centre, atol=1e-5)
