"""A check: a name, a function, and a message that says what was expected and what came; and what
global state a part leaves as it found it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest import SkipTest

import numpy as np
import torch
from torch import Tensor

from graphkeel.core.errors import KeelError


class ConformanceError(KeelError, AssertionError):
    """A part breaks its contract; the message names the part, the check, what was expected and what
    came."""


class Unmet(Exception):
    """An expectation that was not met; the check it belongs to adds the names."""

    def __init__(self, expected: str, got: object) -> None:
        super().__init__(expected)
        self.expected, self.got = expected, got


def expect(condition: bool, expected: str, got: object) -> None:
    """Raise unless the condition holds; a plain `assert` would vanish under `python -O`."""
    if not condition:
        raise Unmet(expected, got)


def expect_refusal(call: Callable[[], object], because: str) -> None:
    """The call must raise a `KeelError`: neither an answer nor somebody else's exception."""
    try:
        answer = call()
    except KeelError:
        return
    except Exception as error:
        raise Unmet(f"a KeelError for {because}", f"{type(error).__name__}: {error}") from error
    raise Unmet(f"a KeelError for {because}", f"an answer, {type(answer).__name__}")


@dataclass(frozen=True)
class Check:
    """One named check of one part: call it. It raises `ConformanceError`, or `SkipTest` where it
    does not apply."""

    part: str
    name: str
    function: Callable[[], None]

    def __call__(self) -> None:
        try:
            self.function()
        except SkipTest:
            raise
        except Unmet as unmet:
            raise ConformanceError(
                f"{self._heading}: expected {unmet.expected}", got=unmet.got
            ) from unmet.__cause__
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
            raise ConformanceError(f"{self._heading}: expected no exception", got=got) from error

    @property
    def _heading(self) -> str:
        return f"{self.part} does not pass the check {self.name!r}"

    def __str__(self) -> str:
        return f"{self.part}: {self.name}"


@dataclass(frozen=True)
class Conformance:
    """The checks that a part passed, and those that did not apply to it, with the reason."""

    passed: tuple[str, ...]
    skipped: dict[str, str] = field(default_factory=dict)


class Subject:
    """A part under test; a check is a function of it, and of further arguments."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    def check(self, name: str, body: Callable[..., None], *arguments: object) -> Check:
        return Check(self.name, name, partial(body, self, *arguments))

    def checks(self, bodies: Iterable[Callable[..., None]]) -> Iterator[Check]:
        """One for each function, named as the function is."""
        for body in bodies:
            yield self.check(body.__name__.strip("_").replace("_", " "), body)


def expect_equal(first: Tensor, second: Tensor, what: str, name: str) -> None:
    """Two tensors must be the same to the bit."""
    differing = int((first != second).sum())
    expect(differing == 0, what, f"{name} that differ in {differing} numbers")


def run_all(checks: Iterable[Check]) -> Conformance:
    """Every check in turn; the first that fails ends it with its message."""
    passed, skipped = [], {}
    for check in checks:
        try:
            check()
            passed.append(check.name)
        except SkipTest as reason:
            skipped[check.name] = str(reason)
    return Conformance(tuple(passed), skipped)


# ---- global state: random generators, numerical settings, the working folder


@contextmanager
def left_alone() -> Iterator[None]:
    """Fails if the block moves a global generator or changes a global setting."""
    before = _state()
    yield
    after = _state()
    for name, value in before.items():
        expect(after[name] == value, f"{name} to be left alone", "a change")


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """All global generators started from `seed`, and put back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _state() -> dict[str, object]:
    kind, key, *rest = np.random.get_state()
    return {
        "Python's global random generator": random.getstate(),
        "NumPy's global random generator": (kind, np.asarray(key).tobytes(), *rest),
        "NumPy's error handling": np.geterr(),
        "the working folder": Path.cwd(),
        "torch's global random generator": torch.random.get_rng_state().numpy().tobytes(),
        "torch's number of threads": torch.get_num_threads(),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's gradient mode": torch.is_grad_enabled(),
        "torch's determinism": torch.are_deterministic_algorithms_enabled(),
    }
