"""Did you mean …? For a command or an option that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NEAR = 0.6  # of difflib's ratio


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """A question with the nearest known word, or an empty text where none is near.

    >>> did_you_mean("certfy", ["certify", "check"])
    ' Did you mean certify?'"""
    nearest = difflib.get_close_matches(typed, list(known), n=1, cutoff=NEAR)
    return f" Did you mean {nearest[0]}?" if nearest else ""
