"""Products and walks against dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.graph.propagate import local, multiply, normalise
from graphkeel.graph.propagate.local import hops_of, pagerank


def dense_normalised(edges: np.ndarray, n: int, norm: str) -> np.ndarray:
    a = np.eye(n)
    a[edges[0], edges[1]] = a[edges[1], edges[0]] = 1.0
    degree = a.sum(1)
    if norm == "row":
        return a / degree[:, None]
    return a / np.sqrt(np.outer(degree, degree))


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
    return n, np.array(pairs, dtype=np.int64).reshape(-1, 2).T


@given(graphs(), st.sampled_from(["sym", "row"]))
@settings(deadline=None, max_examples=60)
def test_the_matrix_is_the_dense_one_whatever_loops_and_repeats_the_edges_have(graph, norm):
    n, edges = graph
    matrix = normalise(edges, n, norm)
    assert matrix.dtype == np.float32 and matrix.indices.dtype == np.int32
    matrix.check_format()
    assert np.abs(matrix.toarray() - dense_normalised(edges, n, norm)).max() < 1e-6


def test_a_path_of_three_nodes_by_hand():
    matrix = normalise(np.array([[0, 1], [1, 2]]), 3, "row")
    x = np.array([[6.0], [0.0], [0.0]], dtype=np.float32)
    assert hops_of(matrix, x, 1).ravel() == pytest.approx([3.0, 2.0, 0.0])
    assert hops_of(matrix, x, 2).ravel() == pytest.approx([2.5, 5 / 3, 1.0])
    assert hops_of(matrix, x, 1, teleport=0.5).ravel() == pytest.approx([4.5, 1.0, 0.0])
    assert hops_of(matrix, x, 0).ravel() == pytest.approx([6.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def medium():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3000, (2, 20_000)), rng.standard_normal((3000, 37), dtype=np.float32)


@pytest.mark.parametrize("steps", [10, 50])
@pytest.mark.parametrize("width", [37, 16, 8])
def test_a_walk_is_the_same_by_lines_and_by_columns(medium, monkeypatch, steps, width):
    """37 columns end with a part of a cache line."""
    edges, x = medium
    matrix = normalise(edges, 3000)
    expected = hops_of(matrix, x, steps, 0.1)
    monkeypatch.setattr(local, "cached_width", lambda _: width)
    monkeypatch.setattr(local, "STREAM", replace(local.STREAM, many=0, coarse=1e-6))
    assert np.abs(pagerank(matrix, x, steps, 0.1) - expected).max() < 1e-4


def test_threads_multiply_as_scipy_does(medium):
    edges, x = medium
    matrix = normalise(edges, 3000)
    assert np.allclose(multiply(matrix, x), matrix @ x, rtol=1e-5, atol=1e-6)
