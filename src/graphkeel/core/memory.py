"""How much memory there is, and a refusal, in words, of what would not fit. Standard library only.

The kernel's answer to too large an array is to end the process, without a word. So whatever
allocates by the size of its input calls `require_memory` first. `GRAPHKEEL_MEMORY` (say `4GB`)
takes the place of what the machine says."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from graphkeel.core.errors import ConfigError, MemoryLimitError

_VARIABLE = "GRAPHKEEL_MEMORY"
_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= {f"{_letter}B": 1000**_power, _letter: 1024**_power, f"{_letter}IB": 1024**_power}


def require_memory(n_bytes: int, what: str, fix: str) -> None:
    """Refuse `what` if it needs more than there is; `fix` says how to need less."""
    limit = _available()
    if limit is not None and n_bytes > limit:
        raise MemoryLimitError(
            f"{what} needs about {_readable(n_bytes)} of memory",
            got=f"{_readable(limit)} available",
            fix=f"{fix} {_VARIABLE} can name another limit.",
        )


def release_memory(least_mb: float = 1024.0) -> None:
    """Hand what was freed back to the system: glibc keeps it, a gigabyte of it at times.

    A process that never held `least_mb` is left alone: asking for pages anew takes time."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems
        trim = ctypes.CDLL(None).malloc_trim
        if peak_mb() >= least_mb:
            trim(0)


def _available() -> int | None:
    """Bytes that can still be allocated; None where nothing is known of the machine."""
    given = os.environ.get(_VARIABLE)
    if given:
        return parse_size(given)
    found = [*_machine(), *_control_groups(), *_address_space()]
    return max(min(found), 0) if found else None


def parse_size(text: str) -> int:
    """`4GB`, `512MiB`, `1.5G` or a plain number of bytes."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)\s*", text, flags=re.ASCII)
    if match is None or match[2].upper() not in _UNITS:
        raise ConfigError(
            f"{_VARIABLE} must be a size", got=repr(text)[:80], fix="For instance 4GB."
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _readable(n_bytes: int) -> str:
    units = ("B", "KB", "MB", "GB", "TB")
    power = next((p for p in range(len(units)) if n_bytes < 1000 ** (p + 1)), len(units) - 1)
    return f"{n_bytes / 1000**power:.3g} {units[power]}"


# ---- who limits memory


def _machine(proc: Path = Path("/proc")) -> Iterator[int]:
    """Memory that the kernel estimates it can hand out without swapping."""
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _control_groups(
    proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """The rest of the limit of this process's control group, and of each group above it."""
    for line in _lines(proc / "self" / "cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, inside = rest.partition(":")
        if number == "0" and not controllers:
            names = ("memory.max", "memory.current", "inactive_file")
            yield from _groups_above(root, inside, *names)
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _groups_above(root / "memory", inside, *names)


def _groups_above(root: Path, inside: str, limit: str, usage: str, droppable: str) -> Iterator[int]:
    parts = [part for part in inside.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        group = root.joinpath(*parts[:depth])
        total, used = _number(group / limit), _number(group / usage)
        if total is not None and used is not None:
            yield total - max(used - _statistic(group / "memory.stat", droppable), 0)


def _statistic(path: Path, name: str) -> int:
    """Of the memory in use, the file cache that the kernel drops when it is needed."""
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return 0


def _address_space(proc: Path = Path("/proc")) -> Iterator[int]:
    """The rest of the limit of `ulimit -v`."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    used = [
        int(line.split()[1]) * 1024
        for line in _lines(proc / "self" / "status")
        if line.startswith("VmSize:")
    ]
    yield limit - sum(used)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """A limit or a usage; None where there is none (`max`)."""
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


# ---- peak memory of a piece of work, in this process

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Let the peak start anew where the system can (Linux); on others it stays that of the whole
    process."""
    with contextlib.suppress(OSError):
        _RESET.write_text("5")


def peak_mb() -> float:
    """Peak resident memory since `reset_peak`, in MB."""
    with contextlib.suppress(OSError, ValueError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
