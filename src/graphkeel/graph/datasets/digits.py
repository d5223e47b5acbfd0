"""The embedded dataset: scikit-learn ships 1,797 handwritten digits inside its wheel, so nothing is
downloaded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits as sklearn_digits
from sklearn.neighbors import kneighbors_graph

from graphkeel.core.errors import DataError
from graphkeel.graph.datasets.raw import RawGraph, undirected

_MAX_PIXEL = 16.0


def load_digits(only: Sequence[int] = (), neighbours: int = 6) -> RawGraph:
    """Images as nodes, pixels/16 as features, an edge between each image and its nearest
    neighbours."""
    images, labels = sklearn_digits(return_X_y=True)
    if only:
        taken = np.isin(labels, only)
        images = images[taken]
        labels = np.searchsorted(sorted(only), labels[taken])
    x = (images / _MAX_PIXEL).astype(np.float32)
    nearest = kneighbors_graph(x, neighbours, mode="connectivity").tocoo()
    return RawGraph(
        name="digits:" + ",".join(map(str, sorted(only))) if only else "digits",
        x=x,
        edge_index=undirected(nearest.row, nearest.col, x.shape[0]),
        y=labels.astype(np.int64),
        n_classes=len(only) or 10,
    )


def digits_by_name(name: str) -> RawGraph:
    """All digits, or those after a colon: `digits:0,1,2`."""
    chosen = name.partition(":")[2].split(",") if ":" in name else []
    if not all(len(digit) == 1 and digit.isdecimal() for digit in chosen):
        raise DataError("digits are chosen by name: digits:0,1,2", got=repr(name))
    only = sorted({int(digit) for digit in chosen})
    if len(only) == 1:
        raise DataError("there must be two digits or more to tell apart", got=repr(name))
    return load_digits(only)
