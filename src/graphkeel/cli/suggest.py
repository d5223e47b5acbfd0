"""Did you mean …? For a command or an option that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(typed: str, known: Iterable[str], near: float = 0.6) -> str:
    """A question with the nearest known word, or an empty text where none is near.

    >>> did_you_mean("certfy", ["certify", "check"])
    ' Did you mean certify?'"""
    nearest = difflib.get_close_matches(typed, list(known), n=1, cutoff=near)
    return f" Did you mean {nearest[0]}?" if nearest else ""
