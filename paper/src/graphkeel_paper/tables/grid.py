"""The grid: every job that the store does not hold yet, on all cores, stored as soon as it is done.

The parent process alone writes to the store. A job that fails is a result like any other: stored
with its message, the rest goes on. So is a job whose worker dies (out of memory, say): the jobs
that were in work are tried once more, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from types import FrameType
from typing import Any

import joblib

from graphkeel.core.memory import peak_mb, reset_peak
from graphkeel.store.job import CPU_SECONDS, DONE, FAILED, Job, Measurement
from graphkeel.store.store import Store
from graphkeel_paper.fingerprint import commit
from graphkeel_paper.tables.costs import RowCosts

_OnJob = Callable[[Job, Measurement], None]
Measure = Callable[[Job], Measurement]


def run_grid(
    jobs: Sequence[Job],
    store: Store,
    workers: int = 2,
    *,
    on_job: _OnJob = lambda _job, _measurement: None,
    measure: Measure | None = None,
    costs: RowCosts | None = None,
) -> None:
    """Compute the given jobs, in their order, and store each."""
    known = costs or RowCosts(None)

    def keep(job: Job, measurement: Measurement) -> None:
        store.keep(job, measurement)
        known.learn(job, measurement)
        on_job(job, measurement)

    def measure_for(job: Job) -> Measure:
        return measure or partial(run_job, row_budget=known.limit(job))

    waiting = list({job.key: job for job in jobs}.values())
    while waiting:
        affordable = (job for job in waiting if not known.is_over(job))
        ended = _round(affordable, workers, keep, measure_for)
        for job in ended.suspects:
            keep(job, _measure_alone(job, measure_for(job)))
        waiting = [job for job in waiting if job.key not in ended.begun] if ended.early else []


# ---- one round: until all is done or a worker dies


@dataclass(frozen=True)
class _Ended:
    early: bool  # because a worker died
    begun: set[str]  # keys of the jobs that were handed out
    suspects: list[Job]  # in work when the worker died


def _round(
    jobs: Iterator[Job], workers: int, keep: _OnJob, measure_for: Callable[[Job], Measure]
) -> _Ended:
    handed_out: list[Job] = []
    finished: set[str] = set()

    def hand_out() -> Iterator[Any]:
        for job in jobs:
            handed_out.append(job)
            yield joblib.delayed(_with_job)(measure_for(job), job)

    try:
        for job, measurement in _results(hand_out(), workers):
            finished.add(job.key)
            keep(job, measurement)
    except BrokenProcessPool:  # loky's TerminatedWorkerError is one
        suspects = [job for job in handed_out if job.key not in finished]
        return _Ended(True, {job.key for job in handed_out}, suspects)
    return _Ended(False, finished, [])


def _results(tasks: Iterator[Any], workers: int) -> Iterable[tuple[Job, Measurement]]:
    """Results as they come."""
    settings = {"n_jobs": workers, "batch_size": 1, "pre_dispatch": "n_jobs"}
    with _pool():
        yield from joblib.Parallel(return_as="generator_unordered", **settings)(tasks)


def _pool() -> Any:
    # Without the initializer the workers would outlive a parent that is killed.
    initializer = {"initializer": begin_worker, "initargs": (os.getpid(),)}
    return joblib.parallel_config(backend="loky", inner_max_num_threads=1, **initializer)


def _with_job(measure: Measure, job: Job) -> tuple[Job, Measurement]:
    return job, measure(job)


def _measure_alone(job: Job, measure: Measure) -> Measurement:
    """A job in a process of its own, whose death is then certainly this job's."""
    start = time.perf_counter()
    executor = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=begin_worker, initargs=(os.getpid(),)
    )
    with executor:
        try:
            return executor.submit(measure, job).result()
        except BrokenProcessPool:
            message = "the worker process died, most likely out of memory"
            seconds = round(time.perf_counter() - start, 3)
            return Measurement(FAILED, seconds, 0.0, {}, message, commit())


def run_job(job: Job, row_budget: float | None = None) -> Measurement:
    """Compute a job in this process; whatever goes wrong becomes its message."""
    import torch

    torch.set_num_threads(1)  # the cores belong to the other workers
    source = commit()
    reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    status, result, message = FAILED, {}, None
    try:
        with processor_time(row_budget):
            found = job.spec.measure(job.seed)
        found[CPU_SECONDS] = round(time.process_time() - cpu, 3)
        json.dumps(found, allow_nan=False)  # what cannot be stored is this job's failure
        status, result = DONE, found
    except OutOfTime:
        used = max(round(time.process_time() - cpu, 3), 1.001 * (row_budget or 0.0))
        result, message = {CPU_SECONDS: used}, f"stopped after {used:.0f} s of processor time"
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    seconds = round(time.perf_counter() - start, 3)
    return Measurement(status, seconds, peak_mb(), result, message, source)


# ---- a limit on the processor time of a block, by a timer of the operating system


class OutOfTime(BaseException):
    """The block has used up its processor time. Not an Exception: what the block itself catches
    is something else."""


@contextmanager
def processor_time(seconds: float | None) -> Iterator[None]:
    """End the block by `OutOfTime` once this process has worked on it for so long.

    Where there is no such timer (Windows, other threads) the block takes its time."""
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


# ---- a worker process

_CORE_LIMIT = "LOKY_MAX_CPU_COUNT"  # what joblib.cpu_count() goes by


def begin_worker(parent: int) -> None:
    """Start a worker: one core is its share, also of our own threads, and it ends with its
    parent."""
    os.environ[_CORE_LIMIT] = "1"
    _end_with_parent(parent)


def _end_with_parent(parent: int, check_seconds: float = 0.2) -> None:
    """End this process when its parent ends, even a parent that was killed (`kill -9`).

    Left alone, loky's workers finish their job for nobody and
    wait minutes for the next, and a worker of a `ProcessPoolExecutor` waits for ever. So each
    compares its parent's id: a process whose parent has died is given another one at once, on every
    POSIX system. The two other ways are worse here: Linux's PR_SET_PDEATHSIG also strikes when
    merely the thread ends that started the worker, and loky starts some from threads that come and
    go; a pipe to the parent stays open for as long as any other process has inherited its end.

    Nothing is left half written: the parent alone writes to the store, and what is cached is
    written beside its place and renamed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(check_seconds)
        os._exit(1)  # without handlers or a last flush: nobody is left to hear of it

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
