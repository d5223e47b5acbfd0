"""Which nodes have come or have changed: features, links, and links to those that have come."""

from __future__ import annotations

import numpy as np
import pytest

from graphkeel.graph.changes import changed_nodes, node_digests
from graphkeel.graph.propagate.adjacency import normalise

N = 6
EDGES = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])  # a path


def seen(edges=EDGES, n_nodes=N, x=None):
    x = np.arange(2 * n_nodes, dtype=np.float32).reshape(n_nodes, 2) if x is None else x
    return x, normalise(edges, n_nodes)


def test_nothing_has_changed_in_another_order_of_edges() -> None:
    before = node_digests(*seen())
    assert len(np.unique(before)) == N
    assert changed_nodes(*seen(EDGES[::-1, ::-1].copy()), before, 0.5).tolist() == []


@pytest.mark.parametrize("value", [0.0, -4.0, 1e-30])
def test_other_features(value) -> None:
    before = node_digests(*seen())
    x, matrix = seen()
    x[2, 0] = value
    assert changed_nodes(x, matrix, before, 0.5).tolist() == [2]


def test_a_link_that_goes_or_comes_between_old_nodes_changes_both_ends() -> None:
    before = node_digests(*seen())
    assert changed_nodes(*seen(EDGES[:, 1:]), before, 0.5).tolist() == [0, 1]
    more = np.append(EDGES, [[0], [3]], axis=1)
    assert changed_nodes(*seen(more), before, 0.5).tolist() == [0, 3]


@pytest.mark.parametrize(("newly", "wanted"), [(0.3, [0, 5, 6, 7]), (0.4, [0, 6, 7])])
def test_nodes_that_have_come_and_those_with_many_links_to_them(newly, wanted) -> None:
    """Node 0 has one link of two to them, node 5 one of three."""
    before = node_digests(*seen(np.append(EDGES, [[5], [2]], axis=1)))
    edges = np.append(EDGES, [[5, 0, 5], [2, 6, 7]], axis=1)
    assert changed_nodes(*seen(edges, N + 2), before, newly).tolist() == wanted


def test_isolated_nodes_and_none_that_were_there() -> None:
    none = np.zeros((2, 0), np.int64)
    before = node_digests(*seen(none))
    assert changed_nodes(*seen(none), before, 0.5).tolist() == []
    assert changed_nodes(*seen(none, N + 1), before, 0.5).tolist() == [N]
