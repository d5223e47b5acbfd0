"""A graph as a folder of shards, and the matrices that spread over it, made by the workers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.cluster.stored import Stored, StoredMatrix, compact, header_of, write_array
from graphkeel.cluster.work import Cluster
from graphkeel.core.errors import DataError
from graphkeel.graph.propagate.adjacency import scale_of
from graphkeel.graph.propagate.adjacency import scaled as values_of
from graphkeel.graph.propagate.rowwise import Nodes, fold, rowwise

Ids = NDArray[np.int64]
# Of each folder: how many dimensions its arrays have, and which kinds of numbers (NumPy's letters).
_KINDS = {
    "x": (2, "f", "floating-point numbers of shape (nodes, features)"),
    "edge_index": (2, "iu", "integers of shape (2, edges)"),
    "y": (1, "iu", "integers of shape (nodes,)"),
    "train_mask": (1, "b", "bool of shape (nodes,)"),
    "val_mask": (1, "b", "bool of shape (nodes,)"),
}
_SHARD = re.compile(r"[0-9]+\.npy")


@dataclass(frozen=True, eq=False)
class ShardedGraph:
    """A graph in a folder of shards: `x/00000.npy`, `x/00001.npy`, … and likewise `edge_index`;
    `y`, `train_mask` and `val_mask` where there are any.

    Attributes:
        x: features, read as float32, shape (N, d).
        edges: files of edges, each of shape (2, E_i), in any order; both ways if they go both ways.
        y: labels, -1 where unknown, shape (N,); None where there are none.
        train_mask, val_mask: bool, shape (N,); None where there are none.
    """

    x: Stored
    edges: list[tuple[str, int]]
    y: Stored | None
    train_mask: Stored | None
    val_mask: Stored | None

    @classmethod
    def open(cls, folder: Path | str) -> ShardedGraph:
        """The graph in a folder; what is wrong with it is said before any work begins.

        Args:
            folder: with a folder of shards for each array.
        """
        root = Path(folder).resolve()
        for name in ("x", "edge_index"):
            if not (root / name).is_dir():
                raise DataError(
                    f"{root} is no graph in shards",
                    got=f"no folder {name}",
                    fix="Write one with graphkeel.cluster.save_shards(data, folder, rows).",
                )
        x = _stored(root, "x", np.float32)
        edges = [(str(path), header_of(path)[0]) for path in _shards(root / "edge_index")]
        _stored(root, "edge_index", np.int64)  # checked alike
        for path, shape in edges:
            if shape[0] != 2:
                raise DataError(f"{path} must hold {_KINDS['edge_index'][2]}", got=shape)
        others = [
            _stored(root, name, dtype) if (root / name).is_dir() else None
            for name, dtype in (("y", np.int64), ("train_mask", bool), ("val_mask", bool))
        ]
        for name, other in zip(("y", "train_mask", "val_mask"), others, strict=True):
            if other is not None and len(other) != len(x):
                raise DataError(
                    f"{root / name} must have an entry for each of {len(x)} nodes", got=len(other)
                )
        return cls(x, [(path, shape[1]) for path, shape in edges], *others)

    def n_classes(self) -> int:
        """One more than the largest label."""
        largest = -1
        for path in [] if self.y is None else self.y.paths:
            largest = max(largest, int(np.load(path, allow_pickle=False).max(initial=-1)))
        if largest < 1:
            raise DataError(
                "the shards have no labels of two classes", fix="Say how many classes there are."
            )
        return largest + 1

    @property
    def nbytes(self) -> int:
        """Of features and edges on disk."""
        files = [*self.x.paths, *(path for path, _ in self.edges)]
        return sum(Path(path).stat().st_size for path in files)


def save_shards(data: Any, folder: Path | str, rows: int = 1 << 18) -> None:
    """Write a graph as shards; edges go to the shard of their target.

    Args:
        data: a PyG `Data` with x and edge_index; y, train_mask and val_mask where there are any.
        folder: where the shards go.
        rows: nodes a shard.
    """
    root = Path(folder)
    n_nodes = int(data.x.shape[0])
    source, target = data.edge_index.numpy(force=True)
    for name in _KINDS:
        values = data.get(name)
        if values is None:
            continue
        (root / name).mkdir(parents=True, exist_ok=True)
        for number, first in enumerate(range(0, n_nodes, rows)):
            if name == "edge_index":
                here = (target >= first) & (target < first + rows)
                part = np.stack([source[here], target[here]])
            else:
                part = values[first : first + rows].numpy(force=True)
            write_array(root / name / f"{number:05d}.npy", part)


def _shards(folder: Path) -> list[Path]:
    """The shards of an array, in order; a missing one is named."""
    found = sorted(path for path in folder.glob("*.npy") if _SHARD.fullmatch(path.name))
    numbers = {int(path.stem) for path in found}
    missing = next((n for n in range(len(found) + 1) if n not in numbers), 0)
    if missing < len(found) or not found:
        raise DataError(
            f"shard {missing} of {folder} is missing",
            got=f"{len(found)} shards",
            fix="Shards are 00000.npy, 00001.npy and so on, without a gap.",
        )
    return sorted(found, key=lambda path: int(path.stem))


def _stored(root: Path, name: str, dtype: Any) -> Stored:
    """An array in shards, whose shapes and types are looked at."""
    n_dims, kinds, wanted = _KINDS[name]
    bounds = [0]
    tails = set()
    paths = _shards(root / name)
    for path in paths:
        shape, kind = header_of(path)
        if len(shape) != n_dims or kind.kind not in kinds:
            raise DataError(f"{path} must hold {wanted}", got=f"{kind}, {shape}")
        bounds.append(bounds[-1] + shape[0])
        tails.add(shape[1:])
    if len(tails) > 1 and name == "x":
        raise DataError(f"all shards of {root / name} must be as wide", got=sorted(tails))
    tail = next(iter(tails)) if name == "x" else ()
    return Stored([str(path) for path in paths], bounds, tail, dtype)


# ---- matrices


@dataclass(frozen=True, eq=False)
class Matrices:
    """The matrices of a graph in shards.

    Attributes:
        smooth: Ŝ, edges taken both ways and once each.
        given: what the model is asked with, its entries in the order of the edges: S, as PyG's
            graph convolutions have it, or the edges themselves.
        forth: S, its columns sorted and repeated edges added up.
        back: its transpose, likewise.
        norm_bound: at least |S|₂.
    """

    smooth: StoredMatrix
    given: StoredMatrix
    forth: StoredMatrix
    back: StoredMatrix
    norm_bound: float


def make_matrices(
    cluster: Cluster, edges: list[tuple[str, int]], *, linear: bool = True
) -> Matrices:
    """Edges go to the parts of both their ends, then every part is cut, counted and scaled.

    Args:
        edges: files of edges, and how many each has.
        linear: whether the model multiplies by S; else it is asked with the edges.
    """
    bounds = cluster.bounds
    buckets = cluster.folder()
    step = cluster.edges
    chunks = [
        (path, first, min(first + step, count))
        for path, count in edges
        for first in range(0, count, step)
    ]
    cluster.each(partial(_bucket, bounds, buckets), list(enumerate(chunks)))
    folders = {name: cluster.folder() for name in ("smooth", "given", "forth", "back")}
    cut = {
        name: cluster.at_home(StoredMatrix(str(folder), bounds, cluster.owned(folder)))
        for name, folder in folders.items()
    }
    degrees = cluster.folder()
    cluster.each(partial(_cut, cut, buckets, len(chunks), degrees, linear), cluster.spans())
    counted = {
        name: Stored(
            [str(degrees / f"{name}-{i:05d}.npy") for i in range(cluster.n_parts)],
            bounds, (), np.float32,
        )
        for name in ("smooth", "forth")
    }  # fmt: skip
    scaled = {name: one for name, one in cut.items() if linear or name != "given"}
    cluster.each(partial(_scale, scaled, counted), cluster.spans())
    for folder in (buckets, degrees):
        cluster.owned(folder)  # nobody keeps it, so both folders go
    return Matrices(**cut, norm_bound=_schur_bound(cluster, cut["forth"], cut["back"]))


def _bucket(bounds: list[int], folder: Path, chunk: tuple[int, tuple[str, int, int]]) -> None:
    """Some edges, ordered by the part of their target, and by that of their source."""
    number, (path, first, last) = chunk
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    edges = np.array(mapped[:, first:last], dtype=np.int64)
    del mapped
    n_nodes = bounds[-1]
    if not 0 <= int(edges.min()) <= int(edges.max()) < n_nodes:
        raise DataError(
            f"{path} must hold node ids in 0..{n_nodes - 1}", got=f"{edges.min()} to {edges.max()}"
        )
    for kind, ends in (("back", edges[0]), ("forth", edges[1])):
        homes = np.searchsorted(bounds, ends, side="right") - 1
        order = np.argsort(homes, kind="stable")
        places = np.searchsorted(homes[order], np.arange(len(bounds)))
        write_array(folder / f"{kind}-{number}.npy", edges[:, order].T)
        write_array(folder / f"{kind}-{number}-places.npy", places)


def _cut(
    matrices: dict[str, StoredMatrix],
    buckets: Path,
    n_chunks: int,
    degrees: Path,
    linear: bool,
    span: Any,
) -> None:
    """The pattern of a part of every matrix, and the degrees of its nodes."""
    part, first, last = span
    into, out = (_bucketed(buckets, kind, n_chunks, part) for kind in ("forth", "back"))
    n_nodes = matrices["smooth"].shape[0]
    own = np.arange(first, last)
    both = np.concatenate([into[::-1], out], axis=1)  # here, there
    keys = np.unique(np.concatenate([both[0] * n_nodes + both[1], own * n_nodes + own]))
    patterns = {"smooth": (keys // n_nodes, keys % n_nodes)}
    for kind, (here, there) in (("forth", into[::-1]), ("back", out)):
        between = here != there
        patterns[kind] = (
            np.concatenate([own, here[between]]),
            np.concatenate([own, there[between]]),
        )
    patterns["given"] = patterns["forth"] if linear else (into[1], into[0])
    for kind, (rows, columns) in patterns.items():
        sorting = (rows,) if kind == "given" else (columns, rows)
        order = np.lexsort(sorting)
        starts = np.searchsorted(rows[order], np.arange(first, last + 1))
        ones = np.ones(len(rows), np.float32)
        shape = (last - first, n_nodes)
        pattern = sparse.csr_matrix((ones, columns[order], starts), shape=shape)
        matrices[kind].keep(part, *compact(pattern))
        if kind in ("smooth", "forth"):
            counts = np.diff(starts).astype(np.float32)
            write_array(degrees / f"{kind}-{part:05d}.npy", counts)


def _bucketed(folder: Path, kind: str, n_chunks: int, part: int) -> Ids:
    """Edges of a part, in the order in which they were given, shape (2, e)."""
    found = [np.zeros((0, 2), np.int64)]
    for number in range(n_chunks):
        places = np.load(folder / f"{kind}-{number}-places.npy")
        pairs = np.load(folder / f"{kind}-{number}.npy", mmap_mode="r", allow_pickle=False)
        found.append(np.array(pairs[places[part] : places[part + 1]]))
    return np.concatenate(found).T


def _scale(matrices: dict[str, StoredMatrix], degrees: dict[str, Stored], span: Any) -> None:
    """The values of a part; repeated edges are added up."""
    part, first, last = span
    for kind, matrix in matrices.items():
        counted = degrees["smooth" if kind == "smooth" else "forth"]
        rows, halo = matrix.part(part)
        own = scale_of(counted[first:last], "sym")
        there = scale_of(counted[halo], "sym")
        rows.data = values_of(own, rows.indptr, rows.indices, there, "sym")
        if kind != "given":
            rows.has_canonical_format = False
            rows.sum_duplicates()
        matrix.keep(part, rows, halo)


def _schur_bound(cluster: Cluster, forth: StoredMatrix, back: StoredMatrix) -> float:
    """As `graphkeel.models.linear_map` has it, by the workers."""
    weights = rowwise(_loop_weights, Nodes(len(cluster)), forth)
    tops = []
    for matrix in (forth, back):
        spread = cluster.product(matrix, weights)
        tops.append(fold(_largest_ratio, spread, weights, combine=max))
    return math.sqrt(tops[0] * tops[1])


def _loop_weights(ids: Ids, rows: sparse.csr_matrix) -> NDArray[np.float32]:
    own = np.repeat(ids, np.diff(rows.indptr)) == rows.indices
    loops = np.zeros(len(ids), np.float32)
    np.add.at(loops, np.repeat(np.arange(len(ids)), np.diff(rows.indptr))[own], rows.data[own])
    return np.asarray(np.where(loops > 0, loops, 1.0) ** -0.5, dtype=np.float32)[:, None]


def _largest_ratio(spread: NDArray[np.float32], weights: NDArray[np.float32]) -> float:
    return float((spread / weights).max())


def known_nodes(graph: ShardedGraph, cluster: Cluster) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """Nodes in the training mask, then those in the validation mask; their labels; and which of
    them the model was not trained on."""
    if graph.y is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool)
    nodes, classes, fresh = [], [], []
    for mask, judges in ((graph.train_mask, False), (graph.val_mask, True)):
        if mask is None:
            continue
        arrays = [Nodes(len(cluster)), graph.y, mask]
        parts = cluster.fold(_masked, arrays, list.__add__)
        found = np.concatenate(parts, axis=1)
        nodes.append(found[0])
        classes.append(found[1])
        fresh.append(np.full(found.shape[1], judges))
    if not nodes:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool)
    return np.concatenate(nodes), np.concatenate(classes), np.concatenate(fresh)


def _masked(ids: Ids, labels: Ids, mask: NDArray[np.bool_]) -> list[Ids]:
    return [np.stack([ids[mask], labels[mask]])]
