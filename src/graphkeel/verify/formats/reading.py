"""Bytes of an untrusted file: a regular file of bounded size, or one clear sentence."""

from __future__ import annotations

from pathlib import Path

from graphkeel.core.errors import ProblemError


def read_limited(path: Path, most: int) -> bytes:
    """The content of a regular file; devices and pipes are refused unread."""
    try:
        if path.exists() and not path.is_file():
            raise ProblemError("a problem is a regular file", got=path)
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise ProblemError(f"{path} cannot be read", got=error) from None
    if len(raw) > most:
        raise ProblemError(f"{path} is too large", fix=f"At most {most >> 20} MiB are read.")
    return raw


def first_line(error: BaseException) -> str:
    """The first line of an error's message, not too long."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]
