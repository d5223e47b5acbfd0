"""Models by name, with the reference hyper-parameters and one small trainer, and models from files:
those that we stored, and the user's own, whose network comes from a function.

Nothing is unpickled: safetensors, or what `torch.load(weights_only=True)` accepts."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from graphkeel.core.digests import tensors_sha256
from graphkeel.core.errors import ConfigError, DataError, ModelError
from graphkeel.core.names import check_name
from graphkeel.core.statistics import percent
from graphkeel.core.tensors import save_tensors
from graphkeel.graph.task import GraphTask
from graphkeel.models.networks import APPNP, GAT, GCN, SGC, GraphSAGE, propagated


@dataclass(frozen=True)
class TrainingConfig:
    """Optimiser settings; `patience` epochs without a better validation loss end the training
    (None: never)."""

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    patience: int | None = None


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
OWN = "own"  # what a specification calls such a model
_UNREADABLE = (OSError, SafetensorError)


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


# ---- the trainer: full batch, Adam, cross-entropy, optional early stopping on validation


def train(model: nn.Module, task: GraphTask, config: TrainingConfig) -> nn.Module:
    """Train in place, and return the model in eval mode.

    With early stopping the weights of the epoch with the lowest validation loss are kept. Random
    numbers (dropout) come from torch's global generator: seed it for a repeatable run.

    Args:
        model: the network.
        task: graph, features, labels and split.
        config: optimiser settings.
    """
    if not bool(task.train_mask.any()):
        raise DataError("training needs labelled nodes in train_mask", got="none")
    forward = _forward(model, task)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    lowest, waited, weights = math.inf, 0, None
    wanted = task.y[task.train_mask]
    for _ in range(config.epochs):
        model.train()
        optimiser.zero_grad()
        F.cross_entropy(forward(task.train_mask), wanted).backward()
        optimiser.step()
        if config.patience is None:
            continue
        loss = _validation_loss(model, forward, task)
        if loss < lowest:
            lowest, waited, weights = loss, 0, copy.deepcopy(model.state_dict())
            continue
        waited += 1
        if waited >= config.patience:
            break
    if weights is not None:
        model.load_state_dict(weights)
    return model.eval()


def accuracy(scores: Tensor, task: GraphTask, mask: Tensor) -> float:
    """Percent of the masked nodes whose highest score is their label.

    Args:
        scores: shape (N, n_classes).
        task: holds the labels.
        mask: bool, shape (N,); NaN where it selects no node.
    """
    return percent(scores[mask].argmax(dim=-1) == task.y[mask])


def _forward(model: nn.Module, task: GraphTask) -> Callable[[Tensor], Tensor]:
    """The scores of the nodes in a mask; SGC's propagation has no weights, so it is done once and
    not once an epoch."""
    if not isinstance(model, SGC):
        return lambda mask: model(task.x, task.edge_index)[mask]
    features = propagated(model, task.x, task.edge_index)
    if model.is_large(task.x, task.edge_index):
        rows = cache(features.__getitem__)  # copied once for each mask, not once an epoch
        return lambda mask: model.conv.lin(rows(mask))  # type: ignore[no-any-return]
    return lambda mask: model.conv.lin(features)[mask]  # type: ignore[no-any-return]


@torch.no_grad()
def _validation_loss(
    model: nn.Module, forward: Callable[[Tensor], Tensor], task: GraphTask
) -> float:
    model.eval()
    mask = task.val_mask if task.val_mask.any() else task.train_mask
    return float(F.cross_entropy(forward(mask), task.y[mask]))


# ---- models in files


def save_model(
    path: Path,
    model: nn.Module,
    name: str,
    n_features: int,
    n_classes: int,
    **options: Any,
) -> None:
    """Weights as safetensors, what is needed to build the network again in its metadata.

    Args:
        path: of the file.
        model: a network of the zoo.
        name: its name there.
        n_features, n_classes: its input and output sizes.
        options: of the network's constructor.
    """
    sizes = {"n_features": n_features, "n_classes": n_classes}
    description = {"name": name, **sizes, "options": options}
    weights = model.state_dict()
    metadata = {"graphkeel": json.dumps(description), "sha256": tensors_sha256(weights)}
    save_tensors(path, weights, metadata)


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
        sizes = (description["n_features"], description["n_classes"])
        model = build_model(description["name"], *sizes, **description["options"])
        model.load_state_dict(weights)
    except (*_UNREADABLE, KeyError, ValueError, RuntimeError, TypeError) as error:
        raise ModelError(
            f"{path} is not a stored model", got=str(error), fix="Write it with save_model."
        ) from error
    return model.eval()


# ---- a model of the user's own, on the command line


def own_model(weights: str, factory: str, n_features: int, n_classes: int) -> nn.Module:
    """The network that a function builds, with the weights of a file, in eval mode."""
    model, stored = _built(factory, n_features, n_classes), _stored(Path(weights))
    try:
        model.load_state_dict(stored)
    except RuntimeError as error:  # names what is missing, not known, or of another shape
        raise ModelError(
            f"the weights {weights} are of another model",
            got=" ".join(str(error).split())[:300],
            fix="Let the factory build the network that they were stored of, and hand over the "
            "features that it was trained on (--features).",
        ) from error
    return model.eval()


def _built(factory: str, n_features: int, n_classes: int) -> nn.Module:
    function = _function(factory)
    sizes = {"n_features": n_features, "n_classes": n_classes}
    try:
        taken = inspect.signature(function).parameters
        model = function(**{name: size for name, size in sizes.items() if name in taken})
    except Exception as error:  # the function is untrusted, and may raise anything
        raise ModelError(
            f"{factory} does not build a model",
            got=f"{type(error).__name__}: {error}"[:200],
            fix="It is called without arguments, or with n_features and n_classes by name.",
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"{factory} must return a torch module", got=type(model).__name__)
    return model


def _function(factory: str) -> Any:
    module_name, colon, name = factory.partition(":")
    if not colon or not module_name or not name:
        raise ModelError(
            "--factory must be module:function", got=repr(factory), fix="For example net:make."
        )
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` would: the user's own file
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # importing runs the user's code
        raise ModelError(
            f"the module {module_name} cannot be imported",
            got=f"{type(error).__name__}: {error}"[:200],
            fix="Run keel in the folder of its file, or install it.",
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise ModelError(f"the module {module_name} has no function {name}", got=repr(found)[:80])
    return found


def _stored(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        raise ModelError(f"the weights {path} cannot be read", got=str(error)[:200]) from error
    except Exception as error:  # torch raises its own, pickle's and zip's
        raise ModelError(
            f"{path} is no file of weights alone",
            got="a whole model, or no weights at all",
            fix="Write it with torch.save(model.state_dict(), path), or as safetensors.",
        ) from error
    held = content.get("state_dict", content) if isinstance(content, dict) else content
    is_state = isinstance(held, dict) and all(isinstance(one, Tensor) for one in held.values())
    if not is_state:
        raise ModelError(
            f"{path} holds no weights by name",
            got=type(held).__name__,
            fix="Write it with torch.save(model.state_dict(), path).",
        )
    return dict(held)
