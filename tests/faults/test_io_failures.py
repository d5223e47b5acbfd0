"""Full disks, read-only folders, damaged caches, jumping clocks and signals, as the commands meet
them."""

from __future__ import annotations

import ast
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphkeel
from faults.kept import Certify, Feedback, Kept, Run, check_whole
from faults.processes import Ended, WarmCommands, cold
from graphkeel.cli.main import main
from graphkeel.graph import make_sbm
from graphkeel.graph.splits import biased_sampler
from graphkeel.runs.run import run_seeds
from graphkeel.runs.specs import RunSpec
from graphkeel.store.job import Job, Measurement
from graphkeel.store.store import FILE, Store
from threads import PATIENCE

COMMANDS: dict[str, Kept] = {
    "run": Run(seeds=2, method="diffuse"),
    "certify": Certify("--classes", "3"),
    "feedback": Feedback(labels=20, batches=1),
}


def says_one_thing(ended: Ended, *words: str) -> None:
    """Exit code 2, and one line that says what is wrong."""
    assert ended.code == 2, ended.err
    assert "Traceback" not in ended.err
    (line,) = [line for line in ended.err.splitlines() if line.startswith("keel ")]
    assert all(word in line for word in words), line


# ---- no room, no permission


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_takes_no_more_is_one_message_and_a_folder_to_go_on_from(
    command: str, warm: WarmCommands, tmp_path: Path
) -> None:
    kept, out = COMMANDS[command], tmp_path / "out"
    says_one_thing(warm.run(*kept.arguments, out=out, file_limit=4000), str(out), "Free some space")
    check_whole(out)
    ended = warm.run(*kept.arguments, out=out)
    assert ended.code == 0, ended.err
    kept.result(out)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("mounting a small disk needs more rights than this user has")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full(small_disk: Path, warm: WarmCommands) -> None:
    kept, out = COMMANDS["run"], small_disk / "out"
    says_one_thing(warm.run(*kept.arguments, out=out), "No space left on device")
    check_whole(out)
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    assert warm.run(*kept.arguments, out=out).code == 0


def places_that_take_no_files(tmp_path: Path) -> list[Path]:
    """For root as for anyone: below a regular file, and in the kernel's own file system."""
    file = tmp_path / "file"
    file.write_text("")
    return [file / "out", *(path for path in [Path("/sys/kernel")] if path.is_dir())]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_takes_no_files(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in places_that_take_no_files(tmp_path):
        assert main([*COMMANDS[command].arguments, "--out", str(place)]) == 2
        error = capsys.readouterr().err
        assert f"keel {command}: " in error
        assert str(place) in error
        assert "--out" in error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_is_not_taken_for_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Path("/dev/full").open("w") as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert main(["doctor", "--json"]) == 2
    assert "No space left on device" in capsys.readouterr().err


# ---- damaged caches: computed again, with the same result


def damaged(content: bytes) -> dict[str, bytes]:
    flipped = bytearray(content)
    flipped[-len(flipped) // 3] ^= 0x55
    return {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "garbage": b"\x93NUMPY" * 50,
        "flipped": bytes(flipped),
    }


def test_a_damaged_ppr_cache_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = make_sbm(300, 1500)
    biased_sampler.cache_clear()
    expected = biased_sampler(graph).draw(0)
    (cache,) = tmp_path.rglob("*.npz")
    whole = cache.read_bytes()
    for content in (*damaged(whole).values(), b"PK\x03\x04" + bytes(100)):
        cache.write_bytes(content)
        biased_sampler.cache_clear()
        assert np.array_equal(biased_sampler(graph).draw(0), expected)
        with np.load(cache) as again, np.load(io.BytesIO(whole)) as first:
            assert np.array_equal(again["norms"], first["norms"], equal_nan=True)
    biased_sampler.cache_clear()


def test_damaged_feedback_is_taken_in_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = COMMANDS["feedback"]
    assert main([*kept.arguments, "--out", str(tmp_path)]) == 0
    expected = kept.result(tmp_path)
    (tensors,) = tmp_path.glob("*.safetensors")
    tensors.write_bytes(damaged(tensors.read_bytes())["flipped"])
    assert main([*kept.arguments, "--out", str(tmp_path)]) == 0
    assert kept.result(tmp_path) == expected
    first = json.loads(capsys.readouterr().out.split("}\n{")[0] + "}")
    assert [step["known"] for step in first["steps"]] == [500, 520]


# ---- clocks


WALL_CLOCKS = {"time", "now", "utcnow", "today", "ctime", "localtime", "gmtime"}
# they say when; nothing is decided by it
PROVENANCE = {"certificate/build.py", "monitor/report.py"}


def test_nothing_is_decided_by_the_wall_clock() -> None:
    root = Path(graphkeel.__file__).parent
    for path in root.rglob("*.py"):
        calls = [
            node.func
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        ]
        clocks = [f for f in calls if isinstance(f, ast.Attribute) and f.attr in WALL_CLOCKS]
        named = {f"{f.value.id}.{f.attr}" for f in clocks if isinstance(f.value, ast.Name)}
        if str(path.relative_to(root)) not in PROVENANCE:
            assert not {
                name for name in named if name.startswith(("time.", "datetime.", "date."))
            }, path


def test_the_newest_measurement_is_the_one_stored_last_whatever_the_clock_said(
    tmp_path: Path,
) -> None:
    import sqlite3

    store = Store(tmp_path / FILE)
    for code, accuracy in (("old", 1.0), ("new", 2.0)):
        measured = Measurement("done", 1.0, 1.0, {"accuracy": accuracy, "base": 0.0})
        store.keep(Job("row", RunSpec(), 0, data="d", code=code), measured)
    connection = sqlite3.connect(store.path)
    connection.execute(
        "UPDATE measurements SET finished = '2099-01-01T00:00:00Z' WHERE code = 'old'"
    )
    connection.commit()
    connection.close()
    found = store.find(Job("row", RunSpec(), 0, data="d", code="newest"), any_code=True)
    assert found is not None
    assert found.result["accuracy"] == 2.0


def test_a_run_under_a_jumping_clock_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    spec = RunSpec(dataset="sbm", method="diffuse")
    expected = run_seeds(spec, range(2)).rows
    real, jumps = time.time, iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: real() + (-1) ** next(jumps) * 10**7)
    rows = run_seeds(spec, range(2), out=tmp_path).rows
    assert [{**row, "seconds": 0} for row in rows] == [{**row, "seconds": 0} for row in expected]
    assert run_seeds(spec, range(2), out=tmp_path).rows == rows


# ---- signals


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_ends_a_command_with_one_line_and_it_continues(
    number: int, code: int, word: str, warm: WarmCommands, tmp_path: Path
) -> None:
    kept, out = Run(seeds=6, method="diffuse"), tmp_path / "out"
    for changes in (1, 15):  # of its folder: at the beginning, and at work
        ended = warm.run(*kept.arguments, out=out, kill_at=changes, number=number)
        assert ended.code == code, ended.err
        assert ended.err.strip() == f"keel: {word}; what was finished is kept"
        assert ended.out == ""
        check_whole(out)
        kept.finished(out)
    short = Run(seeds=1, method="diffuse")
    assert warm.run(*short.arguments, out=out).code == 0


@pytest.mark.slow
def test_two_runs_in_one_folder_at_once(tmp_path: Path, warm: WarmCommands) -> None:
    kept = Run(seeds=4)
    assert warm.run(*kept.arguments, out=tmp_path / "alone").code == 0
    pair = [cold(*kept.arguments, "--out", str(tmp_path / "shared")) for _ in range(2)]
    assert [process.wait(timeout=PATIENCE) for process in pair] == [0, 0]
    for process in pair:
        process.communicate()
    assert kept.result(tmp_path / "shared") == kept.result(tmp_path / "alone")
