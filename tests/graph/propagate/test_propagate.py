"""Propagation in blocks against dense matrices, in memory and on disk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph.propagate import multiply, normalise, propagate


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
    edges = np.array([[0, 1], [1, 2]])
    x = np.array([[6.0], [0.0], [0.0]], dtype=np.float32)
    assert propagate(edges, x, 1, norm="row").ravel() == pytest.approx([3.0, 2.0, 0.0])
    assert propagate(edges, x, 2, norm="row").ravel() == pytest.approx([2.5, 5 / 3, 1.0])
    assert propagate(edges, x, 1, norm="row", teleport=0.5).ravel() == pytest.approx(
        [4.5, 1.0, 0.0]
    )
    assert propagate(edges, x, 0).ravel() == pytest.approx([6.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def medium():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3000, (2, 20_000)), rng.standard_normal((3000, 37), dtype=np.float32)


def test_blocks_do_not_change_a_bit(medium):
    edges, x = medium
    whole = propagate(edges, x, 3)
    for block in (1, 5, 37, 100):
        assert np.array_equal(propagate(edges, x, 3, block=block), whole)
    expected = np.linalg.matrix_power(dense_normalised(edges, 3000, "sym"), 3) @ x
    assert np.abs(whole - expected).max() < 1e-5


def test_a_mapped_file_gives_the_same_file(medium, tmp_path):
    edges, x = medium
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    written = propagate(edges, mapped, 2, teleport=0.1, block=8, out=tmp_path / "z.npy")
    assert isinstance(written, np.memmap) and not list(tmp_path.glob("*.part"))
    expected = propagate(edges, x, 2, teleport=0.1)
    assert np.allclose(np.load(tmp_path / "z.npy"), expected, rtol=1e-5, atol=1e-6)


def test_a_matrix_of_ones_own_is_used_as_it_is():
    matrix = sparse.csr_matrix(np.array([[0, 2], [3, 0]], dtype=np.float64))
    assert propagate(matrix, np.array([[1], [10]], dtype=np.float32)).tolist() == [[20], [3]]


def test_threads_multiply_as_scipy_does(medium):
    edges, x = medium
    matrix = normalise(edges, 3000)
    assert np.allclose(multiply(matrix, x), matrix @ x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"norm": "max"}, ConfigError),
        ({"hops": -1}, ConfigError),
        ({"hops": True}, ConfigError),
        ({"teleport": 1.0}, ConfigError),
        ({"block": 0}, ConfigError),
        ({"out": np.zeros((2, 2), np.float32)}, DataError),
        ({"graph": np.array([[0], [3]])}, DataError),
        ({"graph": np.array([[0.5], [1.0]])}, DataError),
        ({"graph": sparse.eye(4, format="csr")}, DataError),
        ({"x": np.zeros(3, np.float32)}, DataError),
        ({"out": "no/such/folder/z.npy"}, DataError),
    ],
)
def test_wrong_input_is_refused(change, error):
    call = {"graph": np.array([[0], [1]]), "x": np.zeros((3, 2), np.float32), "hops": 1} | change
    with pytest.raises(error):
        propagate(**call)
