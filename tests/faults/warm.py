"""Commands as processes of their own, forked from one that has imported torch already.

So a kill falls into the work of a command and not into ten seconds of imports. Each line on stdin
is a request; the answers are the process id at once and the exit code at the end. A request may ask
the process to send itself a signal (SIGKILL is a real one) at the n-th time that it opens a file
for writing, renames, links or removes one in the watched folders."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

EVENTS = {
    "open": 0,
    "os.rename": 1,
    "os.link": 1,
    "os.remove": 0,
    "os.mkdir": 0,
    "sqlite3.connect": 0,
}


def kill_at(count: int, watched: list[str], number: int) -> None:
    """Send this process a signal, as `kill` does, at the count-th change of a watched folder."""
    left = count

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in EVENTS or not _touches(event, arguments, watched):
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)

    sys.addaudithook(hook)


def _touches(event: str, arguments: tuple[Any, ...], watched: list[str]) -> bool:
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        writes = (
            set(mode) & set("wax+") if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR)
        )
        if not writes:
            return False
    path = arguments[EVENTS[event]]
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(
        tuple(watched)
    )


def child(request: dict[str, Any]) -> None:
    os.setsid()
    # A shell starts background jobs with SIGINT ignored, and tests may run in one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in ((1, "stdout"), (2, "stderr")):
        handle = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, number)
    os.environ.update(request["environment"])
    if request["file_limit"]:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_limit"], request["file_limit"]))
    if request["kill_at"]:
        kill_at(request["kill_at"], request["watched"], request["number"])
    main = importlib.import_module(request["program"]).main
    code = 70
    try:
        code = main(request["arguments"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    import joblib  # noqa: F401
    import sklearn.decomposition
    import sklearn.neighbors  # noqa: F401
    import torch

    import graphkeel.lyapunov.certify
    import graphkeel.runs.feedback
    import graphkeel.verify.branch  # noqa: F401

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(request)
        answers.write(f"{pid}\n")
        answers.flush()
        _, status = os.waitpid(pid, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


if __name__ == "__main__":
    serve()
