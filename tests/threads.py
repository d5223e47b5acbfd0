"""Threads that are made to meet: what goes wrong only sometimes goes wrong every time."""

from __future__ import annotations

import threading
from collections.abc import Callable

PATIENCE = 300.0  # seconds; only a test that fails waits so long


class Meeting:
    """Threads inside wait until all of them are inside, or wait at a lock for their turn."""

    def __init__(self, parties: int) -> None:
        self.parties = parties
        self._arrived: set[int] = set()
        self._changed = threading.Condition()

    def arrive(self) -> None:
        with self._changed:
            self._arrived.add(threading.get_ident())
            self._changed.notify_all()

    def wait(self) -> None:
        """Arrive, and go on when everybody has."""
        self.arrive()
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._arrived) >= self.parties, PATIENCE)


class WatchedLock:
    """A lock that says to a meeting who has to wait for it."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.meeting.arrive()
            self._lock.acquire()

    def __exit__(self, *details: object) -> None:
        self._lock.release()


def at_once(*works: Callable[[], object]) -> list[object]:
    """The results of works that start together, each in a thread of its own."""
    start = threading.Barrier(len(works))
    results: list[object] = [None] * len(works)

    def run(place: int) -> None:
        start.wait(PATIENCE)
        try:
            results[place] = works[place]()
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
