"""A spreading matrix cut into row parts, each in files of its own: no machine has to hold it as a
whole.

A part is a CSR matrix over all columns, its columns sorted, so the block of part i that reads part
j's rows is a range of every row, and plain arrays that workers map are all there is on disk."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph.propagate.adjacency import check_norm, scale_of, scaled


@dataclass(frozen=True)
class _Reading:
    """How edges are read from disk.

    Attributes:
        edges: edges read at once.
    """

    edges: int = 1 << 20


_READING = _Reading()
INDEX = "partitions.json"


@dataclass(frozen=True)
class Partitions:
    """The folder of a matrix in row parts; made by `partition` or `partition_edges`.

    Attributes:
        folder: where the parts lie; workers on other machines need to see it under the same path.
    """

    folder: Path

    @cached_property
    def _index(self) -> dict[str, list[Any]]:
        try:
            stored = json.loads((self.folder / INDEX).read_text())
            bounds = stored["bounds"]
            reads = stored["reads"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.folder} holds no partitioned graph", got=str(error)) from error
        if not _growing(bounds) or bounds[0] != 0 or len(bounds) < 2:
            raise DataError(
                f"{self.folder / INDEX} must list growing bounds from 0", got=str(bounds)[:80]
            )
        parts = range(len(bounds) - 1)
        if len(reads) != len(parts) or not all(
            _growing(row) and all(j in parts for j in row) for row in reads
        ):
            raise DataError(
                f"{self.folder / INDEX} must list the parts that each part reads",
                got=str(reads)[:80],
            )
        return {"bounds": bounds, "reads": reads}

    @property
    def bounds(self) -> list[int]:
        """Part i has the rows bounds[i] to bounds[i + 1]."""
        return self._index["bounds"]

    @property
    def reads(self) -> list[list[int]]:
        """For each part the parts its rows have neighbours in; the other blocks are empty."""
        return self._index["reads"]

    @property
    def n_nodes(self) -> int:
        return self.bounds[-1]

    @property
    def rows(self) -> list[slice]:
        return [slice(first, last) for first, last in itertools.pairwise(self.bounds)]

    def load(self, part: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Row starts, columns and values of a part, mapped from disk.

        Args:
            part: number of the part.
        """
        starts, columns, values = (
            np.load(self.folder / f"{part:05d}.{kind}.npy", mmap_mode="r")
            for kind in ("starts", "columns", "values")
        )
        return starts, columns, values

    def traffic(self, features: int, hops: int) -> int:
        """The most bytes that can move between workers: each part to each other one that reads it,
        in every hop.

        Args:
            features: columns of the features.
            hops: how many hops.
        """
        sizes = np.diff(self.bounds)
        moved = sum(int(sizes[j]) for i, row in enumerate(self.reads) for j in row if j != i)
        return hops * moved * features * 4

    def _keep(self, part: int, starts: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        for kind, array in (("starts", starts), ("columns", columns), ("values", values)):
            np.save(self.folder / f"{part:05d}.{kind}.npy", np.asarray(array), allow_pickle=False)

    def _finish(self, bounds: list[int]) -> Partitions:
        """The index is written last: a folder without it is not a whole one."""
        reads = []
        for part in range(len(bounds) - 1):
            homes = np.searchsorted(bounds, self.load(part)[1], side="right") - 1
            reads.append(np.unique(homes).tolist())
        (self.folder / INDEX).write_text(json.dumps({"bounds": bounds, "reads": reads}))
        return self


def _growing(numbers: Any) -> bool:
    whole = isinstance(numbers, list) and all(type(number) is int for number in numbers)
    return whole and all(a < b for a, b in itertools.pairwise(numbers))


def partition(matrix: sparse.csr_matrix, folder: Path | str, parts: int) -> Partitions:
    """Cut a matrix that is in memory; where its columns are not sorted, sums end on other last bits
    than it gives.

    Args:
        matrix: sparse, float32, shape (N, N).
        folder: where the parts go.
        parts: how many row parts.
    """
    made = _begun(folder)
    bounds = _even_bounds(matrix.shape[0], parts)
    for part, (first, last) in enumerate(itertools.pairwise(bounds)):
        rows = matrix[first:last]
        rows.sort_indices()
        starts = rows.indptr.astype(np.int64)
        columns = rows.indices.astype(np.int32)
        made._keep(part, starts, columns, rows.data.astype(np.float32, copy=False))
    return made._finish(bounds)


def partition_edges(
    edge_index: NDArray[np.integer], n_nodes: int, folder: Path | str, parts: int, norm: str = "sym"
) -> Partitions:
    """Cut and normalise a graph from its edges, which may be mapped from disk; as `normalise`
    would, part by part.

    Needs memory for the nodes' degrees and for the edges of one part.

    Args:
        edge_index: int64, shape (2, E).
        n_nodes: N.
        folder: where the parts go.
        parts: how many row parts.
        norm: one of `NORMS`.
    """
    check_norm(norm)
    made = _begun(folder)
    bounds = _even_bounds(n_nodes, parts)
    buckets = [made.folder / f"{part:05d}.edges" for part in range(len(bounds) - 1)]
    _sort_into(buckets, edge_index, bounds)
    degrees = np.empty(n_nodes, dtype=np.int64)
    for part, (first, last) in enumerate(itertools.pairwise(bounds)):
        starts, columns = _part_pattern(buckets[part], first, last, n_nodes)
        degrees[first:last] = np.diff(starts)
        made._keep(part, starts, columns, np.zeros(0, dtype=np.float32))
        buckets[part].unlink()
    scale = scale_of(degrees.astype(np.float32), norm)
    for part, (first, last) in enumerate(itertools.pairwise(bounds)):
        starts, columns, _ = made.load(part)
        values = scaled(scale[first:last], starts, columns, scale, norm)
        np.save(made.folder / f"{part:05d}.values.npy", values, allow_pickle=False)
    return made._finish(bounds)


def _even_bounds(n_nodes: int, parts: int) -> list[int]:
    """Row bounds of parts of about the same size."""
    if parts < 1:
        raise ConfigError("parts must be at least 1", got=parts)
    return np.unique(np.linspace(0, n_nodes, min(parts, n_nodes) + 1).astype(np.int64)).tolist()


def _begun(folder: Path | str) -> Partitions:
    made = Partitions(Path(folder))
    made.folder.mkdir(parents=True, exist_ok=True)
    (made.folder / INDEX).unlink(missing_ok=True)
    return made


def _sort_into(buckets: list[Path], edge_index: NDArray[np.integer], bounds: list[int]) -> None:
    """Every edge, both ways, goes to the file of the part its row lies in."""
    files = [bucket.open("wb") for bucket in buckets]
    try:
        for rows, columns in _directed_chunks(edge_index, bounds[-1]):
            homes = np.searchsorted(bounds, rows, side="right") - 1
            order = np.argsort(homes, kind="stable")
            ends = np.searchsorted(homes[order], np.arange(len(buckets) + 1))
            pairs = np.stack([rows[order], columns[order]], axis=1).astype(np.int64)
            for file, (first, last) in zip(files, itertools.pairwise(ends.tolist()), strict=True):
                pairs[first:last].tofile(file)
    finally:
        for file in files:
            file.close()


def _directed_chunks(
    edge_index: NDArray[np.integer], n_nodes: int
) -> Iterator[tuple[NDArray[np.int64], ...]]:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        raise DataError(
            "edge_index must be integers of shape (2, edges)",
            got=(edge_index.dtype, edge_index.shape),
        )
    for first in range(0, edge_index.shape[1], _READING.edges):
        source, target = np.asarray(edge_index[:, first : first + _READING.edges], dtype=np.int64)
        low = min(source.min(), target.min())
        high = max(source.max(), target.max())
        if low < 0 or high >= n_nodes:
            raise DataError(
                f"edge_index must hold node ids in 0..{n_nodes - 1}", got=f"{low} to {high}"
            )
        yield np.concatenate([source, target]), np.concatenate([target, source])


def _part_pattern(
    bucket: Path, first: int, last: int, n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Row starts and sorted columns of the part's rows of A + I, each neighbour once."""
    pairs = np.fromfile(bucket, dtype=np.int64).reshape(-1, 2)
    loops = np.arange(first, last, dtype=np.int64)
    keys = np.concatenate([pairs[:, 0] * n_nodes + pairs[:, 1], loops * n_nodes + loops])
    keys = np.unique(keys)
    starts = np.searchsorted(keys, np.arange(first, last + 1, dtype=np.int64) * n_nodes)
    return starts.astype(np.int64), (keys % n_nodes).astype(np.int32)
