"""What is to be run: everything that determines a number, apart from the seed. Light to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.graph import GraphTask

LABELS = ("train", "train+half-val", "train+val")


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines the numbers of a run, apart from the seed."""

    dataset: str = "digits"
    model: str = "sgc"
    method: str = "none"
    labels: str = "train"  # which labels the method may use
    split: str = "biased"
    features: str = "auto"
    pca: int = 20
    model_options: dict[str, Any] = field(default_factory=dict)
    method_options: dict[str, Any] = field(default_factory=dict)  # of methods that take any

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise ConfigError(f"labels must be one of {', '.join(LABELS)}", got=repr(self.labels))

    def task(self, seed: int) -> GraphTask:
        from graphkeel.graph import load_graph, make_task

        return make_task(
            load_graph(self.dataset),
            seed=seed,
            split=self.split,
            features=self.features,
            pca=self.pca,
        )
