"""SIGTERM as an exception, so that a command that is asked to end says so and cleans up as it does
for Ctrl-C.

Compiled code on the way sometimes swallows such an exception (a callback of numba's compiler, say,
with a traceback on stderr), so the signal is remembered: commands call `raise_pending` after
each piece of work."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(BaseException):
    """A request to end (a shutdown, a batch system's time limit); no `except Exception` on the way
    swallows it."""


_RAISED: dict[int, type[BaseException]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}
_USUAL = (signal.SIG_DFL, signal.default_int_handler)
_pending: list[type[BaseException]] = []


@contextmanager
def terminable() -> Iterator[None]:
    """Raise where SIGINT or SIGTERM arrives; in threads, and where someone else handles them,
    nothing changes."""
    _pending.clear()
    is_main = threading.current_thread() is threading.main_thread()
    mine = [number for number in _RAISED if is_main and signal.getsignal(number) in _USUAL]
    before = {number: signal.signal(number, _end) for number in mine}
    hook = sys.unraisablehook
    # From then on, objects that were being made are torn down half made; what they say of it
    # helps nobody.
    sys.unraisablehook = lambda lost: None if _pending else hook(lost)
    try:
        yield
    finally:
        if not _pending:
            sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_pending() -> None:
    """End here if a signal has arrived and its exception has been lost since."""
    if _pending:
        raise _pending[0]


def _end(number: int, frame: object) -> None:  # noqa: ARG001 - a handler's two
    _pending.append(_RAISED[number])
    raise _RAISED[number]
