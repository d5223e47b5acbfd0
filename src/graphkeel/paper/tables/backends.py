"""Where a grid's cells run: processes of this machine, a Dask cluster, a Ray cluster, each behind
joblib.

Without an address a cluster of this machine is started, which listens on loopback alone and ends
with the grid."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib

from graphkeel.core.errors import ConfigError
from graphkeel.core.optional import import_optional
from graphkeel.paper.tables.orphans import end_with

BACKENDS = ("loky", "dask", "ray")


@dataclass(frozen=True)
class Workers:
    """Who computes: `jobs` processes of this machine, or a cluster at `address`."""

    jobs: int = 2
    backend: str = "loky"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ConfigError(
                f"the backend must be one of {', '.join(BACKENDS)}", got=repr(self.backend)
            )


@contextmanager
def joblib_backend(workers: Workers) -> Iterator[None]:
    """Within the block, joblib hands its tasks to these workers."""
    enter = {"loky": _on_loky, "dask": _on_dask, "ray": _on_ray}[workers.backend]
    with enter(workers):
        yield


def lost_worker(workers: Workers) -> tuple[type[BaseException], ...]:
    """What is raised when a worker dies and its task was not, or not successfully, given to
    another."""
    if workers.backend == "dask":
        return (import_optional("dask.distributed", extra="dask").KilledWorker,)
    if workers.backend == "ray":
        errors = import_optional("ray.exceptions", extra="ray")
        return (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError)
    return (BrokenProcessPool,)  # loky's TerminatedWorkerError is one


@contextmanager
def _on_loky(workers: Workers) -> Iterator[None]:
    watching = {
        "initializer": end_with,
        "initargs": (os.getpid(),),
    }  # or they would outlive a parent that is killed
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1, **watching):
        yield


@contextmanager
def _on_dask(workers: Workers) -> Iterator[None]:
    distributed = import_optional("dask.distributed", extra="dask")
    options: dict[str, Any] = {"address": workers.address}
    if workers.address is None:
        options = {
            "n_workers": workers.jobs,
            "threads_per_worker": 1,
            "processes": True,
            "host": "127.0.0.1",
            "dashboard_address": "127.0.0.1:0",
        }
    # A cell that kills its worker would kill a second one, too: then it is tried in a process of
    # its own.
    patience = import_optional("dask", extra="dask").config.set(
        {"distributed.scheduler.allowed-failures": 1}
    )
    with patience, distributed.Client(**options), joblib.parallel_config(backend=_reporting_dask()):
        yield


def _reporting_dask() -> Any:
    """Joblib's Dask backend, which alone never hears of a task whose workers died, and would wait
    for it for ever."""
    base = import_optional("joblib._dask", extra="dask").DaskDistributedBackend

    class Reporting(base):  # type: ignore[misc, valid-type]
        def submit(self, func: Any, callback: Any = None) -> Any:
            answer = super().submit(func, callback)
            answer.add_done_callback(
                lambda done: callback(done.exception()) if done.exception() else None
            )
            return answer

    return Reporting()


@contextmanager
def _on_ray(workers: Workers) -> Iterator[None]:
    options: dict[str, Any] = {"address": workers.address}
    if workers.address is None:
        # Read by Ray on import: without it, a cluster of one machine listens on all its addresses.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        options = {
            "num_cpus": workers.jobs,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
    ray = import_optional("ray", extra="ray")
    ours = not ray.is_initialized()
    ray.init(**options, ignore_reinit_error=True, log_to_driver=False, logging_level="ERROR")
    try:
        import_optional("ray.util.joblib", extra="ray").register_ray()
        with joblib.parallel_config(backend="ray"):
            yield
    finally:
        if ours:
            ray.shutdown()
