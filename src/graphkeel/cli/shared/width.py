"""Text that fits a terminal: prose is broken between words, columns are set below each other in
groups. Numbers and words are never cut."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from itertools import groupby

_GUTTER = 2  # blanks between two columns


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
    found: list[str] = []
    for is_empty, members in groupby(lines, key=lambda line: not line.strip()):
        block = list(members)
        found += block if is_empty else _block(block, width)
    return found


def _block(lines: list[str], width: int) -> list[str]:
    if max(map(len, lines)) <= width:
        return lines
    columns = _columns(lines)
    if len(lines) > 1 and len(columns) > 1:
        return _in_groups(lines, columns, width)
    parts = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        parts += filled(line.strip(), width, indent, indent) or [line]
    return parts


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


def _columns(lines: list[str]) -> list[tuple[int, int]]:
    """(start, end) of every column: between them, all lines have at least two blanks."""
    padded = [line.ljust(max(map(len, lines))) for line in lines]
    used = "".join(" " if set(letters) == {" "} else "x" for letters in zip(*padded, strict=True))
    return [found.span() for found in re.finditer("(?:^ )?x+(?: x+)*", used)]


def _in_groups(lines: list[str], columns: list[tuple[int, int]], width: int) -> list[str]:
    """The first column, then as many others as fit; the rest below, again after the first."""
    first, *others = columns
    groups: list[list[tuple[int, int]]] = [[]]
    for column in others:
        used = first[1] + sum(_GUTTER + end - start for start, end in groups[-1])
        if groups[-1] and used + _GUTTER + column[1] - column[0] > width:
            groups.append([])
        groups[-1].append(column)
    found: list[str] = []
    for number, group in enumerate(groups):
        found += [""] * (number > 0)
        for line in lines:
            cells = [line[start:end].ljust(end - start) for start, end in (first, *group)]
            found.append((" " * _GUTTER).join(cells).rstrip())
    return found
