"""Propagation on a cluster of worker processes: the local result to the bit, and a killed worker
changes nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.optional import is_installed
from graphkeel.graph.propagate import (
    Partitions,
    normalise,
    partition,
    partition_edges,
    partitions,
    propagate,
)
from threads import PATIENCE

needs_dask = pytest.mark.skipif(
    not is_installed("distributed"), reason="dask.distributed is not installed (extra: dask)"
)


@pytest.fixture(scope="module")
def medium():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3000, (2, 20_000)), rng.standard_normal((3000, 37), dtype=np.float32)


# ---- the parts on disk, without a cluster


@pytest.mark.parametrize("norm", ["sym", "row"])
@pytest.mark.parametrize("parts", [1, 4, 7])
def test_edges_cut_part_by_part_give_the_matrix_of_the_whole(
    medium, tmp_path, norm, parts, monkeypatch
):
    reading = partitions._Reading(edges=999)
    monkeypatch.setattr(partitions, "_READING", reading)
    edges, x = medium
    whole = normalise(edges, len(x), norm)
    made = partition_edges(edges, len(x), tmp_path, parts, norm)
    for part, rows in enumerate(made.rows):
        starts, columns, values = made.load(part)
        expected = whole[rows]
        assert np.array_equal(starts, expected.indptr)
        assert np.array_equal(columns, expected.indices)
        assert np.array_equal(values, expected.data)
    assert made.n_nodes == 3000 and len(made.rows) == parts
    assert not list(tmp_path.glob("*.edges"))


def test_blocks_without_an_edge_are_not_read(tmp_path):
    two_islands = sparse.block_diag([np.ones((3, 3)), np.ones((3, 3))], format="csr")
    made = partition(two_islands, tmp_path, 2)
    assert made.reads == [[0], [1]]
    assert made.traffic(features=10, hops=2) == 0
    path = partition_edges(np.array([[0, 1, 2], [1, 2, 3]]), 4, tmp_path / "path", 2)
    assert path.reads == [[0, 1], [0, 1]]
    assert (
        path.traffic(features=10, hops=3) == 3 * 4 * 10 * 4
    )  # every node's row crosses once a hop


@pytest.mark.parametrize(
    "index", ["", "[]", "{}", '{"bounds": [0], "reads": []}',
              '{"bounds": [0, 2, 1], "reads": [[], []]}', '{"bounds": [0, 2], "reads": [[5]]}',
              '{"bounds": [0, 1e9], "reads": [[0]]}']
)  # fmt: skip
def test_a_folder_that_is_no_partitioned_graph_is_refused(tmp_path, index):
    with pytest.raises(DataError, match="holds no partitioned graph"):
        _ = Partitions(tmp_path).bounds
    (tmp_path / "partitions.json").write_text(index)
    with pytest.raises(DataError):
        _ = Partitions(tmp_path).bounds


def test_what_cannot_be_cut_is_refused(tmp_path):
    edges = np.array([[0], [1]])
    with pytest.raises(ConfigError, match="parts"):
        partition_edges(edges, 2, tmp_path, 0)
    with pytest.raises(ConfigError, match="norm"):
        partition_edges(edges, 2, tmp_path, 1, norm="max")
    with pytest.raises(DataError, match="node ids"):
        partition_edges(edges, 1, tmp_path, 1)
    with pytest.raises(DataError, match="integers"):
        partition_edges(edges.astype(float), 2, tmp_path, 1)
    with pytest.raises(ConfigError, match="needs the Dask engine"):
        propagate(partition_edges(edges, 2, tmp_path, 1), np.zeros((2, 1), np.float32))
    with pytest.raises(DataError, match="must have 3 nodes"):
        propagate(
            partition_edges(edges, 2, tmp_path, 1), np.zeros((3, 1), np.float32), engine="dask"
        )


# ---- on a cluster


@pytest.fixture(scope="module")
def cluster():
    if not is_installed("distributed"):
        pytest.skip("dask.distributed is not installed (extra: dask)")
    from graphkeel.graph.propagate.dask_engine import local_cluster

    with local_cluster(3) as running:
        yield running


@pytest.mark.parametrize(("hops", "teleport"), [(0, 0.0), (3, 0.0), (2, 0.15)])
def test_the_result_is_the_local_one_to_the_bit(cluster, medium, hops, teleport):
    edges, x = medium
    local = propagate(edges, x, hops, teleport=teleport)
    there = propagate(
        edges,
        x,
        hops,
        teleport=teleport,
        engine="dask",
        address=cluster.scheduler_address,
        parts=5,
        block=16,
    )
    assert np.array_equal(there, local)


def test_predictions_are_identical(cluster, medium):
    edges, x = medium
    weight = np.random.default_rng(1).standard_normal((37, 7), dtype=np.float32)
    local, there = (
        (propagate(edges, x, 2, **how) @ weight).argmax(axis=1)
        for how in ({}, {"engine": "dask", "address": cluster.scheduler_address})
    )
    assert np.array_equal(local, there)


def test_parts_and_features_on_disk_are_read_by_the_workers(cluster, medium, tmp_path):
    edges, x = medium
    np.save(tmp_path / "edges.npy", edges)
    np.save(tmp_path / "x.npy", x)
    made = partition_edges(
        np.load(tmp_path / "edges.npy", mmap_mode="r"), len(x), tmp_path / "graph", 4
    )
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    address = cluster.scheduler_address
    written = propagate(
        made, mapped, 2, out=tmp_path / "z.npy", engine="dask", address=address, scratch=scratch
    )
    assert isinstance(written, np.memmap)
    assert np.array_equal(written, propagate(edges, x, 2))
    assert not list(scratch.iterdir())


def test_a_slice_of_a_mapped_file_is_not_taken_for_the_file(cluster, medium, tmp_path):
    edges, x = medium
    np.save(tmp_path / "x.npy", np.concatenate([np.zeros_like(x), x]))
    half = np.load(tmp_path / "x.npy", mmap_mode="r")[3000:]
    there = propagate(edges, half, 1, engine="dask", address=cluster.scheduler_address)
    assert np.array_equal(there, propagate(edges, x, 1))


def test_dask_arrays_are_taken_as_features(cluster, medium):
    import dask.array as da

    edges, x = medium
    lazy = da.from_array(x, chunks=(700, 10))
    there = propagate(edges, lazy, 2, engine="dask", address=cluster.scheduler_address)
    assert np.array_equal(there, propagate(edges, x, 2))


def test_a_worker_killed_in_the_middle_changes_nothing(cluster):
    """SIGKILL as soon as some blocks are summed and others are not."""
    rng = np.random.default_rng(2)
    edges, x = (
        rng.integers(0, 30_000, (2, 200_000)),
        rng.standard_normal((30_000, 24), dtype=np.float32),
    )
    local = propagate(edges, x, 6)
    killed = {}

    def kill() -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            states = [
                task.state
                for task in list(cluster.scheduler.tasks.values())
                if "_add_block" in str(task.key)
            ]
            if states.count("memory") >= 6:
                victim = next(
                    nanny
                    for nanny in cluster.workers.values()
                    if nanny.process and nanny.process.pid
                )
                killed.update(
                    pid=victim.process.pid, unfinished=len(states) - states.count("memory")
                )
                os.kill(victim.process.pid, signal.SIGKILL)
                return
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    there = propagate(edges, x, 6, engine="dask", address=cluster.scheduler_address, parts=6)
    killer.join()
    assert killed["unfinished"] > 0
    assert not _alive(killed["pid"])
    assert np.array_equal(there, local)


def _alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_nothing_listens_beyond_loopback(cluster):
    psutil = pytest.importorskip("psutil")
    here = psutil.Process()
    listening = [
        connection.laddr.ip
        for process in (here, *here.children(recursive=True))
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) <= {"127.0.0.1", "::1"}


@needs_dask
def test_wrong_options_are_refused(medium, cluster):
    edges, x = medium
    with pytest.raises(ConfigError, match="has the workers it has"):
        propagate(edges, x, 1, engine="dask", address=cluster.scheduler_address, workers=2)
    with pytest.raises(ConfigError, match="no Dask scheduler answers"):
        propagate(edges, x, 1, engine="dask", address="nonsense://127.0.0.1:1")


@needs_dask
@pytest.mark.slow
def test_a_cluster_of_its_own_comes_and_goes(medium):
    edges, x = medium
    assert np.array_equal(propagate(edges, x, 2, engine="dask", workers=2), propagate(edges, x, 2))
