"""Names from outside as a terminal may show them, and names that were probably meant. Standard
library only.

A file's name can hold an escape sequence that recolours the screen, moves the cursor or writes a
line of its own, and half a character that no terminal can encode. So everything that came from
outside goes through `printable` before a person sees it. JSON escapes such characters itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def printable(text: object) -> str:
    r"""The text with every character that is not a visible one written as Python's `repr` does.

    Newlines count as invisible: what this returns is one line. Applied twice it changes nothing.

    >>> print(printable("run\x1b[31m\n.npz"))
    run\x1b[31m\n.npz"""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def did_you_mean(typed: str, known: Iterable[str], near: float = 0.6) -> str:
    """A question with the nearest known word, or an empty text where none is near.

    >>> did_you_mean("certfy", ["certify", "check"])
    'Did you mean certify?'"""
    nearest = difflib.get_close_matches(typed, list(known), n=1, cutoff=near)
    return f"Did you mean {nearest[0]}?" if nearest else ""
