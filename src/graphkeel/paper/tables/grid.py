"""The grid: every cell that the store does not hold yet, on all cores, stored as soon as it is
done.

The parent process alone writes to the store, so the same grid runs on a cluster whose workers share
no disk. A cell that fails is a result like any other: stored with its message, the rest goes on. So
is a cell whose worker dies (out of memory, say): the cells that were being worked on are tried once
more, each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import joblib

from graphkeel.paper.tables.backends import Workers, joblib_backend, lost_worker
from graphkeel.paper.tables.cells import DONE, FAILED, Cell, CellStore, Measured
from graphkeel.paper.tables.cost import CPU_SECONDS
from graphkeel.paper.tables.memory import peak_mb, reset_peak
from graphkeel.paper.tables.orphans import end_with
from graphkeel.paper.tables.spec import RunSpec

if TYPE_CHECKING:
    from graphkeel.paper.tables.run import Prepared

OnCell = Callable[[Cell, Measured], None]
Job = Callable[[Cell], Measured]


def run_grid(
    cells: Sequence[Cell],
    store: CellStore,
    workers: Workers | None = None,
    *,
    on_cell: OnCell = lambda cell, measured: None,
    job: Job | None = None,
) -> None:
    """Compute the given cells, in their order, and store each; `on_cell` hears of it afterwards."""

    def keep(cell: Cell, measured: Measured) -> None:
        store.keep(cell, measured)
        on_cell(cell, measured)

    waiting = list(
        {cell.key: cell for cell in cells}.values()
    )  # rows that share a cell share its computation
    while waiting:
        lost = _round(waiting, workers or Workers(), keep, job or run_cell)
        for cell in lost.suspects:
            keep(cell, _alone(cell, job or run_cell))
        waiting = lost.rest


# ---- one round: until all is done or a worker dies


@dataclass(frozen=True)
class _Left:
    suspects: list[Cell]  # being worked on when a worker died
    rest: list[Cell]  # not begun


def _round(cells: list[Cell], workers: Workers, keep: OnCell, job: Job) -> _Left:
    handed_out: list[Cell] = []
    finished: set[str] = set()

    def hand_out() -> Iterator[Any]:
        for cell in cells:
            handed_out.append(cell)
            yield joblib.delayed(_labelled)(job, cell)

    try:
        for cell, measured in _results(hand_out(), workers, len(cells)):
            finished.add(cell.key)
            keep(cell, measured)
    except lost_worker(workers):
        suspects = [cell for cell in handed_out if cell.key not in finished]
        return _Left(suspects, cells[len(handed_out) :])
    return _Left([], [])


def _results(tasks: Iterator[Any], workers: Workers, total: int) -> Iterable[tuple[Cell, Measured]]:
    """Results as they come; Ray cannot stream, and hands them over in rounds of one cell a
    worker."""
    settings = {"n_jobs": workers.jobs, "batch_size": 1, "pre_dispatch": "n_jobs"}
    with joblib_backend(workers):
        if workers.backend == "ray":
            with joblib.Parallel(**settings) as pool:  # the same processes in every round
                for _ in range(0, total, workers.jobs):
                    yield from pool(islice(tasks, workers.jobs))
            return
        yield from joblib.Parallel(return_as="generator_unordered", **settings)(tasks)


def _labelled(job: Job, cell: Cell) -> tuple[Cell, Measured]:
    return cell, job(cell)


def _alone(cell: Cell, job: Job) -> Measured:
    """A cell in a process of its own, whose death is then certainly this cell's."""
    start = time.perf_counter()
    one = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=end_with, initargs=(os.getpid(),)
    )
    with one as pool:
        try:
            return pool.submit(job, cell).result()
        except BrokenProcessPool:
            message = "the worker process died, most likely out of memory"
            return Measured(FAILED, time.perf_counter() - start, 0.0, {}, message)


# ---- one cell, in a worker


def run_cell(cell: Cell) -> Measured:
    """Compute a cell; whatever goes wrong becomes its message."""
    import torch

    from graphkeel.paper.tables.run import apply_method

    torch.set_num_threads(1)  # the cores belong to the other workers
    reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    try:
        prepared = _prepared(json.dumps(asdict(_base_of(cell.spec)), sort_keys=True), cell.seed)
        result, _ = apply_method(cell.spec, cell.seed, prepared)
        result[CPU_SECONDS] = time.process_time() - cpu
        json.dumps(
            result, allow_nan=False
        )  # what cannot be stored is this cell's failure, not the grid's
        return Measured(DONE, time.perf_counter() - start, peak_mb(), result)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Measured(FAILED, time.perf_counter() - start, peak_mb(), {}, message)


def _base_of(spec: RunSpec) -> RunSpec:
    """The part of a specification that splits and trains: what the methods of a table have in
    common."""
    return RunSpec(
        dataset=spec.dataset,
        model=spec.model,
        split=spec.split,
        features=spec.features,
        pca=spec.pca,
        model_options=spec.model_options,
    )


@lru_cache(maxsize=2)
def _prepared(spec: str, seed: int) -> Prepared:
    from graphkeel.paper.tables.run import prepare

    return prepare(RunSpec(**json.loads(spec)), seed)
