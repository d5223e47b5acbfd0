"""Models by name, with the reference hyper-parameters, and their storage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from graphkeel.core.digests import tensors_sha256
from graphkeel.core.errors import ConfigError, ModelError
from graphkeel.core.names import check_name
from graphkeel.core.tensor_files import save_tensors
from graphkeel.graph.task import GraphTask
from graphkeel.models.networks import APPNP, GAT, GCN, SGC, GraphSAGE
from graphkeel.models.training import TrainingConfig, train


@dataclass(frozen=True)
class Recipe:
    """A network, its constructor's options and how it is trained."""

    build: Callable[..., nn.Module]
    training: TrainingConfig
    options: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    # The paper's protocol: K = 3, and the SGC reference code's untuned lr, weight decay and epochs.
    "sgc": Recipe(SGC, TrainingConfig(epochs=100, lr=0.2, weight_decay=5e-6), {"k": 3}),
    "gcn": Recipe(GCN, TrainingConfig(epochs=200, patience=10)),
    "sage": Recipe(GraphSAGE, TrainingConfig(epochs=200, patience=10)),
    "gat": Recipe(GAT, TrainingConfig(epochs=500, lr=0.005, patience=100)),
    "appnp": Recipe(APPNP, TrainingConfig(epochs=500, patience=100)),
}
MODELS = tuple(RECIPES)


def build_model(name: str, n_features: int, n_classes: int, **options: Any) -> nn.Module:
    """An untrained network of the zoo.

    Args:
        name: one of `MODELS`.
        n_features: d.
        n_classes: how many classes there are.
        options: of the network's constructor.
    """
    check_name("the model", name, MODELS)
    try:
        return RECIPES[name].build(n_features, n_classes, **{**RECIPES[name].options, **options})
    except TypeError as error:
        raise ConfigError(f"model {name} does not take those options", got=str(error)) from error


def train_model(
    name: str,
    task: GraphTask,
    *,
    seed: int = 0,
    config: TrainingConfig | None = None,
    **options: Any,
) -> nn.Module:
    """Build and train a network of the zoo on the task's training nodes; the global random state is
    left alone.

    Args:
        name: one of `MODELS`.
        task: graph, features, labels and split.
        seed: of everything random.
        config: None: the model's own settings.
        options: of the network's constructor.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(name, task.n_features, task.n_classes, **options)
        return train(model, task, config or RECIPES[name].training)


def save_model(
    path: Path,
    model: nn.Module,
    name: str,
    n_features: int,
    n_classes: int,
    *,
    subject: str = "",
    **options: Any,
) -> None:
    """Weights as safetensors, what is needed to build the network again in its metadata.

    Args:
        path: of the file.
        model: a network of the zoo.
        name: its name there.
        n_features, n_classes: its input and output sizes.
        subject: what it was trained on, in the writer's own words (`stored_subject`).
        options: of the network's constructor.
    """
    sizes = {"n_features": n_features, "n_classes": n_classes}
    description = {"name": name, **sizes, "options": options}
    weights = model.state_dict()
    metadata = {"graphkeel": json.dumps(description), "subject": subject}
    save_tensors(path, weights, {**metadata, "sha256": tensors_sha256(weights)})


def stored_subject(path: Path) -> str:
    """The task that a stored model was trained on, as its writer named it.

    Args:
        path: of a file written by `save_model`.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return str((file.metadata() or {}).get("subject", ""))
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} is not a stored model", got=str(error)) from error


def load_model(path: Path) -> nn.Module:
    """The network stored by `save_model`, in eval mode.

    Args:
        path: of the file.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        description = json.loads(metadata["graphkeel"])
        weights = load_file(path)
        if tensors_sha256(weights) != metadata["sha256"]:
            raise ValueError("its SHA-256 is another than when it was written")
        model = build_model(
            description["name"],
            description["n_features"],
            description["n_classes"],
            **description["options"],
        )
        model.load_state_dict(weights)
    except (
        OSError,
        SafetensorError,
        KeyError,
        ValueError,
        RuntimeError,
        TypeError,
        RecursionError,
    ) as error:
        raise ModelError(
            f"{path} is not a stored model", got=str(error), fix="Write it with save_model."
        ) from error
    return model.eval()
