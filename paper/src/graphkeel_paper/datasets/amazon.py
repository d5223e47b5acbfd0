"""Amazon Photo and Computers from the published `.npz` files."""

from __future__ import annotations

import io

import numpy as np
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.graph.datasets.npz import read_arrays
from graphkeel.graph.datasets.raw import RawGraph, undirected
from graphkeel_paper.datasets.checksums import SHA256
from graphkeel_paper.datasets.files import fetch, find_raw, verify_checksum

_KEYS = (
    "labels",
    *(f"{m}_{part}" for m in ("attr", "adj") for part in ("data", "indices", "indptr", "shape")),
)
FOLDERS = {"photo": "Photo", "computers": "Computers"}


def load_amazon(name: str) -> RawGraph:
    """Read and check one co-purchase graph; all of its nodes are labelled, and it has no public
    split."""
    file = f"amazon_electronics_{name}.npz"
    place = find_raw(FOLDERS[name], [file]) or fetch("Amazon", FOLDERS[name], [file])
    content = verify_checksum(place / file, SHA256[file])
    return read_amazon(name, content, source=str(place / file))


def read_amazon(name: str, content: bytes, *, source: str) -> RawGraph:
    """The graph in the bytes of such a file."""
    try:
        return _assemble(name, read_arrays(io.BytesIO(content), _KEYS, source=source))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise DataError(
            f"{source} cannot be read", got=f"{type(error).__name__}: {error}"[:200]
        ) from error


def _csr(arrays: dict[str, np.ndarray], prefix: str) -> sparse.csr_matrix:
    data, indices, indptr = (arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    matrix = sparse.csr_matrix((data, indices, indptr), shape=tuple(arrays[f"{prefix}_shape"]))
    matrix.check_format(full_check=True)  # compiled code trusts the indices
    return matrix


def _assemble(name: str, arrays: dict[str, np.ndarray]) -> RawGraph:
    features = (_csr(arrays, "attr") > 0).astype(np.float32)
    edges = _csr(arrays, "adj").tocoo()
    y = arrays["labels"].astype(np.int64)
    return RawGraph(
        name=name,
        x=features,
        edge_index=undirected(edges.row, edges.col, y.shape[0]),
        y=y,
        n_classes=int(y.max()) + 1,
    )
