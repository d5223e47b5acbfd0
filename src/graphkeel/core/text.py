"""Names from outside as a terminal may show them. Standard library only.

A file's name can hold an escape sequence that recolours the screen, moves the cursor or writes a
line of its own, and half a character that no terminal can encode. So everything that came from
outside goes through `printable` before a person sees it. JSON escapes such characters itself."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""The text with every character that is not a visible one written as Python's `repr` does.

    Newlines count as invisible: what this returns is one line. Applied twice it changes nothing.

    >>> print(printable("run\x1b[31m\n.npz"))
    run\x1b[31m\n.npz"""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown
    )
