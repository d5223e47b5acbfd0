"""The grid: every job that the store does not hold yet, on all cores, stored as soon as it is done.

The parent process alone writes to the store. A job that fails is a result like any other: stored
with its message, the rest goes on. So is a job whose worker dies (out of memory, say)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from graphkeel.core.digests import json_sha256
from graphkeel.core.memory import peak_mb, reset_peak
from graphkeel.store.job import CPU_SECONDS, DONE, FAILED, Job, Measurement
from graphkeel.store.store import Store
from graphkeel_paper.fingerprint import commit
from graphkeel_paper.tables.cells import RUNS
from graphkeel_paper.tables.layout import aligned

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
    waiting = iter({job.key: job for job in jobs}.values())
    idle, busy = [_Worker() for _ in range(workers)], dict[Any, _Worker]()
    try:
        while True:
            affordable = (job for job in waiting if not known.is_over(job))
            while idle and (job := next(affordable, None)) is not None:
                worker = idle.pop()
                worker.begin(measure or partial(run_job, row_budget=known.limit(job)), job)
                busy[worker.pipe] = worker
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker = busy.pop(pipe)
                job, measurement = worker.result()
                store.keep(job, measurement)
                known.learn(job, measurement)
                idle.append(worker if worker.process.is_alive() else _Worker())
                on_job(job, measurement)
    finally:
        for worker in [*idle, *busy.values()]:
            worker.process.kill()


class _Worker:
    """A process that measures one job after the other; what ends it is certainly its job."""

    job: Job
    begun: float

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        with _one_thread():
            self.process = context.Process(target=_serve, args=(theirs, os.getpid()))
            self.process.start()
        theirs.close()

    def begin(self, measure: Measure, job: Job) -> None:
        """Hand out a job."""
        self.job, self.begun = job, time.perf_counter()
        self.pipe.send((measure, job))

    def result(self) -> tuple[Job, Measurement]:
        """The job, and its measurement."""
        try:
            return self.job, self.pipe.recv()
        except EOFError:
            self.process.join()
            message = "the worker process died, most likely out of memory"
            seconds = round(time.perf_counter() - self.begun, 3)
            return self.job, Measurement(FAILED, seconds, 0.0, {}, message, commit())


def _serve(pipe: Connection, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _end_with_parent(parent)
    while True:
        measure, job = pipe.recv()
        pipe.send(measure(job))


# A worker's share is one core, also of the libraries that read this when they are loaded.
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
_ONE = {"LOKY_MAX_CPU_COUNT": "1", **{f"{name}_NUM_THREADS": "1" for name in _THREADS}}


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that the block starts use one core."""
    before = {name: os.environ.get(name) for name in _ONE}
    os.environ.update(_ONE)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _end_with_parent(parent: int, check_seconds: float = 0.2) -> None:
    """End this process when its parent ends, even a parent that was killed (`kill -9`): on every
    POSIX system a process whose parent has died is given another one at once.

    A pipe's end would not tell: another process may have inherited it. Nothing is left half
    written: the parent alone writes to the store."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(check_seconds)
        os._exit(1)  # without handlers or a last flush: nobody is left to hear of it

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def run_job(job: Job, row_budget: float | None = None) -> Measurement:
    """Compute a job in this process; whatever goes wrong becomes its message."""
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


# ---- The jobs of a plan that are missing, and their cost as far as it was ever measured.


Times = dict[tuple[str, str], float]  # mean seconds of a (row, column)


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


class RowCosts:
    """The time a seed of each number takes: a number is a specification, whatever its seed. A job
    may take `row_budget` processor seconds; None: as long as it likes."""

    def __init__(self, row_budget: float | None) -> None:
        self.row_budget = row_budget
        self.seconds: dict[str, float] = {}

    @classmethod
    def stored(
        cls, jobs: Iterable[Job], store: Store, row_budget: float | None, *, any_code: bool = False
    ) -> RowCosts:
        """The costs of jobs that a store holds."""
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
    return json_sha256([job.row, asdict(job.spec)])


# ---- the lines of --plan


def forecast(
    waiting: Sequence[Job], times: Times, costs: RowCosts, workers: int, *, wanted: int
) -> list[str]:
    """The lines of `keel-paper table --plan`."""
    rows = _by_row(waiting, times, costs)
    body = []
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["seconds"]):
        known = row["jobs"] - row["unknown"]
        mean = f"{row['seconds'] / known:.1f}" if known else "not measured"
        over = f"{row['over']:.0f}" if row["over"] else ""
        body.append([name, f"{row['jobs']:.0f}", over, mean, f"{row['seconds'] / 3600:.2f}"])
    lines = [f"{wanted} jobs, {wanted - len(waiting)} of them stored"]
    if body:
        head = ["row", "jobs", "over budget", "seconds a job", "core hours"]
        lines += ["", *aligned([head, *body], left=[0]), ""]
    jobs, seconds, unknown = (
        sum(row[name] for row in rows.values()) for name in ("jobs", "seconds", "unknown")
    )
    hours = seconds / 3600
    lines.append(
        f"to compute: {jobs:.0f} jobs, {hours:.2f} core hours as measured, {hours / workers:.2f} h "
        f"with {workers} workers"
    )
    if unknown:
        lines.append(f"of {unknown:.0f} jobs nothing is measured: they are not in these hours")
    return lines


def _by_row(
    waiting: Sequence[Job], times: Times, costs: RowCosts
) -> dict[str, defaultdict[str, float]]:
    """By row: jobs to come and their seconds, those of a cost that nothing is known of, and those
    that the budget leaves out."""
    rows: dict[str, defaultdict[str, float]] = {}
    probed: set[tuple[str, str]] = set()
    for job in {job.key: job for job in waiting}.values():
        row = rows.setdefault(job.row, defaultdict(float))
        place = (job.row, job.spec.dataset)
        seconds = times.get(place)
        dear = seconds is not None and costs.row_budget is not None and seconds > costs.row_budget
        if costs.is_over(job) or (dear and place in probed):
            row["over"] += 1
            continue
        probed.add(place)
        row["jobs"] += 1
        row["unknown"] += seconds is None
        row["seconds"] += seconds or 0.0
    return rows


def times_of(content: dict[str, Any]) -> Times:
    """Mean seconds a job of every (row, column) of a stored table."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for run in content.get(RUNS, ()):
        place = (run["row"], run["column"])
        grouped.setdefault(place, []).append(float(run.get("cpu_seconds", run["seconds"])))
    return {place: sum(values) / len(values) for place, values in grouped.items()}
