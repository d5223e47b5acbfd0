"""Normalised adjacencies and products with them, against dense ones and scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.graph.propagate import multiply, neighbours, normalise, normalise_as_given


def pairs(seed: int, n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.random.default_rng(seed).integers(0, n, (2, count))
    return rows, columns


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 2**31), st.booleans(), st.booleans())
def test_the_pattern_is_the_dense_one(n, count, seed, sort_first, both_ways):
    edges = np.stack(pairs(seed, n, count))
    edges = np.concatenate([edges, edges[::-1]], axis=1) if both_ways else edges
    edges = edges[:, np.lexsort((edges[1], edges[0]))] if sort_first else edges
    joined = np.zeros((n, n), dtype=bool)
    joined[edges[0], edges[1]] = joined[edges[1], edges[0]] = True
    with_loops, without = joined | np.eye(n, dtype=bool), joined & ~np.eye(n, dtype=bool)
    found = normalise(edges, n)
    assert found.indices.tolist() == [j for row in with_loops for j in np.flatnonzero(row)]
    assert np.diff(found.indptr).tolist() == with_loops.sum(axis=1).tolist()
    assert np.array_equal(neighbours(edges, n).toarray(), without)


def test_edges_as_given_keep_repeats_and_direction():
    found = normalise_as_given(
        np.array([[0, 0, 1, 2], [1, 1, 1, 0]]), 3
    ).toarray()  # 0->1 twice, a loop, 2->0
    arriving = np.array([[1, 0, 1], [2, 1, 0], [0, 0, 1]], dtype=float)
    degrees = arriving.sum(axis=1)
    assert np.allclose(found, arriving / np.sqrt(np.outer(degrees, degrees)), atol=1e-7)


@pytest.mark.parametrize(("loops", "own"), [("one", 1), ("as given", 2), ("none", 0)])
@pytest.mark.parametrize("norm", ["sym", "row"])
def test_loops_are_read_as_asked(loops, own, norm):
    edges = np.array([[0, 0, 1, 1], [1, 0, 0, 1]])
    edges = np.concatenate([edges, [[1], [1]]], axis=1)  # a second loop at node 1
    found = normalise_as_given(edges, 3, norm, loops=loops, dtype=np.float64).toarray()
    arriving = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=float)
    arriving += np.diag([min(own, 1), own, own % 2])
    degrees = np.maximum(arriving.sum(axis=1), 1.0)
    scale = np.sqrt(np.outer(degrees, degrees)) if norm == "sym" else degrees[:, None]
    assert np.allclose(found, arriving / scale, rtol=1e-15)


@pytest.mark.parametrize("width", [1, 5, 8, 9, 16, 70])
def test_products_are_scipys_up_to_rounding(width):
    """Last bits depend on the processor: torch fuses products and sums where it can."""
    matrix = normalise(np.stack(pairs(2, 500, 4000)), 500)
    values = (
        np.random.default_rng(3).standard_normal((501, width)).astype(np.float32)[1:]
    )  # off a cache line
    assert np.allclose(multiply(matrix, values), matrix @ values, rtol=1e-5, atol=1e-6)


def test_columns_of_another_order_are_multiplied_as_well():
    matrix = normalise(np.stack(pairs(4, 300, 2000)), 300)
    values = np.asfortranarray(
        np.random.default_rng(5).standard_normal((300, 12)).astype(np.float32)
    )
    expected = matrix @ np.ascontiguousarray(values)
    assert np.allclose(multiply(matrix, values), expected, rtol=1e-5, atol=1e-6)
