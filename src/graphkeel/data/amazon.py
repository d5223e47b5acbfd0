"""Amazon Photo and Computers from the published `.npz` files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
from scipy import sparse

from graphkeel.data.checksums import SHA256
from graphkeel.data.download import fetch_amazon
from graphkeel.data.files import find_raw, verify_checksum
from graphkeel.data.raw import RawGraph, undirected
from graphkeel.errors import DataError

FOLDERS = {"photo": "Photo", "computers": "Computers"}


def load_amazon(name: str) -> RawGraph:
    """Read and check one co-purchase graph; all of its nodes are labelled, and it has no public split."""
    file = f"amazon_electronics_{name}.npz"
    place = find_raw(FOLDERS[name], [file]) or fetch_amazon(FOLDERS[name], file)
    content = verify_checksum(place / file, SHA256[file])
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return _assemble(name, dict(archive))
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{place / file} cannot be read", got=str(error)) from error


def _csr(arrays: dict[str, np.ndarray], prefix: str) -> sparse.csr_matrix:
    data, indices, indptr = (arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix((data, indices, indptr), shape=tuple(arrays[f"{prefix}_shape"]))


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
