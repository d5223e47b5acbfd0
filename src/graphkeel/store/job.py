"""A job: one number to be measured, and what became of it. Light to import.

A job's key is a SHA-256 over everything that determines its number: the specification, the seed,
the data and the code."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Protocol

import graphkeel
from graphkeel.core.digests import json_sha256

DONE = "done"
FAILED = "error"
CPU_SECONDS = "cpu_seconds"  # in a measurement's result


class Spec(Protocol):
    """Everything that determines a number apart from the seed: a dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def dataset(self) -> str:
        """The data, as a table's column names it."""

    def measure(self, seed: int) -> dict[str, Any]:
        """The result for a seed: plain values, `accuracy` and `base` (percent) among them."""


@dataclass(frozen=True)
class Job:
    """One number to be measured: a row of a table, for one seed."""

    row: str  # not part of the key, as two rows may share a number
    spec: Spec
    seed: int
    data: str  # SHA-256 of the arrays that the number depends on
    code: str  # SHA-256 of the code that computes it

    @cached_property
    def subject(self) -> str:
        """SHA-256 of what is measured, whichever code measures it."""
        return json_sha256({"spec": asdict(self.spec), "seed": self.seed, "data": self.data})

    @cached_property
    def key(self) -> str:
        """SHA-256 of what is measured and of the code that measures it."""
        return json_sha256({"subject": self.subject, "code": self.code})


@dataclass(frozen=True)
class Measurement:
    """The outcome of a job."""

    status: str  # DONE or FAILED
    seconds: float
    peak_mb: float  # of the worker meanwhile
    result: dict[str, Any]  # plain values; `accuracy` and `base` in percent where it is done
    message: str | None = None  # why it failed
    commit: str | None = None  # of the source tree that computed it, where that is known
    code: str | None = field(default=None, compare=False)  # as the store says

    @property
    def done(self) -> bool:
        return self.status == DONE

    @property
    def stopped(self) -> bool:
        """Whether it had used up the time it was given."""
        return self.status == FAILED and CPU_SECONDS in self.result

    @property
    def processor_seconds(self) -> float:
        """Processor time where it was recorded, else the time on the wall."""
        return float(self.result.get(CPU_SECONDS, self.seconds))


_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "torch_geometric")


def package_versions() -> dict[str, str]:
    """Versions of Python, graphkeel and the packages that decide numbers."""
    found = {"python": platform.python_version(), "graphkeel": graphkeel.__version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
