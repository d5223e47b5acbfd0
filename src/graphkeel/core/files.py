"""Files that are whole or not there: written to a temporary file, flushed to disk, then renamed.

Whoever is killed in the middle leaves the old file, or none, and a temporary file that the next
writer removes. Whoever writes, a file gets the rights that `open` would give it: all, less the
umask. Standard library only."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from graphkeel.core.errors import DataError, StorageError

try:
    import fcntl
except ImportError:  # pragma: no cover
    # Windows has no flock: two writers of one folder are not kept apart there.
    fcntl = None  # type: ignore[assignment]

_FIX = "Free some space or choose another --out; what was finished before is kept."
_counter = itertools.count()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to the path that is yielded; at the end it takes the place of `path`, at once and as a
    whole."""
    temporary = path.with_name(f"{_prefix(path)}{os.getpid()}.{next(_counter)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        temporary.touch()
        usual = temporary.stat().st_mode
        yield temporary
        temporary.chmod(
            usual
        )  # safetensors puts a file of its own in its place, for its owner only
        _flush(temporary)
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """The whole content at once, or the old file."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def is_there(check: Callable[[], bool]) -> bool:
    """`path.is_file` or `path.is_dir`, where a name that no file can have (too long, say) is one
    that is not there."""
    try:
        return check()
    except (OSError, ValueError):
        return False


def read_lines(path: Path) -> list[str]:
    """The lines of a text that are not blank, without blanks at their ends."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read", got=str(error)[:200]) from error
    return [line.strip() for line in lines if line.strip()]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time: for files that only together mean something. A lock dies with its
    process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        if handle is not None:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def cannot_write(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be written", got=error.strerror or error, fix=_FIX)


def _prefix(path: Path) -> str:
    return f".{path.name}.{socket.gethostname()}."


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files that killed writers of this file left."""
    prefix = _prefix(path)
    with contextlib.suppress(OSError):
        for entry in os.scandir(path.parent):
            is_temporary = entry.name.startswith(prefix) and entry.name.endswith(".tmp")
            if is_temporary and not _alive(entry.name, prefix):
                Path(entry.path).unlink(missing_ok=True)


def _alive(name: str, prefix: str) -> bool:
    """Whether the process that wrote this temporary file still runs; if in doubt, yes."""
    pid = name.removeprefix(prefix).split(".")[0]
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OSError, OverflowError):
        return True
    return True


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """The name, too: a rename is on disk only once its folder is."""
    with contextlib.suppress(OSError):  # Windows and some network file systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def user_cache() -> Path:
    """The folder for downloads and cached intermediate results; `XDG_CACHE_HOME` is honoured."""
    if sys.platform == "win32":  # pragma: no cover
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":  # pragma: no cover
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphkeel"
