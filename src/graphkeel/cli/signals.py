"""SIGTERM as an exception, so that a command that is asked to end says so and cleans up as it does for Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(BaseException):
    """Asked to end (a shutdown, a batch system's time limit); no `except Exception` on the way swallows it."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` where SIGTERM arrives; in threads, and where someone else handles it, nothing changes."""
    mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if mine:
        signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(number: int, frame: object) -> None:
    raise Terminated
