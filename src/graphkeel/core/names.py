"""Names that are not known: refused with those that are, and with the one that was probably meant.
Standard library only."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from graphkeel.core.errors import ConfigError, KeelError


def did_you_mean(typed: object, known: Iterable[str], near: float = 0.6) -> str | None:
    """A question with the nearest known word; None where none is near.

    >>> did_you_mean("certfy", ["certify", "check"])
    'Did you mean certify?'"""
    nearest = difflib.get_close_matches(str(typed), list(known), n=3, cutoff=near)
    nearest.sort(key=lambda word: sorted(word) != sorted(str(typed)))  # the same letters first
    return f"Did you mean {nearest[0]}?" if nearest else None


def class_names(names: Sequence[str], n_classes: int) -> tuple[str, ...]:
    """The names of the classes, one each, all different; none where none are given."""
    if names and (len(names) != n_classes or len(set(names)) != n_classes):
        raise ConfigError(f"{n_classes} classes need as many names", got=", ".join(names)[:200])
    return tuple(names)


def check_name(
    what: str, value: object, known: Iterable[str], error: type[KeelError] = ConfigError
) -> None:
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        raise error(
            f"{what} must be one of {', '.join(names)}",
            got=repr(value),
            fix=did_you_mean(value, names),
        )
