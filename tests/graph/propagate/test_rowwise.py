"""Functions of rows, by blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from graphkeel.graph.propagate.rowwise import Nodes, fold, largest, rowwise


def test_rows_of_dense_and_sparse_arrays_are_asked_alike() -> None:
    dense = np.arange(12, dtype=np.float32).reshape(4, 3)
    weight = np.array([[1.0], [0.0], [2.0]], dtype=np.float32)
    for rows in (dense, sparse.csr_matrix(dense)):
        found = rowwise(lambda part: np.asarray(part @ weight), rows)
        assert found.ravel().tolist() == [4.0, 13.0, 22.0, 31.0]
        assert fold(lambda part: float(part.sum()), rows) == 66.0
    assert fold(lambda ids: int(ids.sum()), Nodes(5)) == 10


def test_of_equal_values_the_first_are_chosen() -> None:
    values = np.array([[0.5], [0.9], [0.5], [0.5], [0.1]], dtype=np.float32)
    groups = np.array([[0], [0], [0], [0], [1]])
    least, last = largest(values, groups, 2, lambda sizes: np.minimum(sizes, 3))
    assert least[0].tolist() == pytest.approx([0.5, 0.1])
    assert last[0].tolist() == [2, 4]  # nodes 0, 1 and 2 of group 0


def test_the_largest_are_those_of_a_sorted_list() -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.random((300, 2)), 2).astype(np.float32)  # with many equal ones
    groups = rng.integers(-1, 3, (300, 2))
    least, last = largest(values, groups, 3, lambda sizes: sizes // 2)
    for s in range(2):
        for group in range(3):
            nodes = np.flatnonzero(groups[:, s] == group)
            order = nodes[np.lexsort((nodes, -values[nodes, s]))][: len(nodes) // 2]
            equal = values[:, s] == least[s, group]
            chosen = (values[:, s] > least[s, group]) | (equal & (np.arange(300) <= last[s, group]))
            assert set(np.flatnonzero(chosen & (groups[:, s] == group))) == set(order)
