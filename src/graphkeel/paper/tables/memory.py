"""Peak memory of a piece of work, in this process."""

from __future__ import annotations

import contextlib
import resource
import sys
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Let the peak start anew where the system can (Linux); elsewhere it stays that of the whole
    process."""
    with contextlib.suppress(OSError):
        _RESET.write_text("5")


def peak_mb() -> float:
    """Peak resident memory since `reset_peak`, in MB."""
    with contextlib.suppress(OSError, ValueError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
