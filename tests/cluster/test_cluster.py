"""Arrays in files, matrices in parts, and a whole fit on them, beside one machine's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from graphkeel import Reconstructor
from graphkeel.cluster import ClusterSettings, ShardedGraph, fit_shards, save_shards
from graphkeel.cluster.graph import make_matrices
from graphkeel.cluster.work import Cluster, connected, local_cluster
from graphkeel.core.errors import ConfigError, DataError, ModelError
from graphkeel.core.optional import is_installed
from graphkeel.graph import make_sbm
from graphkeel.graph.propagate import normalise, normalise_as_given
from graphkeel.graph.propagate.local import hops_of, multiply, pagerank
from graphkeel.graph.propagate.rowwise import Nodes, fold, largest, mean_row, rowwise
from graphkeel.models.networks import SGC

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0 - 1 - 2
needs_dask = pytest.mark.skipif(
    not is_installed("distributed"), reason="dask.distributed is not installed (extra: dask)"
)


def stored(cluster: Cluster, values: np.ndarray):
    return cluster.rowwise(lambda ids: values[ids], [Nodes(len(values))])


# ---- arrays and matrices


def test_rows_are_read_as_an_array_gives_them(cluster):
    values = np.random.default_rng(0).random((23, 2, 3)).astype(np.float32)
    array = stored(cluster(23, 5), values)
    some = np.array([22, 3, 3, 9])
    for key in (slice(None), slice(4, 11), slice(1, 23, 4), some, (some, slice(1, 2)), slice(9, 9)):
        assert np.array_equal(array[key], values[key])
    assert array.shape == values.shape and array.size == values.size
    assert np.array_equal(array.reshape(23, -1)[some], values.reshape(23, -1)[some])


def test_files_go_with_the_array(cluster, tmp_path):
    array = stored(cluster(9, 4), np.zeros((9, 1), np.float32))
    assert len(list(tmp_path.rglob("*.npy"))) == 3
    del array
    assert not list((tmp_path / "scratch").iterdir())


def test_sums_and_functions_of_rows_are_those_in_memory(cluster):
    values = np.random.default_rng(1).random((40, 3)).astype(np.float32)
    array = stored(cluster(40, 7), values)
    assert np.array_equal(rowwise(np.sqrt, array)[:], np.sqrt(values))
    assert fold(len, array) == 40
    np.testing.assert_allclose(mean_row(array), values.mean(axis=0), rtol=1e-6)


def test_a_path_of_three_nodes_by_hand(cluster, tmp_path):
    """Degrees with loops are 2, 3 and 2; node 2 lies in a part of its own."""
    data = Data(x=torch.tensor([[6.0], [0.0], [0.0]]), edge_index=PATH)
    save_shards(data, tmp_path / "graph", rows=2)
    home = cluster(3, 2)
    made = make_matrices(home, ShardedGraph.open(tmp_path / "graph").edges)
    six = 1 / np.sqrt(6)
    expected = [[1 / 2, six, 0], [six, 1 / 3, six], [0, six, 1 / 2]]
    for matrix in (made.smooth, made.forth, made.back, made.given):
        np.testing.assert_allclose(matrix[np.arange(3)].toarray(), expected, rtol=1e-6)
    spread = multiply(made.smooth, stored(home, data.x.numpy()))
    np.testing.assert_allclose(spread[:].ravel(), [3.0, np.sqrt(6), 0.0], rtol=1e-6)
    assert made.norm_bound == pytest.approx(1.0, abs=1e-5)


def test_directed_and_repeated_edges_are_read_as_pyg_reads_them(cluster, tmp_path):
    edges = np.random.default_rng(2).integers(0, 30, (2, 90))
    edges = np.concatenate([edges, edges[:, :9], [[4], [4]]], axis=1)
    data = Data(x=torch.zeros(30, 1), edge_index=torch.from_numpy(edges))
    save_shards(data, tmp_path / "graph", rows=11)
    made = make_matrices(cluster(30, 8), ShardedGraph.open(tmp_path / "graph").edges)
    everyone = np.arange(30)
    given = normalise_as_given(edges, 30).toarray()
    np.testing.assert_allclose(made.smooth[everyone].toarray(), normalise(edges, 30).toarray())
    np.testing.assert_allclose(made.forth[everyone].toarray(), given, rtol=1e-6)
    np.testing.assert_allclose(made.back[everyone].toarray(), given.T, rtol=1e-6)


@pytest.mark.parametrize("steps", [3, 50])
@pytest.mark.parametrize("fits", [True, False])
def test_walks_are_those_of_one_machine(cluster, tmp_path, steps, fits):
    rng = np.random.default_rng(3)
    edges, values = rng.integers(0, 60, (2, 200)), rng.random((60, 5)).astype(np.float32)
    data = Data(x=torch.from_numpy(values), edge_index=torch.from_numpy(edges))
    save_shards(data, tmp_path / "graph", rows=60)
    home = cluster(60, 16)
    home.halo_bytes = 4 * 60 * 2  # two columns at a time
    home.threads = 2
    home.walk_bytes *= fits
    matrix = make_matrices(home, ShardedGraph.open(tmp_path / "graph").edges).smooth
    before = home.tasks
    there = pagerank(matrix, stored(home, values), steps, 0.1)[:]
    here = pagerank(normalise(edges, 60), values, steps, 0.1)
    if fits:
        assert np.array_equal(there, here)
        assert home.tasks - before == 4 + 2 + 4  # written, walked by columns, joined
    else:
        np.testing.assert_allclose(there, here, rtol=2e-6)
    two = hops_of(matrix, stored(home, values), 2)
    assert np.array_equal(two[:], hops_of(normalise(edges, 60), values, 2))


def test_the_largest_of_each_group_and_of_equals_the_first(cluster):
    rng = np.random.default_rng(4)
    values = np.round(rng.random((50, 2)), 1).astype(np.float32)
    groups = rng.integers(-1, 3, (50, 2))
    home = cluster(50, 9)
    for one, other in ((values, groups), (stored(home, values), stored(home, groups))):
        least, last = largest(one, other, 3, lambda sizes: np.minimum(sizes, 6))
        for s in range(2):
            for g in range(3):
                members = np.flatnonzero(groups[:, s] == g)
                best = members[np.lexsort((members, -values[members, s]))[:6]]
                bound = least[s, g]
                chosen = [
                    v for v in members
                    if values[v, s] > bound or (values[v, s] == bound and v <= last[s, g])
                ]  # fmt: skip
                assert chosen == sorted(best)


# ---- a whole fit


def case(n_features: int = 8) -> tuple[Data, SGC]:
    """Two hundred nodes whose features moved since the model was made."""
    raw = make_sbm(200, 800, n_classes=3, n_features=n_features, seed=0)
    x, edges, y = (torch.from_numpy(np.asarray(a)) for a in (raw.x, raw.edge_index, raw.y))
    data = Data(x=x, edge_index=edges, y=y)
    torch.manual_seed(0)
    means = torch.stack([data.x[data.y == c].mean(dim=0) for c in range(3)])
    model = SGC(n_features, 3, k=2)
    model.conv.lin.weight.data = means - means.mean(dim=0)
    data.x = data.x + torch.randn(n_features)
    data.train_mask = torch.zeros(200, dtype=torch.bool)
    data.val_mask = torch.rand(200) < 0.3
    return data, model.eval()


def read(folder, name):
    return np.concatenate([np.load(path) for path in sorted((folder / name).glob("*.npy"))])


@pytest.mark.parametrize("n_features", [8, 80])
def test_a_fit_is_that_of_one_machine(at_once, tmp_path, n_features):
    data, model = case(n_features)
    save_shards(data, tmp_path / "graph", rows=70)
    settings = ClusterSettings(rows=64)
    found = fit_shards(tmp_path / "graph", model, tmp_path / "out", settings=settings)
    rec = Reconstructor(model).fit(data)
    assert found.guard.kept and rec.guard_.kept and found.parts == 4
    assert found.guard.reason == rec.guard_.reason
    np.testing.assert_allclose(read(tmp_path / "out", "posterior"), rec.posterior_, atol=2e-4)
    np.testing.assert_allclose(read(tmp_path / "out", "x"), rec.features_, atol=2e-3)
    assert np.array_equal(read(tmp_path / "out", "answers"), rec.predict(data).numpy())
    assert not np.array_equal(read(tmp_path / "out", "x"), data.x.numpy())
    assert sorted(path.name for path in (tmp_path / "out" / "x").iterdir()) == [
        "00000.npy", "00001.npy", "00002.npy",
    ]  # fmt: skip
    stored = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert stored["guard"]["n_labels"] == int(data.val_mask.sum())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "x", "posterior", "answers", "fit.json",
    }  # fmt: skip


def test_without_labels_and_with_balanced_classes(at_once, tmp_path):
    data, model = case()
    data.y = data.val_mask = data.train_mask = None
    save_shards(data, tmp_path / "graph", rows=100)
    found = fit_shards(tmp_path / "graph", model, tmp_path / "out", balanced=True, risk=0.0)
    assert not found.guard.kept and found.guard.n_labels == 0
    assert np.array_equal(read(tmp_path / "out", "x"), data.x.numpy())


# ---- what is refused


def test_wrong_folders_are_refused_before_any_work(tmp_path):
    data, _ = case()
    graph = tmp_path / "graph"
    with pytest.raises(DataError, match="no graph in shards"):
        ShardedGraph.open(graph)
    save_shards(data, graph, rows=70)
    assert ShardedGraph.open(graph).n_classes() == 3
    shard = graph / "x" / "00001.npy"
    kept = np.load(shard)
    for wrong, match in (
        (kept.astype(np.int64), "floating-point"),
        (kept[:, :3], "as wide"),
        (np.asfortranarray(kept), "C order"),
    ):
        np.save(shard, wrong)
        with pytest.raises(DataError, match=match):
            ShardedGraph.open(graph)
    np.save(shard, kept)
    shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(DataError, match="8 bytes too short"):
        ShardedGraph.open(graph)
    shard.unlink()
    with pytest.raises(DataError, match=r"shard 1 of .* is missing"):
        ShardedGraph.open(graph)
    np.save(shard, kept[:5])
    with pytest.raises(DataError, match="an entry for each"):
        ShardedGraph.open(graph)


def test_wrong_ids_labels_models_and_folders_are_refused(at_once, tmp_path):
    data, model = case()
    save_shards(data, tmp_path / "graph", rows=200)
    with pytest.raises(ModelError, match="about 8 features"):
        fit_shards(tmp_path / "graph", GCN(5, 4, 2, 3), tmp_path / "a")
    with pytest.raises(ModelError, match="takes 5 features"):
        fit_shards(tmp_path / "graph", SGC(5, 3), tmp_path / "b")
    with pytest.raises(DataError, match=r"labels in a mask must lie in 0\.\.1"):
        fit_shards(tmp_path / "graph", SGC(8, 2), tmp_path / "c")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(ConfigError, match="new or empty"):
        fit_shards(tmp_path / "graph", model, tmp_path / "full")
    x = np.load(tmp_path / "graph" / "x" / "00000.npy")
    np.save(tmp_path / "graph" / "x" / "00000.npy", np.where(x > 1, np.nan, x))
    with pytest.raises(DataError, match="must be finite"):
        fit_shards(tmp_path / "graph", model, tmp_path / "e")
    np.save(tmp_path / "graph" / "x" / "00000.npy", x)
    np.save(tmp_path / "graph" / "edge_index" / "00000.npy", np.array([[0], [200]]))
    with pytest.raises(DataError, match=r"node ids in 0\.\.199"):
        fit_shards(tmp_path / "graph", model, tmp_path / "d")
    assert not list((tmp_path / "d").iterdir())  # no scratch is left behind


@needs_dask
def test_a_scheduler_that_does_not_answer_is_named():
    settings = ClusterSettings(waiting=0.5)
    refused = pytest.raises(ConfigError, match=r"no Dask scheduler.*tcp://127\.0\.0\.1:9")
    with refused, connected("tcp://127.0.0.1:9", settings=settings):
        pass


# ---- workers that are killed


@needs_dask
@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path):
    """SIGKILL while a chain of products is computed."""
    values = np.random.default_rng(5).random((400, 4)).astype(np.float32)
    edges = np.random.default_rng(6).integers(0, 400, (2, 1500))
    data = Data(x=torch.from_numpy(values), edge_index=torch.from_numpy(edges))
    save_shards(data, tmp_path / "graph", rows=400)
    graph = ShardedGraph.open(tmp_path / "graph")
    with local_cluster(2) as running, running.get_client() as client:
        home = Cluster(client, tmp_path, 400, settings=ClusterSettings(rows=100))
        matrix = make_matrices(home, graph.edges).smooth
        found = home.at_home(graph.x)
        for turn in range(12):
            if turn == 4:
                threading.Thread(target=_kill, args=(running,)).start()
            found = multiply(matrix, found)
    assert np.array_equal(found[:], hops_of(normalise(edges, 400), values, 12))


def _kill(running) -> int:
    pid = next(one.process.pid for one in running.workers.values() if one.process)
    os.kill(pid, signal.SIGKILL)
    return pid


@needs_dask
@pytest.mark.slow
def test_five_workers_killed_during_a_fit_change_no_bit(tmp_path):
    data, model = case()
    save_shards(data, tmp_path / "graph", rows=70)
    settings = ClusterSettings(rows=64)
    with local_cluster(3) as running:
        call = {"scheduler": running.scheduler_address, "settings": settings}
        first = fit_shards(tmp_path / "graph", model, tmp_path / "out", **call)
        shares = (0.1, 0.3, 0.5, 0.6, 0.8)
        timers = [threading.Timer(s * first.seconds, _kill, (running,)) for s in shares]
        for timer in timers:
            timer.start()
        fit_shards(tmp_path / "graph", model, tmp_path / "killed", **call)
        for timer in timers:
            timer.cancel()
    for name in ("x", "posterior", "answers"):
        assert np.array_equal(read(tmp_path / "out", name), read(tmp_path / "killed", name))


@needs_dask
@pytest.mark.slow
def test_a_scheduler_that_goes_is_one_sentence(tmp_path, capfd):
    """Neither Dask's log nor a traceback of its own, and nothing is left of what was begun."""
    data, model = case()
    save_shards(data, tmp_path / "graph", rows=70)
    settings = ClusterSettings(waiting=2.0)
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    where = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(tmp_path / "at.json")]
    with subprocess.Popen([*command, *where], stderr=subprocess.DEVNULL) as scheduler:
        while not (tmp_path / "at.json").exists():
            time.sleep(0.1)
        address = json.loads((tmp_path / "at.json").read_text())["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", address]
        with subprocess.Popen(worker, stderr=subprocess.DEVNULL) as hand:
            capfd.readouterr()
            timer = threading.Timer(3.0, scheduler.kill)
            timer.start()
            with pytest.raises(ConfigError, match="the Dask cluster has gone"):
                for turn in range(100):  # one of them is under way then
                    out = tmp_path / f"out-{turn}"
                    fit_shards(tmp_path / "graph", model, out, scheduler=address, settings=settings)
            timer.cancel()
            hand.kill()
    assert capfd.readouterr().err == ""
    assert not list(out.iterdir())


def test_nothing_listens_beyond_loopback():
    pytest.importorskip("distributed")
    psutil = pytest.importorskip("psutil")
    with local_cluster(1):
        here = psutil.Process()
        listening = {
            connection.laddr.ip
            for process in (here, *here.children(recursive=True))
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        }
    assert listening and listening <= {"127.0.0.1", "::1"}
