"""`keel-paper table` killed, signalled, and on a full disk: what is finished is kept."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults import processes
from faults.kept import Finished, check_whole, stored_rows
from faults.processes import WarmCommands, catches, wait_for
from faults.test_kills import Victim, kill_again_and_again, undisturbed
from graphkeel.core.errors import ConfigError
from graphkeel.store.store import FILE, Store
from graphkeel_paper.cli.main import main
from tally import TALLY
from threads import PATIENCE

PROGRAM = "graphkeel_paper.cli.main"
cold = partial(processes.cold, program=PROGRAM)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    commands = WarmCommands(tmp_path_factory.mktemp("warm"), PROGRAM)
    first = Table(rows="sgc", seeds=1).arguments
    assert commands.run(*first, out=tmp_path_factory.mktemp("first")).code == 0
    yield commands  # whatever is compiled on first use is compiled now
    commands.close()


class Table:
    """Measurements in SQLite, and the table in five formats."""

    def __init__(self, rows: str = "sgc,t3a,lp", seeds: int = 2) -> None:
        self.arguments = (
            "table",
            "1",
            "--datasets",
            "digits",
            "--only",
            rows,
            "--seeds",
            str(seeds),
            "--jobs",
            "1",
        )
        self.arguments += ("--json",)

    def finished(self, out: Path) -> Finished:
        return stored_rows(out)

    def result(self, out: Path) -> Any:
        clocked = {"seconds", "peak_mb", "note"}
        table = json.loads((out / "table-1.json").read_text())
        rows = [
            {key: value for key, value in row.items() if key not in clocked}
            for row in table["rows"]
        ]
        return rows, sorted(self.finished(out)), sorted(path.name for path in out.glob("table-1.*"))


def jobs_in(out: Path) -> int:
    """How many jobs of a table are finished by now; -1 before there is a store."""
    try:
        return len(Store(out / FILE)) if (out / FILE).exists() else -1
    except ConfigError:  # read in the moment of its making
        return -1


SHORT = Table(rows="sgc,lp", seeds=1)


def test_a_killed_table_continues_and_comes_to_the_same(warm: WarmCommands, tmp_path: Path) -> None:
    expected, _ = undisturbed(warm, SHORT, tmp_path / "undisturbed")
    victim = Victim(warm, SHORT, tmp_path / "killed", {})
    assert victim.start(kill_at=6).killed
    assert victim.start().code == 0
    assert SHORT.result(victim.out) == expected


@pytest.mark.slow
def test_many_seeded_kills_of_a_table(warm: WarmCommands, tmp_path: Path) -> None:
    before = TALLY["kills", "table"]
    kill_again_and_again(warm, Table(), tmp_path, 15, seed=sum(map(ord, "table")))
    assert TALLY["kills", "table"] - before >= 15


def test_a_disk_that_takes_no_more_is_one_message_and_a_folder_to_go_on_from(
    warm: WarmCommands, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = warm.run(*SHORT.arguments, out=out, file_limit=4000)
    assert ended.code == 2, ended.err
    (line,) = [line for line in ended.err.splitlines() if line.startswith("keel-paper ")]
    assert str(out) in line and "Free some space" in line
    check_whole(out)
    assert warm.run(*SHORT.arguments, out=out).code == 0
    SHORT.result(out)


def test_a_folder_that_takes_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "out"
    assert main([*SHORT.arguments, "--out", str(place)]) == 2
    error = capsys.readouterr().err
    assert "keel-paper table: " in error and str(place) in error and "--out" in error


@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [True, False])
def test_a_table_with_worker_processes_is_killed(
    whole_group: bool, tmp_path: Path, warm: WarmCommands
) -> None:
    """As a user starts it; once the parent alone is killed, so that its workers are left without
    one."""
    kept = Table()
    expected, _ = undisturbed(warm, kept, tmp_path / "undisturbed")
    out = tmp_path / "killed"
    arguments = [*kept.arguments[:-3], "--jobs", "2", "--json", "--out", str(out)]
    rng, before, kills = random.Random(whole_group), {}, 0
    for jobs in (0, 1, 3):  # of six; then a moment longer
        process = cold(*arguments)
        wait_for(lambda jobs=jobs: jobs_in(out) >= jobs, process)
        time.sleep(rng.uniform(0, 0.5))
        if process.poll() is None:
            (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
            kills += 1
        # Ends when the last worker, too, has let go of its end of the pipe.
        process.communicate(timeout=PATIENCE)
        check_whole(out)
        now = kept.finished(out)
        assert before.items() <= now.items()
        before = now
    TALLY["kills", "table"] += kills
    assert kills >= 2
    last = cold(*arguments)
    last.communicate(timeout=PATIENCE)
    assert last.returncode == 0
    assert kept.result(out) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("jobs", "seconds"), [(-1, 0.5), (0, 1.5), (2, 0.1)])
def test_a_signal_to_a_table_and_its_workers(
    number: int, code: int, jobs: int, seconds: float, tmp_path: Path
) -> None:
    """As a terminal sends Ctrl-C, to the command and its workers at once: at its start, at theirs,
    and at work."""
    arguments = [
        *Table(rows="sgc,t3a,lp", seeds=5).arguments[:-3],
        "--jobs",
        "2",
        "--out",
        str(tmp_path),
    ]
    process = cold(*arguments)
    # SIGTERM, as Python itself handles SIGINT from its beginning.
    wait_for(lambda: catches(process, signal.SIGTERM), process)
    wait_for(lambda: jobs_in(tmp_path) >= jobs, process)
    time.sleep(seconds)
    os.killpg(process.pid, number)
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "Traceback" not in error
    assert [line for line in error.splitlines() if line.startswith("keel")][-1].endswith(
        "what was finished is kept"
    )
    assert out == ""
