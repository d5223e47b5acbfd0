"""Worker processes end with the process that started them, even one that was given no time to tell
them (`kill -9`).

Left alone, loky's workers finish their cell for nobody and wait minutes for the next, and a worker
of a `ProcessPoolExecutor` waits for ever. So each looks at its parent's id: a process whose parent
has died is given another one at once, on every POSIX system. The two other ways are worse here:
Linux's PR_SET_PDEATHSIG also strikes when merely the thread ends that started the worker, and loky
starts some from threads that come and go; a pipe to the parent stays open for as long as any other
process has inherited its end.

A worker that ends so leaves its cell unfinished and nothing half written: the parent alone writes
to the store, and what is cached is written beside its place and renamed."""

from __future__ import annotations

import os
import threading
import time

LOOK_EVERY = 0.2  # seconds


def end_with(parent: int) -> None:
    """To be called in a worker when it starts: end this process when `parent`, which started it, is
    no more."""
    threading.Thread(target=_watch, args=(parent,), name="watches its parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)  # without handlers or a last flush: nobody is left to hear of it
