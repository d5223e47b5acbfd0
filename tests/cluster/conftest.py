"""A client that does its tasks here, one after the other, on copies as a worker would get them."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from graphkeel.cluster import fit
from graphkeel.cluster.work import Cluster, ClusterSettings

cloudpickle = pytest.importorskip("cloudpickle", reason="pip install 'graphkeel[dask]'")


class Here:
    """As much of a Dask client as `Cluster` needs."""

    def scheduler_info(self, n_workers=-1):
        return {"workers": {"here": {"nthreads": 1, "memory_limit": 2**30}}}

    def submit(self, function, task, **_options):
        return function(cloudpickle.loads(cloudpickle.dumps(task)))

    def map(self, function, tasks, spans, **_options):
        return [function(task, span) for task, span in zip(tasks, spans, strict=True)]

    def gather(self, results):
        return results

    def run(self, function, *args):
        return {"here": function(*args)}


@pytest.fixture
def cluster(tmp_path):
    """Of so many rows, cut into parts."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def made(n_rows: int, rows: int) -> Cluster:
        return Cluster(Here(), scratch, n_rows, settings=ClusterSettings(rows=rows))

    return made


@pytest.fixture
def at_once(monkeypatch):
    """`fit_shards` without Dask."""

    @contextmanager
    def connected(*_args):
        yield Here()

    monkeypatch.setattr(fit, "connected", connected)
