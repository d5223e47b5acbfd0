"""Six commands of `keel` in a terminal of 80 columns, as people see them.

    python benchmarks/terminal.py > benchmarks/results/terminal.txt

A line that is wider, or a command that ends with another exit code than it should, ends the script.
Times differ from run to run; the one-time token of `keel label` is left out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import numpy as np

from graphkeel.graph import make_sbm
from graphkeel.store.job import package_versions

WIDTH = 80
COMMANDS = (
    "run --seeds 2 --out run",
    "adapt --source old.npz --target new.npz --target-labels 20 --seeds 2",
    "certify --classes 0,1,2 --out run",
    "check run/certificate.json",
    "label run",
    "monitor run --data digits",
)


def shown(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and screen of a command; one that serves a page is ended as people end it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    words = [sys.executable, "-m", "graphkeel.cli.main", *command.split()]
    settings = {**os.environ, "TERM": "dumb", "PYTHONWARNINGS": "ignore"}
    given = {"cwd": folder, "env": settings, "stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(words, **given, start_new_session=True)  # type: ignore[call-overload]
    os.close(theirs)
    screen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux's word for the other end being closed
            break
        screen += part
        if b"end with Ctrl-C" in part:
            process.send_signal(signal.SIGINT)
    return process.wait(), re.sub(r"token=\S+", "token=…", screen.decode()).replace("\r", "")


def main() -> None:
    print(f"# keel in a terminal of {WIDTH} columns, graphkeel {package_versions()['graphkeel']}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        graph = make_sbm(400, 2400, n_classes=3, n_features=8, seed=0)
        moved = np.random.default_rng(0).normal(size=8).astype(np.float32)
        for name, x in (("old", graph.x), ("new", graph.x + 0.3 * moved)):
            np.savez(folder / name, x=x, edge_index=graph.edge_index, y=graph.y)
        for command in COMMANDS:
            code, screen = shown(command, folder)
            wide = [line for line in screen.splitlines() if len(line) > WIDTH]
            if code or wide:
                raise SystemExit(f"keel {command}: exit code {code}, too wide: {wide}\n{screen}")
            print(f"\n$ keel {command}\n{screen.rstrip()}")


if __name__ == "__main__":
    main()
