"""Jobs for grids under test, importable by worker processes; what they do is in the job's method
name."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from graphkeel.store.job import DONE, Job, Measurement
from graphkeel.store.store import Store
from graphkeel_paper.specs import RunSpec
from graphkeel_paper.tables.grid import run_grid


def number(job: Job) -> Measurement:
    """Answers with the seed; the method `die` ends the process instead, as the kernel does when
    memory runs out."""
    if job.spec.method == "die":
        os._exit(9)
    return Measurement(
        DONE, 0.01, 1.0, {"accuracy": float(job.seed), "base": 0.0, "pid": os.getpid()}
    )


def cores(job: Job) -> Measurement:
    """Answers with the threads that our own code and torch may use."""
    import joblib
    import torch

    most = max(joblib.cpu_count(), torch.get_num_threads())
    return Measurement(DONE, 0.01, 1.0, {"accuracy": float(most), "base": 0.0})


def logged(job: Job) -> Measurement:
    """Writes down that it was begun; from the fifth on it waits until the gate is open."""
    with Path(job.row).open("a") as log:
        log.write(f"{job.seed}\n")
    while job.seed >= 4 and not gate(job.row).exists():
        time.sleep(0.02)
    return number(job)


def gate(log: str | Path) -> Path:
    """The file that lets the later jobs of a log end."""
    return Path(f"{log}.open")


def endless(job: Job) -> Measurement:
    """Writes down which process began it, and is never done."""
    with Path(job.row).open("a") as log:
        log.write(f"{os.getpid()}\n")
    time.sleep(600)
    return number(job)


def jobs_of(row: str, count: int, method: str = "none") -> list[Job]:
    return [Job(row, RunSpec(method=method), seed, data="d", code="c") for seed in range(count)]


if __name__ == "__main__":  # a grid to be killed: python jobs.py STORE LOG MEASURE METHOD
    import jobs as this  # so that workers find its functions by a name they can import

    path, log, measure, method = sys.argv[1:]
    store = Store(Path(path))
    waiting = [job for job in this.jobs_of(log, 8, method) if store.find(job) is None]
    run_grid(waiting, store, 2, measure=getattr(this, measure))
