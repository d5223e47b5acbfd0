"""What is adapted, from where to where, with which labels. Light to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.paper.tables.run import Outcome

KEEPS = ("graph", "summary", "model")
SPLITS = ("most", "biased", "random", "public")


@dataclass(frozen=True)
class AdaptSpec:
    """One method that takes a model from a source graph to a target graph.

    Args:
        source, target: datasets or files with the same features and classes.
        model: sgc, gcn, gat, sage or appnp, trained on the source and then frozen.
        method: `none`, one of ours (`auto`, `auto-balanced`, …), or a baseline's name.
        keep: what ours may keep of the source: the graph, its summary, or the model alone.
        target_labels: how many labels are drawn at random from the target, or a CSV file with the
            header node,label.
        reserve: this many nodes of the same draw are never scored, so that runs with fewer labels
            are scored on the same nodes.
        split: the source's split; `most` trains on four fifths of its labelled nodes and validates
            on the rest.
        features: `auto` (components fitted on the source where it has more features than that),
            raw or rownorm.
        components: how many.
        model_options: for the model's constructor.
    """

    source: str
    target: str
    model: str = "sgc"
    method: str = "auto"
    keep: str = "graph"
    target_labels: int | str = 0
    reserve: int = 0
    split: str = "most"
    features: str = "auto"
    components: int = 32
    model_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.keep not in KEEPS:
            raise ConfigError(f"keep must be one of {', '.join(KEEPS)}", got=repr(self.keep))
        if self.split not in SPLITS:
            raise ConfigError(f"the split must be one of {', '.join(SPLITS)}", got=repr(self.split))
        if isinstance(self.target_labels, int) and self.target_labels < 0:
            raise ConfigError("target labels must not be negative", got=self.target_labels)

    @property
    def dataset(self) -> str:
        """The pair, as a table names it."""
        return f"{short_name(self.source)} → {short_name(self.target)}"

    def data_hash(self, seed: int) -> str:
        """SHA-256 of source and target."""
        from graphkeel.paper.adapt.case import data_hash

        return data_hash(self, seed)

    def code_version(self) -> str:
        """SHA-256 of the code that the number depends on."""
        from graphkeel.paper.adapt.methods import method_version

        return method_version(self)

    def outcome(self, seed: int) -> Outcome:
        """Train, freeze, adapt, score."""
        from graphkeel.paper.adapt.methods import outcome

        return outcome(self, seed)

    def measure(self, seed: int) -> dict[str, Any]:
        """The row of a seed."""
        return self.outcome(seed).row


def short_name(name: str) -> str:
    """A dataset's name, or a file's without its folder and suffix."""
    return Path(name).stem
