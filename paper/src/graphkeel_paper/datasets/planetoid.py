"""Cora, CiteSeer and PubMed from the Planetoid raw files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.graph.datasets.raw import RawGraph, undirected
from graphkeel_paper.datasets.checksums import SHA256
from graphkeel_paper.datasets.files import fetch, find_raw, verify_checksum
from graphkeel_paper.datasets.unpickle import safe_unpickle

FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_N_VALIDATION = 500  # the public split: validation follows the training nodes in the numbering


def load_planetoid(name: str) -> RawGraph:
    """Read, check and assemble one citation graph; nodes that no file describes get y = -1 and zero
    features."""
    names = file_names(name)
    place = find_raw(FOLDERS[name], names) or fetch("Planetoid", FOLDERS[name], names)
    parts = {part: _read_part(place, name, part) for part in _PARTS}
    try:
        return _assemble(name, parts)
    except (ValueError, IndexError, TypeError, AttributeError, KeyError) as error:
        raise DataError(
            f"the files of {name} in {place} do not fit together", got=str(error)
        ) from error


def file_names(name: str) -> list[str]:
    """The dataset's raw files."""
    return [f"ind.{name}.{part}" for part in _PARTS]


def _read_part(place: Path, name: str, part: str) -> Any:
    path = place / f"ind.{name}.{part}"
    content = verify_checksum(path, SHA256[path.name])
    if part == "test.index":
        return np.array(content.split(), dtype=np.int64)
    return safe_unpickle(content, source=str(path))


def _assemble(name: str, parts: dict[str, Any]) -> RawGraph:
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
