"""Work on the rows of arrays by the workers of a Dask cluster: a task for each part of the rows.

A task reads the rows that it needs from files, writes its part of the result under another name,
renames it, and returns something small. Nothing is kept in a worker's memory, and whoever does a
task again gets the same: Dask's own rescheduling survives a worker that dies."""

from __future__ import annotations

import itertools
import logging
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.cluster.lazy import Lazy
from graphkeel.cluster.stored import Stored, StoredMatrix, write_array
from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.optional import import_optional
from graphkeel.graph.propagate.local import STREAM, multiply, pagerank, row_blocks

Array = NDArray[Any]
_COPIES = 6  # of the columns that walk: as they were, three in work, their sum, and one on its way


@dataclass(frozen=True)
class ClusterSettings:
    """How work is cut.

    Attributes:
        rows: most rows of a part; fewer where it takes that many tasks to keep all threads busy.
        block: numbers of the features that are read at once.
        edges: read at once.
        halo: share of a thread's memory for the values that a part reads from its neighbours; where
            they take more, columns are worked on one group after the other.
        walk: share for a graph and the columns that walk all over it in one task; where they take
            more, every step is a round of tasks on parts of the rows.
        waiting: seconds in which a scheduler must answer, and a first worker be there.
    """

    rows: int = 1 << 16
    block: int = 1 << 22
    edges: int = 1 << 20
    halo: float = 0.1
    walk: float = 0.3
    waiting: float = 30.0

    def bounds(self, n_rows: int, threads: int) -> list[int]:
        """Row bounds of the parts: whole blocks, so that sums are those of one machine.

        Args:
            n_rows: of all of them.
            threads: of the cluster.
        """
        blocks = -(-n_rows // (max(1, threads) * STREAM.part))
        rows = min(self.rows, blocks * STREAM.part)
        return [*range(0, n_rows, rows), n_rows]


class Cluster:
    """Where arrays in files live, and who works on them.

    Args:
        client: of a running cluster.
        scratch: a folder that all workers see.
        n_rows: of the arrays.
        width: of the widest of them.
    """

    def __init__(
        self,
        client: Any,
        scratch: Path,
        n_rows: int,
        width: int = 1,
        settings: ClusterSettings = ClusterSettings(),
    ) -> None:
        self.client = client
        self.scratch = scratch
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        self.threads = sum(one["nthreads"] for one in workers)
        self.bounds = settings.bounds(n_rows, self.threads)
        memory = min((one["memory_limit"] or 2**31) / one["nthreads"] for one in workers)
        self.halo_bytes = int(settings.halo * memory)
        self.walk_bytes = int(settings.walk * memory)
        self.edges = settings.edges
        self.block = max(64, min(STREAM.part, settings.block // width))
        self.tasks = 0

    def __reduce__(self) -> Any:
        """Sent to a worker, it is None: there arrays have no home, and work is done."""
        return _nowhere, ()

    @property
    def n_parts(self) -> int:
        return len(self.bounds) - 1

    # ---- what `graphkeel.graph.propagate.rowwise` and `local` ask for

    def rowwise(self, function: Callable[..., Array], arrays: Sequence[Any]) -> Any:
        """function(part, …) of all rows, in files; of tensors described, and not yet computed."""
        if isinstance(arrays[0], Lazy):
            return Lazy(self, len(self), function, arrays)
        return self.written(partial(_rowwise, function, arrays, self.block))

    def written(self, task: Callable[..., Any]) -> Stored:
        """One array of the files that task(folder, span) writes for every part."""
        folder = self.folder()
        return self._made(folder, self.each(partial(task, folder), self.spans()))

    def fold(
        self, function: Callable[..., Any], arrays: Sequence[Any], combine: Callable[..., Any]
    ) -> Any:
        """function(part, …) of all rows, combined in the order of the blocks, as one machine
        does."""
        parts = self.each(partial(_fold, function, arrays, combine, self.block), self.spans())
        found = None
        for block in (block for part in parts for block in part):
            found = block if found is None else combine(found, block)
        return found

    def product(self, matrix: StoredMatrix, values: Stored) -> Stored:
        """matrix @ values."""
        return self.written(partial(_product, matrix, values, self.halo_bytes))

    def walk(
        self,
        matrix: StoredMatrix,
        values: Stored,
        steps: int,
        teleport: float,
        series: tuple[float, ...],
    ) -> Stored:
        """`pagerank` of the values: some columns a task where the graph fits, else by parts."""
        left = self.walk_bytes - 2 * matrix.nbytes
        width = min(-(-values.shape[1] // self.threads), left // (_COPIES * 4 * len(values)))
        if width < 1:
            return self._walk_by_parts(matrix, values, steps, teleport, series)
        firsts = range(0, values.shape[1], width)
        columns = [slice(first, min(first + width, values.shape[1])) for first in firsts]
        folder = self.folder()
        walked = partial(_walked, matrix, values, steps, teleport, self.bounds, folder)
        self.each(walked, list(enumerate(columns)))
        found = self.written(partial(_side_by_side, folder, len(columns)))
        self.owned(folder)  # nobody keeps it, so it goes
        return found

    def _walk_by_parts(
        self,
        matrix: StoredMatrix,
        values: Stored,
        steps: int,
        teleport: float,
        series: tuple[float, ...],
    ) -> Stored:
        """Step by step, or term by term where the Chebyshev series is shorter."""
        start: Any = self.tensor(values)
        if len(series) > steps:
            found = start
            for _ in range(steps):
                found = (1.0 - teleport) * (matrix @ found) + teleport * start
            return found.numpy()  # type: ignore[no-any-return]
        before, now = start, matrix @ start
        found = series[0] * before + series[1] * now
        for term in series[2:]:
            before, now = now, (2.0 * (matrix @ now) - before).stored()
            found = (found + term * now).stored()
        return found.numpy()  # type: ignore[no-any-return]

    def times(self, matrix: StoredMatrix, values: Lazy) -> Lazy:
        """matrix @ values, for tensors."""
        return self.tensor(self.product(matrix, values.numpy()))

    # ---- tensors

    def tensor(self, array: Stored) -> Lazy:
        """The array as torch's functions take it."""
        return Lazy.of(array, self)

    def __len__(self) -> int:
        return self.bounds[-1]

    # ---- tasks

    def spans(self) -> list[tuple[int, int, int]]:
        """Number, first and last row of every part."""
        return [(i, *self.bounds[i : i + 2]) for i in range(self.n_parts)]  # type: ignore[misc]

    def each(self, task: Callable[..., Any], spans: Sequence[Any]) -> list[Any]:
        """task(span) for every span, by whichever worker is free; in the order of the spans."""
        with _said_why():
            shared = self.client.submit(
                _itself, task, key=f"keel-task-{uuid.uuid4().hex}", pure=False
            )
            futures = self.client.map(_run, [shared] * len(spans), spans, pure=False)
            self.tasks += len(spans)
            return list(self.client.gather(futures))

    def folder(self) -> Path:
        """A new folder in the scratch folder."""
        return Path(tempfile.mkdtemp(prefix="array-", dir=self.scratch))

    def owned(self, folder: Path) -> Any:
        """An object with which the folder goes."""
        owner = _Owner()
        weakref.finalize(owner, shutil.rmtree, str(folder), ignore_errors=True)
        return owner

    def _made(self, folder: Path, kinds: list[tuple[tuple[int, ...], str]]) -> Stored:
        tail, dtype = kinds[0]
        paths = [str(folder / f"{part:05d}.npy") for part in range(self.n_parts)]
        found = Stored(paths, self.bounds, tail, dtype, self.owned(folder))
        found.home = self
        return found

    def at_home(self, array: Any) -> Any:
        """The array, on which this cluster works from now on."""
        array.home = self
        return array


class _Owner:
    """Files live as long as it does; a worker's copies own nothing."""

    def __reduce__(self) -> Any:
        return _nowhere, ()


def _nowhere() -> None:
    return None


@contextmanager
def _said_why() -> Iterator[None]:
    """Failures of a cluster as errors that say what to do."""
    distributed = import_optional("dask.distributed", extra="dask")
    try:
        yield
    except distributed.KilledWorker as error:
        raise ConfigError(
            "one task has ended several workers",
            got=str(error)[:200],
            fix="Give the workers more memory, or fewer threads each.",
        ) from error
    except (CancelledError, distributed.comm.CommClosedError, TimeoutError) as error:
        raise ConfigError(
            "the Dask cluster has gone",
            got=type(error).__name__,
            fix="Start it again, and fit again: nothing was written.",
        ) from error
    except Exception as error:  # of a worker, as the text of an exception of its own
        if "No module named" not in str(error):
            raise
        raise ConfigError(
            "a worker lacks a module that it needs",
            got=str(error)[:200],
            fix="Install this graphkeel, and the file with the model, where every worker runs.",
        ) from error


@contextmanager
def connected(
    scheduler: str | None, workers: int | None = None, settings: ClusterSettings = ClusterSettings()
) -> Iterator[Any]:
    """A client of the cluster at an address, or of one that lives as long as the block and listens
    on loopback alone."""
    distributed = import_optional("dask.distributed", extra="dask")
    with _silent():
        if scheduler is None:
            with local_cluster(workers or 2) as cluster, cluster.get_client() as client:
                yield client
            return
        with _client(distributed, scheduler, settings) as client:
            yield client


@contextmanager
def _silent() -> Iterator[None]:
    """Dask's own log is off: what it tells with tracebacks is told by the errors here."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _client(distributed: Any, scheduler: str, settings: ClusterSettings) -> Any:
    """Of a cluster that answers and has a worker."""
    try:
        client = distributed.Client(scheduler, timeout=settings.waiting, set_as_default=False)
        client.wait_for_workers(1, timeout=settings.waiting)
    except (OSError, ValueError, TimeoutError) as error:
        raise ConfigError(
            "no Dask scheduler with a worker answers",
            got=f"{scheduler}: {error}",
            fix="Start one with `dask scheduler` and `dask worker ADDRESS`, or leave it out: then"
            " workers of this machine do the work.",
        ) from error
    return client


def local_cluster(workers: int, **options: Any) -> Any:
    """Worker processes of this machine that nobody else can reach."""
    distributed = import_optional("dask.distributed", extra="dask")
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        **options,
    )


# ---- on the workers


def _itself(task: Any) -> Any:
    """A task that is sent once, and to a worker again if the one that has it dies."""
    return task


def _run(task: Callable[[Any], Any], span: Any) -> Any:
    import torch

    torch.set_num_threads(1)  # a worker's threads are Dask's, and sums are those of one thread
    with torch.no_grad():
        return task(span)


def _rowwise(
    function: Callable[..., Array],
    arrays: Sequence[Any],
    block_rows: int,
    folder: Path,
    span: Sequence[int],
) -> tuple[tuple[int, ...], str]:
    part, first, last = span
    found = None
    for rows in row_blocks(last, block_rows, first):
        block = np.asarray(function(*(array[rows] for array in arrays)))
        if found is None:
            found = np.empty((last - first, *block.shape[1:]), block.dtype)
        found[rows.start - first : rows.stop - first] = block
    assert found is not None
    return written(folder, part, found)


def written(folder: Path, part: int, values: Array) -> tuple[tuple[int, ...], str]:
    """A part's file; the shape of its rows, and their type."""
    write_array(folder / f"{part:05d}.npy", values)
    return values.shape[1:], values.dtype.str


def _fold(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    combine: Callable[..., Any],
    block_rows: int,
    span: Sequence[int],
) -> list[Any]:
    """A value for each block that one machine would take; whole numbers are combined, as their
    order does not matter."""
    found: list[Any] = []
    for rows in row_blocks(span[2], block_rows, span[1]):
        value = function(*(array[rows] for array in arrays))
        is_whole = getattr(value, "dtype", np.dtype(float)).kind in "iu"
        if found and (is_whole or block_rows < STREAM.part):
            found[0] = combine(found[0], value)
        else:
            found.append(value)
    return found


def _walked(
    matrix: StoredMatrix,
    values: Stored,
    steps: int,
    teleport: float,
    bounds: list[int],
    folder: Path,
    group: tuple[int, slice],
) -> None:
    """Some columns' walk over the whole graph, by the function of one machine."""
    number, columns = group
    some = np.empty((len(values), columns.stop - columns.start), np.float32)
    for rows in row_blocks(len(values)):
        some[rows] = values[rows, columns]
    some = pagerank(matrix.whole(), some, steps, teleport, some)
    for part, (first, last) in enumerate(itertools.pairwise(bounds)):
        write_array(folder / f"{part}-{number}.npy", some[first:last])


def _side_by_side(
    folder: Path, n_groups: int, out: Path, span: Sequence[int]
) -> tuple[tuple[int, ...], str]:
    groups = [np.load(folder / f"{span[0]}-{number}.npy") for number in range(n_groups)]
    return written(out, span[0], np.concatenate(groups, axis=1))


def _product(
    matrix: StoredMatrix, values: Stored, halo_bytes: int, folder: Path, span: Sequence[int]
) -> tuple[tuple[int, ...], str]:
    """Some columns after the others, so that the halo's values take no more than so many bytes."""
    part, first, last = span
    rows, halo = matrix.part(part)
    width = values.shape[1]
    found = np.empty((last - first, width), np.float32)
    group = max(1, min(width, halo_bytes // (4 * max(1, len(halo)))))
    for low in range(0, width, group):
        columns = slice(low, min(low + group, width))
        found[:, columns] = multiply(rows, _halo_values(values, halo, columns))
    return written(folder, part, found)


def _halo_values(values: Stored, halo: Array, columns: slice) -> NDArray[np.float32]:
    """Rows of the halo, of one file after the other, so that no more than one is here at once."""
    found = np.empty((len(halo), columns.stop - columns.start), np.float32)
    ends = np.searchsorted(halo, values.bounds)
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if low < high:
            found[low:high] = values[halo[low:high]][:, columns]
    return found


def check_shared(cluster: Cluster) -> None:
    """Refuse a scratch folder that workers do not see."""
    path = cluster.scratch / "seen"
    path.write_text("here")
    with _said_why():
        seen = cluster.client.run(_sees, str(path))
    if not all(seen.values()):
        raise DataError(
            "a worker does not see the output folder",
            got=str(cluster.scratch),
            fix="Choose one on storage that all workers share, under the same path.",
        )


def _sees(path: str) -> bool:
    return Path(path).exists()
