"""Specifications of runs: a method and a model on a dataset, or from one graph to another.

Light to import. `graphkeel-paper` extends them by its datasets, base models and rivals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from graphkeel import __version__
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name

if TYPE_CHECKING:
    from torch import nn

    from graphkeel.graph import GraphTask, RawGraph
    from graphkeel.runs.adapt_case import Case
    from graphkeel.runs.method import Method, MethodResult
    from graphkeel.runs.run import Outcome

LABELS = ("train", "train+half-val", "train+val")
_SPLITS = ("most", "biased", "random", "public")


class _Spec(ABC):
    """A specification that runs seed by seed, whichever kind it is; hashed without its options."""

    PROGRAM: ClassVar[str] = "keel"  # whose command runs it
    model: str
    method: str
    model_options: dict[str, Any]

    def trained(self, task: GraphTask, seed: int) -> nn.Module:
        """The model, before it is frozen."""
        from graphkeel.models import train_model

        return train_model(self.model, task, seed=seed, **self.model_options)

    def check(self, seed: int) -> None:
        """That all names and the data exist, before any work."""
        self.check_names()
        if self.method != "none":
            self.check_method()
        self.data_hash(seed)

    def check_names(self) -> None:
        """That there are such a model, split and features."""
        from graphkeel.models.zoo import MODELS, OWN

        if self.model != OWN:
            check_name("the model", self.model, MODELS)

    @abstractmethod
    def check_method(self) -> None:
        """That there is such a method."""

    @abstractmethod
    def data_hash(self, seed: int) -> str:
        """SHA-256 of the data that a seed uses."""

    @abstractmethod
    def outcome(self, seed: int) -> Outcome:
        """The result for a seed: train, freeze, apply the method, score."""

    def code_version(self) -> str:
        """Of the code that a number depends on: rows of another one are computed again."""
        return __version__

    def measure(self, seed: int) -> dict[str, Any]:
        return self.outcome(seed).row

    def published(self) -> dict[str, list[float]]:
        """Mean and deviation of rows that others have published about such a run."""
        return {}


@dataclass(frozen=True)
class RunSpec(_Spec):
    """One method on one dataset."""

    dataset: str = "digits"  # a name, or a file that `graphkeel.graph.load_graph` reads
    model: str = "sgc"  # the frozen model: sgc, gcn, gat, sage or appnp, or `own`
    method: str = "none"  # a name that `find_method` knows, or `none`
    labels: str = "train"  # the labels that the method may use, one of `LABELS`
    # biased, random or public; with a number after a colon (`random:0`) every seed gets the split
    # of that number, and differs in its initialisation alone
    split: str = "biased"
    features: str = "auto"  # auto, raw, rownorm, pca or pca-raw
    pca: int = 20  # number of components
    # for the model's constructor
    model_options: dict[str, Any] = field(default_factory=dict, hash=False)
    # for methods that take any
    method_options: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_name("labels", self.labels, LABELS)

    def graph(self) -> RawGraph:
        from graphkeel.graph import load_graph

        return load_graph(self.dataset)

    def task(self, seed: int) -> GraphTask:
        from graphkeel.graph import make_task

        kind, number = split_number(self.split, seed)
        return make_task(
            self.graph(), seed=number, split=kind, features=self.features, pca=self.pca
        )

    def find_method(self) -> Method:
        from graphkeel.runs.methods import get_method

        if self.method_options:
            raise ConfigError(
                f"the method {self.method!r} takes no options", got=sorted(self.method_options)
            )
        return get_method(self.method)

    @property
    def title(self) -> str:
        return f"{self.dataset} · {self.model} · {self.method} · labels: {self.labels}"

    def check_method(self) -> None:
        self.find_method()

    def check_names(self) -> None:
        from graphkeel.graph.datasets.registry import FEATURES
        from graphkeel.graph.splits import KINDS

        super().check_names()
        check_name("the split", self.split.partition(":")[0], KINDS)
        check_name("features", self.features, FEATURES)

    def data_hash(self, seed: int) -> str:
        return self.task(seed).hash

    def outcome(self, seed: int) -> Outcome:
        from graphkeel.runs.run import run_seed

        return run_seed(self, seed)


@dataclass(frozen=True)
class AdaptSpec(_Spec):
    """One method that takes a model from a source graph to a target graph."""

    # source, target: datasets or files with the same features and classes
    source: str
    target: str
    # sgc, gcn, gat, sage or appnp, trained on the source and then frozen, or `own`
    model: str = "sgc"
    method: str = "auto"  # `none`, or one of ours (`auto`, `auto-balanced`, …)
    # how many labels are drawn at random from the target, or a CSV file with the header node,label
    target_labels: int | str = 0
    # this many nodes of the same draw are never scored, so that runs with fewer labels are scored
    # on the same nodes
    reserve: int = 0
    # the source's split; `most` trains on four fifths of its labelled nodes and validates on the
    # rest
    split: str = "most"
    # `auto` (components fitted on the source where it has more features than that), raw or rownorm
    features: str = "auto"
    components: int = 32  # how many
    # for the model's constructor
    model_options: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_name("the split", self.split, _SPLITS)
        if isinstance(self.target_labels, int) and self.target_labels < 0:
            raise ConfigError("target labels must not be negative", got=self.target_labels)

    @property
    def dataset(self) -> str:
        """The pair, as a table names it: names of datasets, or of files without their folders."""
        return f"{Path(self.source).stem} → {Path(self.target).stem}"

    @property
    def title(self) -> str:
        labels = f"{self.target_labels} target labels"
        return " · ".join((self.dataset, self.model, self.method, labels))

    def data_hash(self, seed: int) -> str:
        from graphkeel.runs.adapt_case import data_hash

        return data_hash(self, seed)

    def graph(self, name: str) -> RawGraph:
        from graphkeel.graph import load_graph

        return load_graph(name)

    def before_labels(self) -> Self:
        """The specification of the frozen model and both graphs alone."""
        return replace(self, method="none", target_labels=0, reserve=0)

    def check_method(self) -> None:
        from graphkeel.runs.methods import check_ours

        check_ours(self.method)

    def adapted(self, case: Case) -> MethodResult:
        """Scores of the target's nodes by the method; None where the model is left alone."""
        from graphkeel.runs.adapt import adapted

        return adapted(self, case)

    def outcome(self, seed: int) -> Outcome:
        from graphkeel.runs.adapt import outcome

        return outcome(self, seed)


def split_number(split: str, seed: int) -> tuple[str, int]:
    """The kind of a split, and the number of it that a seed gets."""
    kind, _, number = split.partition(":")
    if not number:
        return kind, seed
    if not number.isdecimal():
        raise ConfigError("the number of a split must be a whole number", got=repr(split))
    return kind, int(number)


AnySpec = RunSpec | AdaptSpec
