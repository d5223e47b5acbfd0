"""Files are whole or not there: full disks, dead writers, two writers, damage."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graphkeel.core import files
from graphkeel.core.errors import DataError, KeelError, StorageError
from graphkeel.core.tensors import save_tensors
from graphkeel.reconstruct.storage import FOLDER
from graphkeel.runs.specs import RunSpec
from graphkeel.store.job import Job, Measurement
from graphkeel.store.store import FILE, Store

SPAWN = multiprocessing.get_context("fork")


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


WRITERS: dict[str, Callable[[Path], None]] = {
    "text": lambda folder: files.write_text(folder / "file", "new"),
    "tensors": lambda folder: save_tensors(folder / "file", {"x": torch.ones(3)}),
    "reconstruction": lambda folder: FOLDER.save(folder, {"x": torch.ones(3)}, {}),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_one_message(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(
        StorageError, match=r"cannot be written \(got No space left on device\). Free some space"
    ):
        WRITERS[writer](tmp_path)
    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing is left aside"


def test_tensors_that_do_not_fit_on_the_disk_are_a_storage_error(tmp_path: Path) -> None:
    folder = tmp_path / "a file"
    folder.write_text("not a folder")
    with pytest.raises(StorageError, match="cannot be written"):
        save_tensors(folder / "x.safetensors", {"x": torch.ones(3)})


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
@pytest.mark.parametrize("writer", ["text", "tensors"])
def test_every_file_gets_the_rights_that_open_gives(
    writer: str, umask: int, tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        WRITERS[writer](tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~umask


def test_what_a_dead_writer_left_aside_is_swept_away_and_a_living_ones_is_not(
    tmp_path: Path,
) -> None:
    child = SPAWN.Process(target=lambda: None)
    child.start()
    child.join()
    prefix = files._prefix(tmp_path / "file")
    dead, alive = (tmp_path / f"{prefix}{pid}.0.tmp" for pid in (child.pid, os.getppid()))
    for path in (dead, alive):
        path.write_text("half")
    files.write_text(tmp_path / "file", "whole")
    assert not dead.exists()
    assert alive.exists()


def test_a_lock_keeps_others_out_and_is_gone_afterwards(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    with files.locked(tmp_path), pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)
    assert list(tmp_path.iterdir()) == []


# ---- two processes, one place


def write_often(folder: Path, value: int) -> None:
    for i in range(150):
        files.write_text(folder / "row", str(value) * (50 + i))


def save_often(folder: Path, value: int) -> None:
    for i in range(40):
        FOLDER.save(folder, {"x": torch.full((10 + i,), float(value))}, {"value": value})


def keep_often(folder: Path, value: int) -> None:
    store = Store(folder / FILE)
    for seed in range(30):
        job = Job("row", RunSpec(), seed, data="d", code=str(seed % 2 or value))
        store.keep(job, Measurement("done", 1.0, 1.0, {"accuracy": float(seed), "base": 0.0}))


def together(work: Callable[[Path, int], None], folder: Path, look: Callable[[], None]) -> None:
    """Two processes do the same in one folder while this one looks."""
    writers = [SPAWN.Process(target=work, args=(folder, value)) for value in (1, 2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        look()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0


def test_readers_of_a_file_see_one_writers_or_the_others(tmp_path: Path) -> None:
    files.write_text(tmp_path / "row", "0")

    def look() -> None:
        assert len(set((tmp_path / "row").read_text())) == 1

    together(write_often, tmp_path, look)


def test_readers_of_a_reconstruction_see_tensors_and_facts_of_one_save(tmp_path: Path) -> None:
    FOLDER.save(tmp_path, {"x": torch.zeros(3)}, {"value": 0})

    def look() -> None:
        tensors, facts = FOLDER.load(tmp_path)
        assert set(tensors["x"].tolist()) == {float(facts["value"])}

    together(save_often, tmp_path, look)
    assert len(list(tmp_path.iterdir())) == 2, "old tensors are forgotten"


def test_a_store_takes_two_writers(tmp_path: Path) -> None:
    store = Store(tmp_path / FILE)
    together(keep_often, tmp_path, lambda: None)
    assert len(store) == 15 * 2 + 15


def test_two_different_runs_cannot_both_claim_a_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / FILE)
    store.claim({"spec": {"method": "a"}})
    with pytest.raises(KeelError, match="holds another run"):
        Store(tmp_path / FILE).claim({"spec": {"method": "b"}})
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute("UPDATE manifest SET content = '{'")
    connection.close()
    with pytest.raises(KeelError, match="a damaged manifest"):
        store.claim({"spec": {"method": "a"}})


# ---- damage


def test_damaged_tensors_of_a_reconstruction_are_noticed(tmp_path: Path) -> None:
    FOLDER.save(tmp_path, {"x": torch.ones(100)}, {})
    (path,) = tmp_path.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # a flip that safetensors itself cannot see
    path.write_bytes(content)
    with pytest.raises(DataError, match="is damaged: its SHA-256 is another"):
        FOLDER.load(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match="holds no stored reconstruction"):
        FOLDER.load(tmp_path)
