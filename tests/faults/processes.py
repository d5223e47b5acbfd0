"""Starting `keel` commands, warm or cold, and ending them at a chosen moment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tally import TALLY
from threads import PATIENCE

HERE = Path(__file__).parent
KEEL = "graphkeel.cli.main"


@dataclass(frozen=True)
class Ended:
    """How a process ended; a negative code is the signal that ended it."""

    code: int
    seconds: float
    out: str
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class WarmCommands:
    """The server of warm.py; one command at a time."""

    folder: Path
    program: str = KEEL
    process: subprocess.Popen[str] = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def run(
        self,
        *arguments: str,
        out: Path,
        kill_after: float | None = None,
        kill_at: int = 0,
        number: int = signal.SIGKILL,
        file_limit: int = 0,
        environment: dict[str, str] | None = None,
    ) -> Ended:
        """Run to the end, or to the signal: after some seconds, or at the n-th change of OUT or the
        cache.

        With `file_limit` no file can grow beyond that many bytes, as if the disk were full.
        """
        self.count += 1
        streams = {name: str(self.folder / f"{name}-{self.count}") for name in ("stdout", "stderr")}
        request = {
            "arguments": [*arguments, "--out", str(out)],
            "kill_at": kill_at,
            "number": int(number),
            "file_limit": file_limit,
            "watched": [str(out), str(self.folder / "cache")],
            "environment": environment or {},
            "program": self.program,
            **streams,
        }
        started = time.monotonic()
        pid = int(self._ask(request))
        timer = threading.Timer(kill_after or 0.0, _signal, (pid, number))
        if kill_after is not None:
            timer.start()
        code = int(self._answer())
        timer.cancel()
        said = {name: Path(path).read_text(errors="replace") for name, path in streams.items()}
        ended = Ended(code, time.monotonic() - started, said["stdout"], said["stderr"])
        if ended.killed:
            TALLY["kills", arguments[0]] += 1
        return ended

    def _ask(self, request: dict[str, Any]) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server of warm commands has ended"
        return line

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def cold(
    *arguments: str,
    environment: dict[str, str] | None = None,
    program: str = KEEL,
    **options: Any,
) -> subprocess.Popen[str]:
    """A program as a user starts it, in a session of its own so that the whole group can be
    signalled."""
    return subprocess.Popen(
        [sys.executable, "-m", program, *arguments],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_listen_to_ctrl_c,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        **options,
    )


def wait_for(
    happened: Callable[[], bool], process: subprocess.Popen[str], seconds: float = PATIENCE
) -> None:
    """Until it has happened, or the process has ended."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def catches(process: subprocess.Popen[str], number: int) -> bool:
    """Whether a process has come so far as to handle a signal itself; without /proc, some time is
    given to it."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        time.sleep(2)
        return True
    (mask,) = [
        line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt:")
    ]
    return bool(int(mask, 16) >> (number - 1) & 1)


def _listen_to_ctrl_c() -> None:
    """A shell starts background jobs with SIGINT ignored, and tests may run in one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
