"""Sorting pairs into rows, against numpy's stable sort; rows beyond one block included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.graph.propagate import multiply, neighbours, normalise, normalise_as_given
from graphkeel.graph.propagate.adjacency import pattern
from graphkeel.graph.propagate.counting_sort import by_row, by_row_and_column

SEVERAL_BLOCKS = 30_000


def pairs(seed: int, n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.random.default_rng(seed).integers(0, n, (2, count))
    return rows, columns


@pytest.mark.parametrize(("n", "count"), [(1, 0), (1, 3), (7, 40), (SEVERAL_BLOCKS, 50_000)])
def test_a_rows_columns_keep_their_order(n, count):
    rows, columns = pairs(0, n, count)
    starts, placed = by_row(rows, columns, n)
    assert np.array_equal(np.diff(starts), np.bincount(rows, minlength=n))
    assert np.array_equal(placed, columns[np.argsort(rows, kind="stable")])


@pytest.mark.parametrize("sort_first", [False, True])
@pytest.mark.parametrize(("n", "count"), [(3, 9), (7, 40), (SEVERAL_BLOCKS, 50_000)])
def test_rows_and_columns_rise(n, count, sort_first):
    rows, columns = pairs(1, n, count)
    order = np.lexsort((columns, rows))
    if sort_first:
        rows, columns = rows[order], columns[order]
    starts, placed = by_row_and_column(rows, columns, n)
    assert (placed is columns) == sort_first
    assert np.array_equal(np.diff(starts), np.bincount(rows, minlength=n))
    assert np.array_equal(placed, columns if sort_first else columns[order])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 2**31), st.booleans(), st.booleans())
def test_the_pattern_is_the_dense_one(n, count, seed, sort_first, both_ways):
    edges = np.stack(pairs(seed, n, count))
    edges = np.concatenate([edges, edges[::-1]], axis=1) if both_ways else edges
    edges = edges[:, np.lexsort((edges[1], edges[0]))] if sort_first else edges
    joined = np.zeros((n, n), dtype=bool)
    joined[edges[0], edges[1]] = joined[edges[1], edges[0]] = True
    with_loops, without = joined | np.eye(n, dtype=bool), joined & ~np.eye(n, dtype=bool)
    starts, columns = pattern(edges, n)
    assert columns.tolist() == [j for row in with_loops for j in np.flatnonzero(row)]
    assert np.diff(starts).tolist() == with_loops.sum(axis=1).tolist()
    assert np.array_equal(neighbours(edges, n).toarray(), without)


def test_edges_as_given_keep_repeats_and_direction():
    found = normalise_as_given(
        np.array([[0, 0, 1, 2], [1, 1, 1, 0]]), 3
    ).toarray()  # 0->1 twice, a loop, 2->0
    arriving = np.array([[1, 0, 1], [2, 1, 0], [0, 0, 1]], dtype=float)
    degrees = arriving.sum(axis=1)
    assert np.allclose(found, arriving / np.sqrt(np.outer(degrees, degrees)), atol=1e-7)


@pytest.mark.parametrize("width", [1, 5, 8, 9, 16, 70])
def test_products_are_scipys_to_the_bit(width):
    matrix = normalise(np.stack(pairs(2, 500, 4000)), 500)
    values = (
        np.random.default_rng(3).standard_normal((501, width)).astype(np.float32)[1:]
    )  # off a cache line
    assert np.array_equal(multiply(matrix, values), matrix @ values)


def test_columns_of_another_order_are_multiplied_as_well():
    matrix = normalise(np.stack(pairs(4, 300, 2000)), 300)
    values = np.asfortranarray(
        np.random.default_rng(5).standard_normal((300, 12)).astype(np.float32)
    )
    assert np.array_equal(multiply(matrix, values), matrix @ np.ascontiguousarray(values))
