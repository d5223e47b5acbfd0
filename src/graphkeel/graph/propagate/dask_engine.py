"""The Dask engine: the product in blocks, on the processes of a cluster; the result is the local
one.

Row part i of the next hop is summed over the parts j it reads from, one after the other and in the
order of the columns, as the local engine sums: every bit is the same. A task is given one part of
the features and maps the rows of the matrix that it needs from disk. Tasks are pure, so what a dead
worker held is computed again by the others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.core.errors import ConfigError
from graphkeel.core.optional import import_optional
from graphkeel.graph.propagate.local import add_teleport
from graphkeel.graph.propagate.partitions import Partitions, partition

Array = NDArray[np.float32]


@dataclass(frozen=True)
class _Sharing:
    """How the work is cut for a cluster.

    Attributes:
        blocks: column blocks of all nodes that would fill the cluster's memory.
        parts: row parts per thread.
    """

    blocks: int = 16
    parts: int = 3


_SHARING = _Sharing()


def stream(
    matrix: sparse.csr_matrix | Partitions,
    x: Any,
    out: Array,
    hops: int,
    teleport: float,
    block: int | None,
    *,
    address: str | None = None,
    workers: int | None = None,
    parts: int | None = None,
    scratch: Path | str | None = None,
) -> None:
    """All hops, one block of columns after the other; finished row parts are written to `out` as
    they come."""
    if address is not None and workers is not None:
        raise ConfigError(
            "a running cluster has the workers it has", got=f"workers={workers} with an address"
        )
    with ExitStack() as held:
        client = held.enter_context(_connected(address, workers))
        held.enter_context(client.as_current())
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="keel-", dir=scratch)))
        threads = sum(client.nthreads().values())
        if not isinstance(matrix, Partitions):
            matrix = partition(matrix, folder / "matrix", parts or _SHARING.parts * max(threads, 1))
        source = _source(x, folder)
        width = block or _width(client, matrix.n_nodes)
        for first in range(0, x.shape[1], width):
            columns = slice(first, min(first + width, x.shape[1]))
            _gather(
                client, _graph(matrix, source, columns, hops, teleport), matrix.rows, out, columns
            )


@contextmanager
def _connected(address: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the cluster at `address`, or of one that lives as long as the block and listens
    on loopback alone."""
    distributed = import_optional("dask.distributed", extra="dask")
    if address is not None:
        try:
            client = distributed.Client(address, timeout=30, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ConfigError("no Dask scheduler answers", got=f"{address}: {error}") from error
        with client:
            client.wait_for_workers(1, timeout=60)
            yield client
        return
    with local_cluster(workers or os.cpu_count() or 1) as cluster, cluster.get_client() as client:
        yield client


def local_cluster(workers: int) -> Any:
    """Worker processes of this machine that nobody else can reach."""
    distributed = import_optional("dask.distributed", extra="dask")
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )


def _width(client: Any, n_nodes: int) -> int:
    """Columns of all nodes at once: a small share of the cluster's memory, for each hop keeps a few
    of them."""
    limits = [
        worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()
    ]
    return max(1, int(sum(limit or 2**31 for limit in limits) // (_SHARING.blocks * 4 * n_nodes)))


# ---- where features come from


@dataclass(frozen=True)
class _File:
    """Features in an `.npy` file that every worker maps for itself."""

    path: str

    def part(self, rows: slice, columns: slice) -> Any:
        return import_optional("dask", extra="dask").delayed(_read, pure=True)(
            self.path, rows, columns
        )


@dataclass(frozen=True)
class _Lazy:
    """A dask array: its own tasks make the parts, on the cluster."""

    array: Any

    def part(self, rows: slice, columns: slice) -> Any:
        return import_optional("dask", extra="dask").delayed(_as_float, pure=True)(
            self.array[rows, columns]
        )


def _source(x: Any, folder: Path) -> _File | _Lazy:
    if hasattr(x, "__dask_graph__"):
        return _Lazy(x)
    path = _file_of(x)
    if path is None:
        path = str(folder / "features.npy")
        np.save(path, x, allow_pickle=False)
    return _File(path)


def _file_of(x: Any) -> str | None:
    """The `.npy` file that x maps as a whole, if it does."""
    name = getattr(x, "filename", None)
    if not isinstance(x, np.memmap) or name is None or not str(name).endswith(".npy"):
        return None
    whole = np.load(name, mmap_mode="r", allow_pickle=False)
    same = whole.shape == x.shape and whole.dtype == x.dtype and whole.strides == x.strides
    return str(Path(name).resolve()) if same and whole.offset == x.offset else None


def _read(path: str, rows: slice, columns: slice) -> Array:
    return np.ascontiguousarray(
        np.load(path, mmap_mode="r", allow_pickle=False)[rows, columns], dtype=np.float32
    )


def _as_float(values: Any) -> Array:
    return np.ascontiguousarray(values, dtype=np.float32)


# ---- the hops, as a graph of tasks


def _graph(
    matrix: Partitions, source: _File | _Lazy, columns: slice, hops: int, teleport: float
) -> list[Any]:
    """The row parts after the last hop, not computed yet."""
    delayed = import_optional("dask", extra="dask").delayed
    first = [source.part(rows, columns) for rows in matrix.rows]
    add = delayed(_add_block, pure=True)
    finish = delayed(_teleported, pure=True)
    folder = str(matrix.folder.resolve())
    current = first
    for _ in range(hops):
        following = []
        for i, own in enumerate(first):
            total = None
            for j in matrix.reads[i] or [
                i
            ]:  # empty blocks add nothing, but a part without any is still zero
                total = add(folder, i, matrix.bounds[j], current[j], total)
            following.append(finish(total, own, teleport) if teleport else total)
        current = following
    return current


def _add_block(folder: str, part: int, first: int, values: Array, total: Array | None) -> Array:
    """The sums that the rows of a part get from the nodes first, first + 1, … whose values are
    given, on top of `total`."""
    starts, columns, weights = Partitions(Path(folder)).load(part)
    shape = (len(starts) - 1, values.shape[1])
    result = (
        np.zeros(shape, dtype=np.float32) if total is None else total.copy()
    )  # inputs may be needed again
    _accumulate(starts, columns, weights, values, first, result)
    return result


def _teleported(total: Array, own: Array, teleport: float) -> Array:
    return add_teleport(total.copy(), own, teleport)  # inputs may be needed again


@njit(cache=True, nogil=True)
def _accumulate(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    weights: Array,
    values: Array,
    first: int,
    result: Array,
) -> None:  # pragma: no cover - compiled
    last = first + values.shape[0]
    width = values.shape[1]
    for i in range(len(starts) - 1):
        low = starts[i]
        high = starts[i + 1]
        while low < high:  # the first column of the block, by bisection
            middle = (low + high) // 2
            if columns[middle] < first:
                low = middle + 1
            else:
                high = middle
        for p in range(low, starts[i + 1]):
            j = columns[p]
            if j >= last:
                break
            for k in range(width):
                result[i, k] += weights[p] * values[j - first, k]


def _gather(client: Any, parts: list[Any], rows: list[slice], out: Array, columns: slice) -> None:
    """One finished part after the other: never more than one of them is here."""
    distributed = import_optional("dask.distributed", extra="dask")
    futures = client.compute(parts)
    place = dict(zip(futures, rows, strict=True))
    for future in distributed.as_completed(futures):
        try:
            out[place[future], columns] = future.result()
        except distributed.KilledWorker as error:
            fix = "Give the workers more memory, or use more parts or a smaller block."
            raise ConfigError("one task killed several workers", got=str(error), fix=fix) from error
        if isinstance(out, np.memmap):
            out.flush()
        future.release()
