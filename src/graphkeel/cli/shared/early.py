"""Names that a command is given, looked up before any work and before any file is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphkeel.core.errors import ConfigError

if TYPE_CHECKING:
    from graphkeel.paper.adapt.spec import AdaptSpec
    from graphkeel.paper.tables.run import RunSpec


def check_spec(spec: RunSpec | AdaptSpec, seed: int) -> None:
    """That model, method, split, features and data of a run exist."""
    from graphkeel.paper.adapt.spec import AdaptSpec
    from graphkeel.paper.baselines.registry import find_method

    check_model(spec.model)
    if isinstance(spec, AdaptSpec):
        spec.code_version()  # looks the method up
    else:
        if spec.method != "none":
            find_method(spec.method, spec.method_options)
        check_split(spec.split.partition(":")[0])
        check_features(spec.features)
    spec.data_hash(seed)


def check_model(name: str) -> None:
    """That a base model has this name."""
    from graphkeel.models.zoo import MODELS
    from graphkeel.paper.baselines.bases import NAMED, TUNED
    from graphkeel.paper.tables.own_model import OWN

    if name not in (OWN, *NAMED) and name.removesuffix(TUNED) not in MODELS:
        _one_of("the model", name, MODELS)


def check_split(kind: str) -> None:
    """That there is a split of this kind."""
    from graphkeel.graph.splits import KINDS

    _one_of("the split", kind, KINDS)


def check_features(kind: str) -> None:
    """That there are features of this kind."""
    from graphkeel.graph.datasets.registry import FEATURES

    _one_of("features", kind, FEATURES)


def _one_of(what: str, name: str, known: Iterable[str]) -> None:
    if name not in tuple(known):
        raise ConfigError(f"{what} must be one of {', '.join(known)}", got=repr(name))
