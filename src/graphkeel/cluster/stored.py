"""Arrays and sparse matrices in files, of which a worker reads the rows that it needs.

An array is cut by rows into `.npy` files. Rows are read by position or picked from one mapped file
after the other, and no file stays mapped: its pages would count as the worker's memory."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.graph.propagate.rowwise import Nodes

Ids = NDArray[np.int64]


class Stored:
    """An array of shape (N, …) in files of some rows each; `array[rows]` reads them.

    Args:
        paths: of the files, in the order of the rows.
        bounds: file i has the rows bounds[i] to bounds[i + 1].
        tail: shape of a row.
        dtype: as which values are read.
        owner: whatever deletes the files when nobody needs them any more.
    """

    home: Any = None  # the cluster that works on it

    def __init__(
        self,
        paths: list[str],
        bounds: list[int],
        tail: tuple[int, ...],
        dtype: Any,
        owner: Any = None,
    ) -> None:
        self.paths = paths
        self.bounds = bounds
        self.dtype = np.dtype(dtype)
        self.shape = (bounds[-1], *tail)
        self.owner = owner

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def reshape(self, *shape: Any) -> Stored:
        """Rows of another shape, in the same files."""
        wanted = shape[0] if len(shape) == 1 else shape
        width = self.size // len(self)
        known = int(np.prod([n for n in wanted[1:] if n != -1], dtype=np.int64))
        tail = tuple(width // known if n == -1 else int(n) for n in wanted[1:])
        found = Stored(self.paths, self.bounds, tail, self.dtype, self.owner)
        found.home = self.home
        return found

    def __getitem__(self, key: Any) -> NDArray[Any]:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            found = self._range(first, last) if step == 1 else self._picked(Nodes(len(self))[rows])
        else:
            found = self._picked(np.asarray(rows))
        return found[(slice(None), *rest)] if rest else found

    def _range(self, first: int, last: int) -> NDArray[Any]:
        found = np.empty((max(0, last - first), *self.shape[1:]), self.dtype)
        for path, start, low, high in self._spans(first, last):
            found[low - first : high - first] = self._shaped(
                read_rows(path, low - start, high - start)
            )
        return found

    def _spans(self, first: int, last: int) -> Iterator[tuple[str, int, int, int]]:
        part = int(np.searchsorted(self.bounds, first, side="right")) - 1
        while first < last:
            high = min(last, self.bounds[part + 1])
            yield self.paths[part], self.bounds[part], first, high
            first = high
            part += 1

    def _shaped(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(len(rows), *self.shape[1:])

    def _picked(self, ids: Ids) -> NDArray[Any]:
        if len(ids) > 1 and not (np.diff(ids) > 0).all():
            wanted, place = np.unique(ids, return_inverse=True)
            return self._picked(wanted)[place]  # type: ignore[no-any-return]
        found = np.empty((len(ids), *self.shape[1:]), self.dtype)
        ends = np.searchsorted(ids, self.bounds)
        for part, (low, high) in enumerate(itertools.pairwise(ends.tolist())):
            if low < high:
                inside = ids[low:high] - self.bounds[part]
                found[low:high] = self._shaped(pick_rows(self.paths[part], inside))
        return found


def read_rows(path: str, first: int, last: int) -> NDArray[Any]:
    """Rows of an `.npy` file, read without mapping it."""
    tail, dtype, start = _layout(path)
    width = math.prod(tail)
    with Path(path).open("rb") as file:
        file.seek(start + first * width * dtype.itemsize)
        rows = np.fromfile(file, dtype, (last - first) * width)
    return rows.reshape(last - first, *tail)


@lru_cache(maxsize=1 << 14)
def _layout(path: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape of a row, type, and where rows begin; a file is written once, so that this stays so."""
    with Path(path).open("rb") as file:
        shape, dtype = _header(file)
        return shape[1:], dtype, file.tell()


def pick_rows(path: str, ids: Ids) -> NDArray[Any]:
    """Some rows of an `.npy` file; read as a whole where most of it is needed."""
    span = int(ids[-1] - ids[0]) + 1
    if 4 * len(ids) >= span:
        return read_rows(path, int(ids[0]), int(ids[0]) + span)[ids - ids[0]]
    return np.load(path, mmap_mode="r", allow_pickle=False)[ids]  # type: ignore[no-any-return]


def header_of(path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an `.npy` file."""
    try:
        with path.open("rb") as file:
            shape, dtype = _header(file)
            missing = file.tell() + math.prod(shape) * dtype.itemsize - path.stat().st_size
            if missing > 0:
                raise ValueError(f"a file that is {missing} bytes too short")
            return shape, dtype
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} is no .npy file of plain numbers", got=str(error)[:100], fix="Write it again."
        ) from error


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version >= (2, 0):
        read = np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(file)
    if dtype.hasobject or (in_columns and len(shape) > 1):
        raise ValueError("rows that lie together, in C order, are needed")
    return shape, dtype


def write_array(path: Path, values: Any) -> None:
    """Written under another name, then renamed: a file of that name is always a whole one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        np.save(file, np.ascontiguousarray(values), allow_pickle=False)
    Path(file.name).replace(path)


class StoredMatrix:
    """A sparse matrix (N, N) in row parts; a part names the columns it reads, its halo, only once.

    Args:
        folder: of the parts.
        bounds: part i has the rows bounds[i] to bounds[i + 1].
    """

    home: Any = None

    def __init__(self, folder: str, bounds: list[int], owner: Any = None) -> None:
        self.folder = folder
        self.bounds = bounds
        self.shape = (bounds[-1], bounds[-1])
        self.owner = owner

    def part(self, part: int) -> tuple[sparse.csr_matrix, Ids]:
        """Its rows, over the columns of its halo, and these columns, ascending."""
        kinds = ("starts", "columns", "values", "halo")
        starts, columns, values, halo = (np.load(self._path(part, kind)) for kind in kinds)
        shape = (len(starts) - 1, len(halo))
        return sparse.csr_matrix((values, columns, starts), shape=shape), halo

    @property
    def nbytes(self) -> int:
        """Of its entries in one piece, as they are in files."""
        kinds = ("starts", "columns", "values")
        parts = range(len(self.bounds) - 1)
        return sum(self._path(part, kind).stat().st_size for part in parts for kind in kinds)

    def whole(self) -> sparse.csr_matrix:
        """All of it, here."""
        parts = [self._over_all(*self.part(i)) for i in range(len(self.bounds) - 1)]
        return sparse.vstack(parts, format="csr")

    def _over_all(self, rows: sparse.csr_matrix, halo: Ids) -> sparse.csr_matrix:
        """Rows over all columns."""
        columns = halo.astype(rows.indices.dtype)[rows.indices]
        shape = (rows.shape[0], self.shape[1])
        return sparse.csr_matrix((rows.data, columns, rows.indptr), shape=shape)

    def keep(self, part: int, rows: sparse.csr_matrix, halo: Ids) -> None:
        """Write a part."""
        kind = np.int32 if rows.nnz <= np.iinfo(np.int32).max else np.int64
        arrays = {"starts": rows.indptr.astype(kind), "columns": rows.indices.astype(kind)}
        for name, values in {**arrays, "values": rows.data, "halo": halo}.items():
            write_array(self._path(part, name), values)

    def _path(self, part: int, kind: str) -> Path:
        return Path(self.folder, f"{part:05d}.{kind}.npy")

    def __getitem__(self, nodes: Any) -> sparse.csr_matrix:
        """Rows over all columns."""
        ids = Nodes(self.shape[0])[nodes] if isinstance(nodes, slice) else np.asarray(nodes)
        homes = np.searchsorted(self.bounds, ids, side="right") - 1
        found = [sparse.csr_matrix((0, self.shape[1]), dtype=np.float32)]
        order = np.argsort(homes, kind="stable")
        for home in np.unique(homes):
            rows, halo = self.part(int(home))
            rows = rows[ids[homes == home] - self.bounds[home]]
            found.append(self._over_all(rows, halo))
        joined = found[-1] if len(found) == 2 else sparse.vstack(found, format="csr")
        return joined if (np.diff(order) == 1).all() else joined[np.argsort(order)]

    def __matmul__(self, values: Any) -> Any:
        return self.home.times(self, values)


def compact(rows: sparse.csr_matrix) -> tuple[sparse.csr_matrix, Ids]:
    """A matrix over the columns it has, in the same order, and these columns."""
    halo, columns = np.unique(rows.indices, return_inverse=True)
    shape = (rows.shape[0], len(halo))
    found = sparse.csr_matrix((rows.data, columns, rows.indptr), shape=shape)
    return found, halo.astype(np.int64)
