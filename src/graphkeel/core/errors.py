"""One error tree: every message says what is wrong, what was got, and how to fix it."""

from __future__ import annotations

from graphkeel.core.text import printable


class KeelError(Exception):
    """Base of every error graphkeel raises on purpose; the command line turns it into exit code 2.

    Args:
        what: what is wrong, in one sentence without a full stop.
        got: the offending value or fact, shown as "(got …)".
        fix: what to do about it, shown as a sentence of its own.

    The message is one line; control characters in it are shown escaped.

    >>> str(KeelError("rho must lie in (0, 1]", got=2, fix="0.9 is usual."))
    'rho must lie in (0, 1] (got 2). 0.9 is usual.'
    """

    def __init__(self, what: str, *, got: object | None = None, fix: str | None = None) -> None:
        self.what = what
        self.got = got
        self.fix = fix
        message = what if got is None else f"{what} (got {got})"
        sentences = f"{message}." if fix is None else f"{message}. {fix}"
        super().__init__(printable(sentences))  # file names and values of others are in it


class DataError(KeelError):
    """A graph, a mask, a feature matrix or a dataset file that cannot be used."""


class ModelError(KeelError):
    """A model that does not fit its data, or that cannot be frozen safely."""


class ConfigError(KeelError):
    """An option or a combination of options that makes no sense."""


class ProblemError(KeelError):
    """A verification problem whose arrays do not fit together."""


class CertificateError(KeelError):
    """A certificate that cannot be read; one that is read but wrong is *rejected*, not an error."""


class StorageError(KeelError):
    """A file that cannot be written: a full disk, a read-only folder."""


class MemoryLimitError(KeelError):
    """A piece of work that would not fit into memory, refused before it begins."""


class MissingDependencyError(KeelError):
    """An optional package is needed for what was asked."""


class KeelWarning(UserWarning):
    """Something was understood in one of several ways; the message says in which, and how to say
    it outright."""
