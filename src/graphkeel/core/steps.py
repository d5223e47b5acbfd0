"""Steps that take time: logged, shown and passed to callbacks. Standard library only at import.

`logging` always hears of a step (logger `graphkeel`, level INFO). Who sets `verbose` sees the same
lines on stderr. A step that takes longer than ten seconds says what it is at in any case: to
`logging`, and on a terminal."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

_LOGGER = logging.getLogger("graphkeel")
_shown: ContextVar[bool] = ContextVar("graphkeel_shown", default=False)
_running: ContextVar[_Running | None] = ContextVar("graphkeel_running", default=None)
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Step:
    """A step that has ended.

    Attributes:
        name: `fit`, `feedback`, `update`, `adapt`, `suggest`, `certify`.
        seconds: the time it took.
        values: plain facts: numbers such as `accuracy` and `gain` (percent), and texts such as
            `reason`.
    """

    name: str
    seconds: float
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """The values that can be plotted, the seconds among them."""
        found = {
            key: float(value)
            for key, value in self.values.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return {**found, "seconds": self.seconds}


class Callback(Protocol):
    """Whoever wants to know: any function of one step."""

    def __call__(self, step: Step) -> None:
        """Take a step in."""


@dataclass
class _Running:
    """A step that has not ended, and the line on the terminal that says what it is at."""

    name: str
    patience: float = 10.0
    line: Any = None

    def __post_init__(self) -> None:
        self.start = time.monotonic()

    def at(self, what: str) -> None:
        if time.monotonic() - self.start < self.patience:
            return
        _LOGGER.info("%s: %s", self.name, what)
        if not sys.stderr.isatty():
            return
        if self.line is None:
            self.line = _line()
            self.line.start()
        self.line.update(f"graphkeel {self.name}: {what}")

    def end(self) -> None:
        if self.line is not None:
            self.line.stop()


def stage(what: str) -> None:
    """Say what the running step is at; heard of once it has taken ten seconds."""
    running = _running.get()
    if running is not None:
        running.at(what)


@contextlib.contextmanager
def _stages(name: str) -> Iterator[None]:
    """Stages of this step, as long as it lasts; a step inside another one is a stage of it."""
    if _running.get() is not None:
        yield
        return
    running = _Running(name)
    token = _running.set(running)
    try:
        yield
    finally:
        running.end()
        _running.reset(token)


@contextlib.contextmanager
def step(
    name: str, callbacks: Sequence[Callback] = (), *, verbose: bool = False
) -> Iterator[dict[str, Any]]:
    """Time what happens inside; log it and call the callbacks when it has ended well.

    Yields a dictionary, to be filled with facts."""
    values: dict[str, Any] = {}
    with _lines_shown(verbose), _stages(name):
        start = time.perf_counter()
        _LOGGER.debug("%s: begins", name)
        yield values
        done = Step(name, time.perf_counter() - start, values)
        _LOGGER.info("%s: %s (%.2f s)", name, _in_words(values), done.seconds)
    for callback in callbacks:
        callback(done)


def _in_words(values: dict[str, Any]) -> str:
    texts = (
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
        if value is not None
    )
    return ", ".join(texts) or "done"


@contextlib.contextmanager
def _lines_shown(verbose: bool) -> Iterator[None]:
    """Log lines on stderr, if asked for, as long as this lasts."""
    if not verbose or _shown.get():
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("graphkeel: %(message)s"))
    level = _LOGGER.level
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    token = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(token)
        _LOGGER.setLevel(level)
        _LOGGER.removeHandler(handler)


def progress(items: Iterable[_Item], what: str, total: int) -> Iterator[_Item]:
    """Pass the items on; beyond ten seconds a line on the terminal says how many are done."""
    running = _Running(what)
    try:
        for done, item in enumerate(items):
            running.at(f"{done} of {total}")
            yield item
    finally:
        running.end()


def _line() -> Any:
    from rich.console import Console

    return Console(stderr=True).status("")
