"""The workers of a grid, all of them behind joblib: processes of this machine or a Dask cluster.

Without an address a cluster of this machine is started, which listens on loopback alone and ends
with the grid."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import joblib

from graphkeel.core.names import check_name
from graphkeel.core.optional import import_optional

_BACKENDS = ("loky", "dask")
_CORE_LIMIT = "LOKY_MAX_CPU_COUNT"  # what joblib.cpu_count() goes by


@dataclass(frozen=True)
class Workers:
    """Who computes.

    Args:
        count: worker processes of this machine; a cluster at `address` has its own number.
        backend: one of `_BACKENDS`.
        address: HOST:PORT of a Dask cluster; None starts one here.
    """

    count: int = 2
    backend: str = "loky"
    address: str | None = None

    def __post_init__(self) -> None:
        check_name("the backend", self.backend, _BACKENDS)


@contextmanager
def joblib_backend(workers: Workers) -> Iterator[None]:
    """Within the block, joblib hands its tasks to these workers."""
    with {"loky": _on_loky, "dask": _on_dask}[workers.backend](workers):
        yield


def lost_worker_errors(workers: Workers) -> tuple[type[BaseException], ...]:
    """The exceptions that say: a worker died, and its task was not finished by another one."""
    if workers.backend == "dask":
        return (import_optional("dask.distributed", extra="dask").KilledWorker,)
    return (BrokenProcessPool,)  # loky's TerminatedWorkerError is one


@contextmanager
def _on_loky(_workers: Workers) -> Iterator[None]:
    # Otherwise the workers would outlive a parent that is killed.
    initializer = {"initializer": begin_worker, "initargs": (os.getpid(),)}
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1, **initializer):
        yield


@contextmanager
def _on_dask(workers: Workers) -> Iterator[None]:
    from graphkeel.cluster.work import local_cluster

    distributed = import_optional("dask.distributed", extra="dask")
    # A job that kills its worker would kill a second one, too; it is then tried in a process of
    # its own.
    failures = {"distributed.scheduler.allowed-failures": 1}
    with (
        import_optional("dask", extra="dask").config.set(failures),
        nullcontext() if workers.address else local_cluster(workers.count) as cluster,
        distributed.Client(cluster or workers.address),
        joblib.parallel_config(backend=_reporting_dask()),
    ):
        yield


def _reporting_dask() -> Any:
    """Joblib's Dask backend with one addition: joblib waits for ever for a task whose workers died,
    because its backend calls back for results only, not for errors (joblib 1.6)."""
    base = import_optional("joblib._dask", extra="dask").DaskDistributedBackend

    class Reporting(base):  # type: ignore[misc, valid-type]
        def submit(self, func: Any, callback: Any = None) -> Any:
            def report(done: Any) -> None:
                if done.exception():
                    callback(done.exception())

            future = super().submit(func, callback)
            future.add_done_callback(report)
            return future

    return Reporting()


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
