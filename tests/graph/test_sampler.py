"""The biased sampler against a dense inverse and hand-made graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkeel.core.errors import DataError
from graphkeel.graph import load, load_graph, make_sbm
from graphkeel.graph.ppr import PprDistance, chebyshev_coefficients, near_distance
from graphkeel.graph.propagate import neighbours, normalise
from graphkeel.graph.splits import BiasedSampler, biased_sampler, biased_training_set


def dense_ppr(matrix, alpha):
    n = matrix.shape[0]
    return alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * matrix.toarray())


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.01, 0.1, 0.5]), n=st.integers(2, 40))
def test_distances_equal_those_of_the_dense_inverse(seed, alpha, n):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (2, 2 * n))
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    matrix = normalise(edges, n, dtype=np.float64, self_links=rng.integers(0, n, 2))
    ppr = dense_ppr(matrix, alpha)
    start = int(rng.integers(n))
    expected = ((ppr - ppr[start]) ** 2).sum(axis=1)
    found = PprDistance(matrix, alpha).to_seed(start, np.arange(n))
    assert np.abs(found - expected).max() < 1e-6


def test_chebyshev_series_is_the_function():
    for alpha in (0.01, 0.1, 0.9):
        points = np.linspace(-1, 1, 201)
        series = np.polynomial.chebyshev.chebval(points, chebyshev_coefficients(alpha))
        assert np.abs(series - (alpha / (1 - (1 - alpha) * points)) ** 2).max() < 1e-6


def test_normalise_by_hand():
    path = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    found = normalise(path, 3, dtype=np.float64).toarray()
    a, b = 1 / 2, 1 / np.sqrt(6)
    assert np.allclose(found, [[a, b, 0], [b, 1 / 3, b], [0, b, a]])


def test_sampler_takes_the_near_nodes_of_the_seeds_class():
    # Two cliques joined by one edge; class 0 fills the first and has two far members in the second.
    clique = [(i, j) for i in range(5) for j in range(5) if i != j]
    edges = np.array(clique + [(i + 5, j + 5) for i, j in clique] + [(4, 5), (5, 4)]).T
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0])
    exact = PprDistance(normalise(edges, 10, dtype=np.float64), 0.1)
    sampler = BiasedSampler(exact.to_seed, y, np.arange(10), per_class=4)
    assert sorted(sampler.around(1)) == [0, 1, 2, 3]
    assert sampler.around(1)[0] == 1
    with pytest.raises(DataError, match=r"too few nodes in the pool.*--split random"):
        BiasedSampler(sampler.distance, y, np.arange(10), per_class=7).around(0)


def test_draws_are_seeded_and_balanced():
    sampler = biased_sampler(load_graph("digits"))
    first = sampler.draw(0)
    assert np.array_equal(first, sampler.draw(0))
    assert not np.array_equal(first, sampler.draw(1))
    assert np.array_equal(np.bincount(sampler.y[first]), np.full(10, 20))


def test_row_norms_are_cached_and_a_damaged_cache_is_ignored(tmp_path):
    graph = make_sbm(200, 600)
    matrix = normalise(graph.edge_index, 200, dtype=np.float64)
    norms = PprDistance(matrix, 0.1, cache=tmp_path).row_norms(np.arange(200))
    (file,) = tmp_path.iterdir()
    warm = PprDistance(matrix, 0.1, cache=tmp_path)
    assert np.array_equal(warm._norms, norms)
    file.write_bytes(file.read_bytes()[:-40])
    assert np.array_equal(PprDistance(matrix, 0.1, cache=tmp_path).row_norms(np.arange(200)), norms)


def test_near_distance_orders_the_neighbourhood_as_three_hops_do():
    graph = make_sbm(150, 600, seed=1)
    matrix = normalise(graph.edge_index, 150, dtype=np.float64)
    walks = matrix.toarray()
    expected = sum(0.9**k * np.linalg.matrix_power(walks, k + 1)[7] for k in range(3))
    found = near_distance(matrix, 0.1, 7, np.arange(150))
    np.testing.assert_allclose(found, -expected, atol=1e-12)


def test_large_graphs_get_a_biased_set_too():
    """Drawn nodes are closer together than random ones: more edges among themselves."""
    graph = make_sbm(4000, 40_000, n_classes=4, homophily=0.9, seed=2)
    matrix = neighbours(graph.edge_index, 4000)
    drawn = biased_sampler(graph, large=True).draw(0)
    assert np.array_equal(np.bincount(graph.y[drawn]), np.full(4, 20))
    assert len(np.unique(drawn)) == 80
    at_random = np.random.default_rng(0).choice(4000, 80, replace=False)
    assert matrix[drawn][:, drawn].sum() > 2 * matrix[at_random][:, at_random].sum()


def test_a_seed_without_neighbours_takes_others_of_its_class():
    graph = make_sbm(2000, 0, n_classes=4, seed=0)
    drawn = biased_sampler(graph, large=True).draw(0)
    assert np.array_equal(np.bincount(graph.y[drawn]), np.full(4, 20))


@pytest.mark.parametrize("limit", ["exact_nodes", "exact_edges"])
def test_many_edges_make_a_graph_large_as_many_nodes_do(limit):
    graph = make_sbm(4000, 40_000, n_classes=4, homophily=0.9, seed=2)
    expected = biased_sampler(graph, large=True).draw(3)
    assert np.array_equal(biased_training_set(graph, 3, **{limit: 3999}), expected)


@pytest.mark.parametrize("split", ["biased", "random"])
@pytest.mark.parametrize("name", ["digits", "sbm"])
def test_splits_are_disjoint_and_balanced(name, split):
    task = load(name, split=split, features="raw", seed=1)
    masks = [task.train_mask, task.val_mask, task.test_mask]
    assert int(sum(m.int() for m in masks).max()) == 1
    assert np.array_equal(np.bincount(task.y[task.train_mask]), np.full(task.n_classes, 20))
