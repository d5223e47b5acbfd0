"""Random ReLU features: few features get them, many do not."""

from __future__ import annotations

import numpy as np
import pytest

from graphkeel.graph.features import ReluFeatures, unit_rows
from graphkeel.reconstruct.scene import Scene, SceneSettings

RING = np.stack([np.arange(30), (np.arange(30) + 1) % 30])


def scene(n_features: int, seed: int = 0) -> Scene:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(30, 3)).astype(np.float32)
    x = rng.normal(size=(30, n_features)).astype(np.float32)
    return Scene(logits, x, RING, seed=seed, settings=SceneSettings(units=20))


def test_relu_features_by_hand() -> None:
    """max(0, w·z + b) of standardised inputs, then rows of length one about their mean."""
    x = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 40.0]], np.float32)
    found = ReluFeatures(x, 5, 0.5, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((2, 5))
    offsets = 0.5 * rng.standard_normal(5)
    root = 1.5**0.5
    z = np.array([[-root, -(0.5**0.5)], [0.0, -(0.5**0.5)], [root, 2**0.5]])
    raw = np.maximum(z @ weights / 2**0.5 + offsets, 0.0)
    centred = raw - raw.mean(axis=0)
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_constant_feature_says_nothing_and_breaks_nothing() -> None:
    same = ReluFeatures(np.ones((4, 3), np.float32), 6, 0.5, np.random.default_rng(0))
    assert same.shape == (4, 6) and not same[:].any()


@pytest.mark.parametrize("n_features", [1, 64])
def test_few_features_are_seen_through_relu_units(n_features) -> None:
    views = scene(n_features).views
    (own,), (hops,) = views["own"], views["hops"]
    assert own.features.shape == (30, 20) and hops.features.shape == (30, 40)
    assert [view.width for view in views["links"]] == [40, 30]
    lengths = np.linalg.norm(hops.features[:], axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-5)


def test_many_features_are_seen_as_they_are() -> None:
    wide = scene(65)
    assert [view.hops for view in wide.views["hops"]] == [0, 1, 2]
    np.testing.assert_allclose(wide.views["own"][0].features[:], unit_rows(wide.x))


def test_units_depend_on_the_seed_alone() -> None:
    one, two, other = (scene(8, seed).views["hops"][0].features for seed in (4, 4, 5))
    assert np.array_equal(one, two) and not np.array_equal(one, other)
