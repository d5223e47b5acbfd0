"""Matrices that are never written out, beside the same ones written out."""

from __future__ import annotations

import numpy as np
import pytest

from graphkeel.graph import features
from graphkeel.graph.features import ReluFeatures, UnitRows, unit_rows
from graphkeel.graph.propagate import local, normalise, view
from graphkeel.graph.propagate.local import hops_of, pagerank
from graphkeel.graph.propagate.view import LAST, Layers, Products, View, kept

N = 200


@pytest.fixture(scope="module")
def matrix():
    return normalise(np.random.default_rng(0).integers(0, N, (2, 600)), N)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 rows, and of few columns."""
    settings = local._Streaming(part=64, cache=4 * N * 5)
    monkeypatch.setattr(local, "STREAM", settings)


@pytest.mark.parametrize("steps", [0, 1, 10, 50])
def test_a_walk_is_what_its_steps_give(matrix, small_blocks, steps) -> None:
    values = np.random.default_rng(1).random((N, 12)).astype(np.float32)
    before = values.copy()
    expected = hops_of(matrix, values, steps, 0.1)
    np.testing.assert_allclose(pagerank(matrix, values, steps, 0.1), expected, atol=2e-6)
    assert np.array_equal(values, before)
    pagerank(matrix, values, steps, 0.1, values)
    np.testing.assert_allclose(values, expected, atol=2e-6)


def test_many_steps_take_fewer_products(matrix, monkeypatch) -> None:
    counted = []
    plain = local.multiply
    monkeypatch.setattr(local, "multiply", lambda *a, **k: counted.append(1) or plain(*a, **k))
    pagerank(matrix, np.ones((N, 2), np.float32), 50, 0.1)
    assert len(counted) <= 35


def test_layers_are_indexed_as_an_array_is(small_blocks) -> None:
    values = np.random.default_rng(2).random((N, 3, 4)).astype(np.float32)
    layers = Layers(values, lambda z, *_: 2 * z)
    nodes, sets = np.array([5, 190, 7]), np.array([2, 0, 1])
    for key in (nodes, slice(3, 70), (nodes, sets), (nodes, 1), (slice(None), -1), (nodes, LAST)):
        assert np.array_equal(layers[key], 2 * values[key])
    assert np.array_equal(np.asarray(layers), 2 * values)
    layers.keep_last()
    assert np.array_equal(layers[nodes, -1], 2 * values[nodes, -1])
    assert layers.values.nbytes == values.nbytes // 3


def test_products_walk_far_views_together(matrix) -> None:
    rng = np.random.default_rng(3)
    x, links = (rng.random((N, d)).astype(np.float32) for d in (6, 9))
    views = [View(x), View(x, matrix, 1), View(x, matrix, 2), View(links)]
    weights = [rng.random((view.width, 3, 4)).astype(np.float32) for view in views]
    offsets = rng.random((3, 4)).astype(np.float32)
    written = [x, matrix @ x, matrix @ (matrix @ x), links]
    parts = [np.einsum("nd,dsc->nsc", a, w) for a, w in zip(written, weights, strict=True)]
    found = Products(views, weights, offsets)
    np.testing.assert_allclose(Layers(found)[:], sum(parts) + offsets, rtol=1e-4)
    found.keep_last()
    np.testing.assert_allclose(found[:, LAST], (sum(parts) + offsets)[:, LAST], rtol=1e-4)


def test_random_features_do_not_depend_on_blocks(monkeypatch) -> None:
    x = np.random.default_rng(4).normal(size=(N, 5)).astype(np.float32)
    rows = UnitRows(x, 2 * x + 1, centred=True)
    expected = [unit_rows(part, centred=True) for part in (x, 2 * x + 1)]
    np.testing.assert_allclose(rows[:], np.concatenate(expected, axis=1), atol=1e-6)
    whole = np.asarray(ReluFeatures(rows, 20, 0.5, np.random.default_rng(5)))
    monkeypatch.setattr(local, "STREAM", local._Streaming(part=7))
    monkeypatch.setattr(features, "PREPARATION", features._Preparation(kept=0))
    parts = ReluFeatures(rows, 20, 0.5, np.random.default_rng(5))
    np.testing.assert_allclose(parts[np.array([3, 150])], whole[[3, 150]], atol=1e-5)
    np.testing.assert_allclose(np.asarray(parts), whole, atol=1e-5)


def test_large_arrays_are_kept_with_sixteen_bits(monkeypatch) -> None:
    values = np.random.default_rng(6).random((N, 3, 4)).astype(np.float32)
    assert kept(values) is values
    monkeypatch.setattr(view, "STREAM", local._Streaming(halved=values.size))
    halved = kept(values)
    assert halved.dtype == np.float16
    found = Layers(halved, lambda z, *_: z + 1e-3)[np.arange(9)]
    assert found.dtype == np.float32  # and so is all that is computed from them
    np.testing.assert_allclose(found, values[:9] + 1e-3, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-9, 1e6, np.nan])
def test_features_that_16_bits_cannot_hold_stay_as_they_are(monkeypatch, scale) -> None:
    values = np.float32(scale) * np.linspace(-1, 1, 54, dtype=np.float32).reshape(9, 6)
    monkeypatch.setattr(view, "STREAM", local._Streaming(halved=values.size))
    assert kept(values) is values
