"""The grid: every job that the store does not hold yet, on all cores, stored as soon as it is done.

The parent process alone writes to the store, so the same grid runs on a cluster whose workers share
no disk. A job that fails is a result like any other: stored with its message, the rest goes on. So
is a job whose worker dies (out of memory, say): the jobs that were in work are tried once more,
each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Any

import joblib

from graphkeel.core.memory import peak_mb, reset_peak
from graphkeel.core.time_limit import OutOfTime, processor_time
from graphkeel.store.job import CPU_SECONDS, DONE, FAILED, Job, Measurement, sha256_of
from graphkeel.store.provenance import commit
from graphkeel.store.store import Store
from graphkeel_paper.tables.workers import (
    Workers,
    begin_worker,
    joblib_backend,
    lost_worker_errors,
)

OnJob = Callable[[Job, Measurement], None]
Measure = Callable[[Job], Measurement]


def missing_jobs(
    jobs: Iterable[Job],
    store: Store,
    *,
    any_code: bool = False,
    retry: bool = False,
    row_budget: float | None = None,
) -> list[Job]:
    """The jobs that have to be computed."""
    missing = []
    for job in jobs:
        found = store.find(job, any_code=any_code)
        if found is None or (retry and not found.done) or _was_stopped_early(found, row_budget):
            missing.append(job)
    return missing


def _was_stopped_early(found: Measurement, row_budget: float | None) -> bool:
    return found.stopped and (row_budget is None or found.processor_seconds < row_budget)


def run_grid(
    jobs: Sequence[Job],
    store: Store,
    workers: Workers | None = None,
    *,
    on_job: OnJob = lambda _job, _measurement: None,
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
        ended = _round(affordable, workers or Workers(), keep, measure_for)
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
    jobs: Iterator[Job], workers: Workers, keep: OnJob, measure_for: Callable[[Job], Measure]
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
    except lost_worker_errors(workers):
        suspects = [job for job in handed_out if job.key not in finished]
        return _Ended(True, {job.key for job in handed_out}, suspects)
    return _Ended(False, finished, [])


def _results(tasks: Iterator[Any], workers: Workers) -> Iterable[tuple[Job, Measurement]]:
    """Results as they come; Ray cannot stream, and hands them over in rounds of one job a
    worker."""
    settings = {"n_jobs": workers.count, "batch_size": 1, "pre_dispatch": "n_jobs"}
    with joblib_backend(workers):
        if workers.backend == "ray":
            with joblib.Parallel(**settings) as pool:  # the same processes in every round
                while batch := list(islice(tasks, workers.count)):
                    yield from pool(batch)
            return
        yield from joblib.Parallel(return_as="generator_unordered", **settings)(tasks)


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
    start = time.perf_counter()
    cpu = time.process_time()
    try:
        with processor_time(row_budget):
            result = job.spec.measure(job.seed)
        result[CPU_SECONDS] = round(time.process_time() - cpu, 3)
        json.dumps(result, allow_nan=False)  # what cannot be stored is this job's failure
        seconds = round(time.perf_counter() - start, 3)
        return Measurement(DONE, seconds, peak_mb(), result, commit=source)
    except OutOfTime:
        used = max(round(time.process_time() - cpu, 3), 1.001 * (row_budget or 0.0))
        message = f"stopped after {used:.0f} s of processor time"
        seconds = round(time.perf_counter() - start, 3)
        return Measurement(FAILED, seconds, peak_mb(), {CPU_SECONDS: used}, message, source)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        seconds = round(time.perf_counter() - start, 3)
        return Measurement(FAILED, seconds, peak_mb(), {}, message, source)


class RowCosts:
    """What a seed of each number takes: a number is a specification, whatever its seed.

    Args:
        row_budget: processor seconds that a job may take; None: as long as it likes.
    """

    def __init__(self, row_budget: float | None) -> None:
        self.row_budget = row_budget
        self.seconds: dict[str, float] = {}

    @classmethod
    def stored(
        cls, jobs: Iterable[Job], store: Store, row_budget: float | None, *, any_code: bool = False
    ) -> RowCosts:
        """What a store says of the cost of jobs."""
        costs = cls(row_budget)
        for job in jobs if row_budget is not None else ():
            found = store.find(job, any_code=any_code)
            if found is not None:
                costs.learn(job, found)
        return costs

    def learn(self, job: Job, measurement: Measurement) -> None:
        """Take in a measurement."""
        seconds = measurement.processor_seconds
        if measurement.stopped and (self.row_budget is None or seconds <= self.row_budget):
            return  # of a smaller budget: what it takes is still unknown
        self.seconds.setdefault(_number(job), seconds)

    def is_over(self, job: Job) -> bool:
        """Whether another seed of the same number took longer than allowed."""
        known = self.seconds.get(_number(job))
        return self.row_budget is not None and known is not None and known > self.row_budget

    def limit(self, job: Job) -> float | None:
        """Processor seconds after which a job is stopped; None where another seed of the same
        number kept to the budget, as all seeds of a row should then be there."""
        return None if _number(job) in self.seconds else self.row_budget


def _number(job: Job) -> str:
    return sha256_of([job.row, asdict(job.spec)])


class Estimate:
    """How long the rest of a grid will take: mean seconds of a (row, dataset), of the row, or of
    all jobs, whichever is known first.

    Args:
        waiting: the jobs to come.
        known: mean seconds of each (row, dataset) that was measured before.
        workers: how many jobs are in work at once.
    """

    def __init__(
        self, waiting: Iterable[Job], known: dict[tuple[str, str], float], workers: int
    ) -> None:
        self.waiting = {job.key: job for job in waiting}
        self.workers = workers
        self.seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for (row, dataset), mean in known.items():
            self._learn(row, dataset, mean)

    def _learn(self, row: str, dataset: str, seconds: float) -> None:
        for group in ((row, dataset), (row,), ()):
            self.seconds[group].append(seconds)

    def done(self, job: Job, seconds: float) -> None:
        """Take in a finished job."""
        self.waiting.pop(job.key, None)
        self._learn(job.row, job.spec.dataset, seconds)

    def left(self) -> float | None:
        """Seconds to go; None before anything is known."""
        if not self.seconds[()]:
            return None
        return sum(self._expected(job) for job in self.waiting.values()) / self.workers

    @property
    def is_lower_bound(self) -> bool:
        """Whether a row is to come of which nothing is known: it may be dearer than all others."""
        return any(not self.seconds.get((job.row,)) for job in self.waiting.values())

    def _expected(self, job: Job) -> float:
        for group in ((job.row, job.spec.dataset), (job.row,), ()):
            if times := self.seconds.get(group):
                return sum(times) / len(times)
        return 0.0
