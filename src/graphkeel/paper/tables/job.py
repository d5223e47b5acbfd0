"""A job: one number to be measured, and what became of it. Light to import.

A job's key is a SHA-256 over everything that determines its number: the specification, the seed,
the data and the code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.graph import GraphTask
    from graphkeel.paper.tables.run import Outcome

LABELS = ("train", "train+half-val", "train+val")
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
class RunSpec:
    """One method on one dataset.

    Args:
        dataset: a name, or a file that `graphkeel.graph.load_graph` reads.
        model: the frozen model: sgc, gcn, gat, sage or appnp, or a name of
            `graphkeel.paper.baselines.bases`.
        method: a name that `find_method` knows, or `none`.
        labels: the labels that the method may use, one of `LABELS`.
        split: biased, random, public or outside; with a number after a colon (`random:0`) every
            seed gets the split of that number, and differs in its initialisation alone.
        features: auto, raw, rownorm, pca or pca-raw.
        pca: number of components.
        model_options: for the model's constructor.
        method_options: for methods that take any.
    """

    dataset: str = "digits"
    model: str = "sgc"
    method: str = "none"
    labels: str = "train"
    split: str = "biased"
    features: str = "auto"
    pca: int = 20
    model_options: dict[str, Any] = field(default_factory=dict)
    method_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise ConfigError(f"labels must be one of {', '.join(LABELS)}", got=repr(self.labels))

    def task(self, seed: int) -> GraphTask:
        """The split of a seed."""
        from graphkeel.graph import load_graph, make_task

        kind, number = split_number(self.split, seed)
        return make_task(
            load_graph(self.dataset),
            seed=number,
            split=kind,
            features=self.features,
            pca=self.pca,
        )

    def data_hash(self, seed: int) -> str:
        """SHA-256 of the split of a seed."""
        return self.task(seed).hash

    def code_version(self) -> str:
        """SHA-256 of the code that the number depends on."""
        from graphkeel.paper.tables.fingerprint import method_version

        return method_version(self)

    def outcome(self, seed: int) -> Outcome:
        """Train, freeze, apply the method, score."""
        from graphkeel.paper.tables.run import run_seed

        return run_seed(self, seed)

    def measure(self, seed: int) -> dict[str, Any]:
        """The row of a seed."""
        from graphkeel.paper.tables.run import measure

        return measure(self, seed)

    @property
    def follows_the_paper(self) -> bool:
        """Whether the paper's published figures are about such runs."""
        features = self.features in ("auto", "pca") and self.pca == 20
        return self.model == "sgc" and self.split == "biased" and features


@dataclass(frozen=True)
class Job:
    """One number to be measured: a row of a table, for one seed.

    Args:
        row: the row's name; not part of the key, as two rows may share a number.
        spec: what is measured.
        seed: of the split, the training and the method.
        data: SHA-256 of the arrays that the number depends on.
        code: SHA-256 of the code that computes it.
    """

    row: str
    spec: Spec
    seed: int
    data: str
    code: str

    @cached_property
    def subject(self) -> str:
        """SHA-256 of what is measured, whichever code measures it."""
        return sha256_of({"spec": asdict(self.spec), "seed": self.seed, "data": self.data})

    @cached_property
    def key(self) -> str:
        """SHA-256 of what is measured and of the code that measures it."""
        return sha256_of({"subject": self.subject, "code": self.code})


@dataclass(frozen=True)
class Measurement:
    """The outcome of a job.

    Args:
        status: `DONE` or `FAILED`.
        seconds: time it took.
        peak_mb: peak memory of the worker meanwhile.
        result: plain values; `accuracy` and `base` in percent where it is done.
        message: why it failed.
        commit: of the source tree that computed it; None where that is not known.
        code: SHA-256 of the code that computed it, as the store says.
    """

    status: str
    seconds: float
    peak_mb: float
    result: dict[str, Any]
    message: str | None = None
    commit: str | None = None
    code: str | None = field(default=None, compare=False)

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


def split_number(split: str, seed: int) -> tuple[str, int]:
    """The kind of a split, and the number of it that a seed gets."""
    kind, _, number = split.partition(":")
    if not number:
        return kind, seed
    if not number.isdecimal():
        raise ConfigError("the number of a split must be a whole number", got=repr(split))
    return kind, int(number)


def sha256_of(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
