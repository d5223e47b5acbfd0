"""The grid: both cores, one row a job, whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import jobs
from graphkeel.core.errors import ConfigError
from graphkeel.core.memory import peak_mb, reset_peak
from graphkeel.store.job import Job, Measurement
from graphkeel.store.store import FILE, Store
from graphkeel_paper.tables.grid import RowCosts, missing_jobs, run_grid, run_job
from threads import PATIENCE

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _workers_find_the_jobs(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_every_job_is_stored_and_heard_of(tmp_path):
    store, heard = Store(tmp_path / FILE), []
    wanted = jobs.jobs_of("row", 6)
    run_grid(
        wanted,
        store,
        2,
        measure=jobs.number,
        on_job=lambda job, measured: heard.append(job.seed),
    )
    assert sorted(heard) == list(range(6))
    assert [store.find(job).result["accuracy"] for job in wanted] == [0, 1, 2, 3, 4, 5]


def test_a_worker_has_one_core(tmp_path):
    store = Store(tmp_path / FILE)
    wanted = jobs.jobs_of("row", 2)
    run_grid(wanted, store, 2, measure=jobs.cores)
    assert [store.find(job).result["accuracy"] for job in wanted] == [1, 1]


def test_rows_that_share_a_job_share_its_computation(tmp_path):
    store, heard = Store(tmp_path / FILE), []
    run_grid(
        [*jobs.jobs_of("a", 2), *jobs.jobs_of("b", 2)],
        store,
        1,
        measure=jobs.number,
        on_job=lambda job, _: heard.append(job.seed),
    )
    assert sorted(heard) == [0, 1]


def test_a_worker_that_dies_costs_its_own_job_only(tmp_path):
    store = Store(tmp_path / FILE)
    good, bad = jobs.jobs_of("good", 5), jobs.jobs_of("bad", 1, method="die")
    run_grid([*good[:2], *bad, *good[2:]], store, 2, measure=jobs.number)
    assert all(store.find(job).done for job in good)
    assert store.find(bad[0]).message == "the worker process died, most likely out of memory"


def test_a_failing_job_keeps_its_message(job):
    failed = run_job(job(method="no such method"))
    assert not failed.done
    assert "ConfigError: the method must be one of" in failed.message
    assert failed.seconds >= 0


class Busy:
    """A specification whose measurement works on and on, and catches all that it can."""

    dataset = "busy"

    def measure(self, seed):
        while True:
            with contextlib.suppress(Exception):
                sum(range(1000))


def test_a_job_is_stopped_when_its_time_is_used_up(tmp_path):
    busy = Job("row", Busy(), 0, data="d", code="c")
    found = run_job(busy, row_budget=0.2)
    assert found.stopped
    assert not found.done
    assert 0.2 < found.processor_seconds < PATIENCE
    assert found.message.startswith("stopped after 0 s")
    assert run_job(jobs.jobs_of("row", 1, method="no such")[0], row_budget=60.0).stopped is False


def test_a_job_that_was_stopped_is_missing_once_it_may_take_longer(tmp_path):
    store = Store(tmp_path / FILE)
    wanted = jobs.jobs_of("row", 1)
    stopped = Measurement("error", 2.0, 1.0, {"cpu_seconds": 1.5}, "stopped after 2 s")
    store.keep(wanted[0], stopped)
    assert missing_jobs(wanted, store, row_budget=1.0) == []
    assert missing_jobs(wanted, store, row_budget=5.0) == wanted
    assert missing_jobs(wanted, store) == wanted


def test_only_a_first_seed_is_stopped():
    first, second = jobs.jobs_of("row", 2)
    costs = RowCosts(10.0)
    assert costs.limit(first) == 10.0
    stopped = Measurement("error", 2.0, 1.0, {"cpu_seconds": 5.0}, "of a smaller budget")
    costs.learn(first, stopped)
    assert costs.limit(first) == 10.0
    costs.learn(first, Measurement("done", 9.0, 1.0, {"accuracy": 1.0, "base": 1.0}))
    assert costs.limit(second) is None
    assert not costs.is_over(second)


def test_a_real_job_has_accuracy_time_and_memory(job):
    found = run_job(job(dataset="sbm"))
    assert found.done
    assert found.result["accuracy"] == found.result["base"] > 50
    assert 50 < found.peak_mb < 16_000


def test_a_grid_that_is_killed_repeats_no_finished_job(tmp_path):
    """SIGKILL of the whole process group while jobs are running; the second run does the rest."""
    store_path, log = tmp_path / FILE, tmp_path / "log"
    command = [sys.executable, str(HERE / "jobs.py"), str(store_path), str(log), "logged", "none"]
    running = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not (store_path.exists() and _finished(store_path) >= 2):
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    wanted = jobs.jobs_of(str(log), 8)
    before = {job.seed for job in wanted if Store(store_path).find(job)}
    assert 2 <= len(before) < 8
    jobs.gate(log).touch()
    subprocess.run(command, check=True, timeout=PATIENCE)
    begun = Counter(int(line) for line in log.read_text().split())
    assert set(begun) == set(range(8))
    assert all(begun[seed] == 1 for seed in before)
    assert all(Store(store_path).find(job).done for job in wanted)


def test_workers_end_when_their_parent_alone_is_killed(tmp_path):
    store_path, log = tmp_path / FILE, tmp_path / "log"
    command = [sys.executable, str(HERE / "jobs.py"), str(store_path), str(log), "endless", "none"]
    running = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: log.exists() and len(log.read_text().split()) == 2)
        assert running.poll() is None
        assert alive(int(log.read_text().split()[-1]))
    finally:
        running.kill()
    # Ends when the last process that holds the other end of stderr has ended.
    running.communicate(timeout=PATIENCE)
    workers = [int(pid) for pid in log.read_text().split()]
    wait_until(lambda: not any(alive(pid) for pid in workers))
    assert len(Store(store_path)) == 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(happened) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _finished(path: Path) -> int:
    try:
        return len(Store(path))
    except ConfigError:  # read in the moment of its making
        return 0


def test_peak_memory_is_that_of_the_work():
    reset_peak()
    low = peak_mb()
    block = bytearray(
        512 * 2**20
    )  # large, as the system may take back pages of mapped libraries meanwhile
    assert peak_mb() >= low + 100
    del block
