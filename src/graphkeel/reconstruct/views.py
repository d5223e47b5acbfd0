"""Views of all features: as they are, after one and two hops, spread over the graph, bent; and whom
a node is linked with. What no label changes, and what a linear probe can learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import normalize

from graphkeel.graph.propagate.adjacency import neighbours
from graphkeel.graph.propagate.propagator import Propagator

OWN = "own"
ONE_HOP = "one hop"
TWO_HOPS = "two hops"
SPREAD = "spread"
BENT = "bent"
LINKED = "linked"
N_BENT = 1024
MOST_NUMBERS = 1 << 27  # in all dense views; beyond it, spread features are the only one

View: TypeAlias = Tensor | sparse.csr_matrix


def views_of(
    x: Tensor, propagator: Propagator, edge_index: Tensor, seed: int
) -> Mapping[str, View]:
    """The views by name, each of N rows. Rows are unit vectors, so that many words or neighbours do
    not make a node count more.

    Args:
        x: all features, shape (N, d).
        propagator: multiplies by Ŝ.
        edge_index: int64, shape (2, E).
        seed: of the directions along which features are bent.
    """
    own = normalize(x, dim=1)
    spread = normalize(propagator.smooth(own), dim=1)
    if len(x) * (4 * x.shape[1] + N_BENT) > MOST_NUMBERS:
        return {SPREAD: spread}
    once = propagator(own)
    one_hop = normalize(once, dim=1)
    two_hops = normalize(propagator(once), dim=1)
    return {
        OWN: own,
        ONE_HOP: one_hop,
        TWO_HOPS: two_hops,
        SPREAD: spread,
        BENT: _bent((one_hop, two_hops, spread), seed),
        LINKED: _linked(edge_index, len(x)),
    }


def _bent(views: tuple[Tensor, ...], seed: int) -> Tensor:
    """Rectified random directions of what they have in common: a hidden layer that is not trained,
    with which a linear probe is a wide network of two layers."""
    centred = sum(normalize(view - view.mean(dim=0), dim=1) for view in views)
    assert isinstance(centred, Tensor)
    generator = torch.Generator().manual_seed(int(seed))
    directions = torch.randn(centred.shape[1], N_BENT, generator=generator)
    return normalize((centred @ directions.to(centred.dtype)).relu_(), dim=1)


def _linked(edge_index: Tensor, n_nodes: int) -> sparse.csr_matrix:
    """Whom a node is linked with."""
    joined = neighbours(edge_index.numpy(), n_nodes).astype(np.float32)
    degrees = np.asarray(joined.sum(axis=1)).ravel()
    return (sparse.diags(np.maximum(degrees, 1.0) ** -0.5).astype(np.float32) @ joined).tocsr()
