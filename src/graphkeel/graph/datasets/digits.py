"""The embedded dataset: scikit-learn ships 1,797 handwritten digits inside its wheel, so nothing is
downloaded."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits as sklearn_digits
from sklearn.neighbors import kneighbors_graph

from graphkeel.graph.datasets.raw import RawGraph, undirected

NEIGHBOURS = 6
_MAX_PIXEL = 16.0


def load_digits() -> RawGraph:
    """Images as nodes, pixels/16 as features, an edge between each image and its 6 nearest
    neighbours."""
    images, labels = sklearn_digits(return_X_y=True)
    x = (images / _MAX_PIXEL).astype(np.float32)
    nearest = kneighbors_graph(x, NEIGHBOURS, mode="connectivity").tocoo()
    return RawGraph(
        name="digits",
        x=x,
        edge_index=undirected(nearest.row, nearest.col, x.shape[0]),
        y=labels.astype(np.int64),
        n_classes=10,
    )
