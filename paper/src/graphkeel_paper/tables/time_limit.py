"""A limit on the processor time of a block, by a timer of the operating system."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTime(BaseException):
    """The block has used up its processor time. Not an Exception: what the block itself catches
    is something else."""


@contextmanager
def processor_time(seconds: float | None) -> Iterator[None]:
    """End the block by `OutOfTime` once this process has worked on it for so long.

    Where there is no such timer (Windows, threads of a Dask worker) the block takes its time."""
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
