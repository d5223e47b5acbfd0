"""The paper's five datasets from their published files: Cora, CiteSeer and PubMed (Planetoid),
Amazon Photo and Computers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.graph.datasets.npz import read_arrays
from graphkeel.graph.datasets.raw import RawGraph, undirected
from graphkeel_paper.datasets.files import fetch, find_raw, verified
from graphkeel_paper.datasets.unpickle import safe_unpickle

_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_N_VALIDATION = 500  # the public split: validation follows the training nodes in the numbering
_KEYS = (
    "labels",
    *(f"{m}_{part}" for m in ("attr", "adj") for part in ("data", "indices", "indptr", "shape")),
)
# PyG's class that knows where a dataset's files are, their folder and names
FILES = {
    **{
        folder.lower(): ("Planetoid", folder, [f"ind.{folder.lower()}.{part}" for part in _PARTS])
        for folder in ("Cora", "CiteSeer", "PubMed")
    },
    **{
        folder.lower(): ("Amazon", folder, [f"amazon_electronics_{folder.lower()}.npz"])
        for folder in ("Photo", "Computers")
    },
}


def load_published(name: str) -> RawGraph:
    """Read, check and assemble a graph; nodes of a citation graph that no file describes get y = -1
    and zero features, Amazon's are all labelled and have no public split."""
    kind, folder, names = FILES[name]
    place = find_raw(folder, names) or fetch(kind, folder, names)
    if kind == "Amazon":
        return read_amazon(name, verified(place / names[0]), source=str(place / names[0]))
    parts = {part: _read_part(place, name, part) for part in _PARTS}
    try:
        return _citation_graph(name, parts)
    except (ValueError, IndexError, TypeError, AttributeError, KeyError) as error:
        raise DataError(
            f"the files of {name} in {place} do not fit together", got=str(error)
        ) from error


def _read_part(place: Path, name: str, part: str) -> Any:
    path = place / f"ind.{name}.{part}"
    content = verified(path)
    if part == "test.index":
        return np.array(content.split(), dtype=np.int64)
    return safe_unpickle(content, source=str(path))


def _citation_graph(name: str, parts: dict[str, Any]) -> RawGraph:
    test_ids = parts["test.index"]  # row i of tx and ty describes node test_ids[i]
    n_known = parts["allx"].shape[0]
    n_train = parts["x"].shape[0]
    n_nodes = max(int(test_ids.max()) + 1, n_known)
    features = sparse.lil_matrix((n_nodes, parts["allx"].shape[1]), dtype=np.float32)
    features[:n_known] = parts["allx"]
    features[test_ids] = parts["tx"]
    onehot = np.zeros((n_nodes, parts["ally"].shape[1]), dtype=np.int64)
    onehot[:n_known] = parts["ally"]
    onehot[test_ids] = parts["ty"]
    # CiteSeer's numbering has gaps: 15 nodes that no file gives a label or features for.
    y = np.where(onehot.any(axis=1), onehot.argmax(axis=1), -1)
    sources = np.repeat(list(parts["graph"]), [len(targets) for targets in parts["graph"].values()])
    targets = np.concatenate([np.asarray(t, dtype=np.int64) for t in parts["graph"].values()])
    train = np.arange(n_train)
    val = np.arange(n_train, n_train + _N_VALIDATION)
    return RawGraph(
        name=name,
        x=features.tocsr(),
        edge_index=undirected(sources, targets, n_nodes),
        y=y,
        n_classes=int(onehot.shape[1]),
        self_links=np.unique(sources[sources == targets]),
        public_split=(train, val, np.sort(test_ids)),
    )


def read_amazon(name: str, content: bytes, *, source: str) -> RawGraph:
    """The graph in the bytes of such a file."""
    try:
        return _purchase_graph(name, read_arrays(io.BytesIO(content), _KEYS, source=source))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise DataError(
            f"{source} cannot be read", got=f"{type(error).__name__}: {error}"[:200]
        ) from error


def _csr(arrays: dict[str, np.ndarray], prefix: str) -> sparse.csr_matrix:
    data, indices, indptr = (arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    matrix = sparse.csr_matrix((data, indices, indptr), shape=tuple(arrays[f"{prefix}_shape"]))
    matrix.check_format(full_check=True)  # compiled code trusts the indices
    return matrix


def _purchase_graph(name: str, arrays: dict[str, np.ndarray]) -> RawGraph:
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
