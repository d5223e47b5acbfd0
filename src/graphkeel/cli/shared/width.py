"""Text that fits a terminal: prose is broken between words, which are never cut."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable


def terminal_width() -> int | None:
    """Columns of the terminal; None where the output goes to a file or another program, which
    wants whole lines."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def fitted(lines: Iterable[str], width: int | None) -> list[str]:
    """Lines that are at most so wide, where words allow it.

    >>> fitted(["one two three"], 8)
    ['one two', 'three']"""
    if width is None:
        return list(lines)
    return [part for line in lines for part in _parts(line, width)]


def _parts(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return filled(line.strip(), width, indent, indent) or [line]


def filled(text: str, width: int, first: str = "", then: str = "") -> list[str]:
    """A paragraph in lines at most so wide, with these indents; no word is broken."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )
