"""Tables that fit a terminal: columns are set below each other in groups; no cell is cut."""

from __future__ import annotations

import re
from itertools import groupby

_GUTTER = 2  # blanks between two columns


def in_columns(lines: list[str], width: int) -> list[str]:
    """The lines of tables, blocks between empty lines, at most so wide where columns allow it."""
    found: list[str] = []
    for _, members in groupby(lines, key=lambda line: not line.strip()):
        block = list(members)
        columns = _columns(block) if max(map(len, block)) > width else []
        several = len(block) > 1 and len(columns) > 1
        found += _in_groups(block, columns, width) if several else block
    return found


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
