"""Arrays that would not fit into memory are refused in words, before they are allocated."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphkeel.cli.main import main
from graphkeel.core import memory as memory_limit
from graphkeel.core.errors import ConfigError, KeelError, MemoryLimitError
from graphkeel.graph import load, make_sbm
from graphkeel.graph.datasets.npz import load_npz
from graphkeel.graph.features import FittedPca, dense
from graphkeel.graph.ppr import PprDistance
from graphkeel.models import train_model
from graphkeel.reconstruct.reconstructor import Reconstructor


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("512 MiB", 2**29),
        ("1.5g", 3 * 2**29),
        ("1000", 1000),
        ("0", 0),
        (" 2 kb ", 2000),
    ],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert memory_limit.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-1GB", "1e9", "4 parsecs", "٤GB", "9" * 40, "1..5G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="must be a size"):
        memory_limit.parse_size(text)


def test_the_refusal_says_what_how_much_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKEEL_MEMORY", "1MB")
    memory_limit.require_memory(10**6, "this", "Shrink it.")
    with pytest.raises(
        MemoryLimitError, match=re.escape("this needs about 2.5 GB of memory (got 1 MB available).")
    ):
        memory_limit.require_memory(25 * 10**8, "this", "Shrink it.")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_tightest_control_group_counts(tmp_path: Path) -> None:
    proc = write(
        tmp_path / "proc",
        {"self/cgroup": "0::/job/part\n", "meminfo": "MemTotal: 9 kB\nMemAvailable: 5 kB\n"},
    )
    files = {
        "job/memory.max": "1000000\n",
        "job/memory.current": "400000\n",
        "job/memory.stat": "anon 1\ninactive_file 100000\n",
        "job/part/memory.max": "max\n",
        "job/part/memory.current": "7\n",
    }
    groups = write(tmp_path / "cgroup", files)
    assert list(memory_limit._control_groups(proc, groups)) == [700_000]
    assert list(memory_limit._machine(proc)) == [5 * 1024]


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    proc = write(tmp_path / "proc", {"self/cgroup": "3:cpu:/a\n2:memory:/job\n"})
    files = {
        "memory/job/memory.limit_in_bytes": "5000\n",
        "memory/job/memory.usage_in_bytes": "2000\n",
    }
    assert list(memory_limit._control_groups(proc, write(tmp_path / "cgroup", files))) == [3000]


def test_an_unknown_machine_limits_nothing(tmp_path: Path) -> None:
    assert list(memory_limit._machine(tmp_path)) == []
    assert list(memory_limit._control_groups(tmp_path, tmp_path)) == []


def test_a_limit_on_the_address_space_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import resource

    proc = write(tmp_path, {"self/status": "Name: x\nVmSize: 10 kB\n"})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20_480, 20_480))
    assert list(memory_limit._address_space(proc)) == [10_240]


@pytest.fixture
def one_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKEEL_MEMORY", "1MB")


def graph_file(path: Path, n_features: int) -> Path:
    x, y = np.zeros((1000, n_features), dtype=np.float32), np.arange(1000) % 2
    np.savez_compressed(path, x=x, edge_index=np.zeros((2, 0), dtype=np.int64), y=y)
    return path


def test_a_small_file_that_unpacks_to_much_is_refused(one_megabyte: None, tmp_path: Path) -> None:
    path = graph_file(tmp_path / "graph.npz", 1000)
    assert path.stat().st_size < 20_000
    with pytest.raises(MemoryLimitError, match="unpacked, needs about 4"):
        load_npz(path)
    assert load_npz(graph_file(tmp_path / "small.npz", 10)).n_nodes == 1000


def test_a_graph_whose_copies_would_not_fit_is_refused(one_megabyte: None, tmp_path: Path) -> None:
    with pytest.raises(MemoryLimitError, match=r"the graph of .* needs"):
        load_npz(graph_file(tmp_path / "graph.npz", 200))


def test_whatever_grows_with_its_input_asks_first(one_megabyte: None) -> None:
    wide = sparse.random(1000, 1000, 0.1, format="csr", dtype=np.float32)
    for work in (
        lambda: make_sbm(10**9, 10**10),
        lambda: dense(wide),
        lambda: FittedPca.fit(wide, 5),
        lambda: PprDistance(sparse.eye(20_000, format="csr"), 0.1),
    ):
        with pytest.raises(MemoryLimitError, match="available"):
            work()


def test_a_reconstruction_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load("digits")
    model = train_model("sgc", task)
    monkeypatch.setenv("GRAPHKEEL_MEMORY", "1MB")
    with pytest.raises(MemoryLimitError, match="reconstructing a 1797 × 64"):
        Reconstructor(model).fit(task.to_data())


def test_the_command_line_says_it_in_one_line(
    one_megabyte: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = graph_file(tmp_path / "graph.npz", 1000)
    assert main(["run", "--dataset", str(path), "--seeds", "1"]) == 2
    error = capsys.readouterr().err
    assert "\n" not in error.strip()
    assert "GRAPHKEEL_MEMORY" in error


def test_running_out_of_memory_nevertheless_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 8 EiB")

    monkeypatch.setattr("graphkeel.runs.run.run_seeds", fail)
    assert main(["run", "--seeds", "1"]) == 2
    assert "not enough memory" in capsys.readouterr().err
    assert issubclass(MemoryLimitError, KeelError)
