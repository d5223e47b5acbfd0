"""A model of the user's own on the command line: weights from a file, the network from a function.

Nothing is unpickled: safetensors, or what `torch.load(weights_only=True)` accepts."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from graphkeel.core.errors import ModelError

OWN = "own"  # what a specification calls such a model


def own_model(weights: str, factory: str, n_features: int, n_classes: int) -> nn.Module:
    """The network that a function builds, with the weights of a file, in eval mode."""
    model = _built(factory, n_features, n_classes)
    _load(model, _stored(Path(weights)), weights)
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
    """The tensors of a file, by name."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"the weights {path} cannot be read", got=str(error)[:200]) from error
    except Exception as error:  # torch raises its own, pickle's and zip's
        raise ModelError(
            f"{path} is no file of weights alone",
            got=f"{type(error).__name__}: {error}"[:200],
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


def _load(model: nn.Module, weights: dict[str, Tensor], path: str) -> None:
    """Into the model; what does not fit is named."""
    expected = model.state_dict()
    missing = sorted(expected.keys() - weights.keys())
    unknown = sorted(weights.keys() - expected.keys())
    if missing or unknown:
        parts = [f"missing {_names(missing)}"] if missing else []
        parts += [f"not in the model {_names(unknown)}"] if unknown else []
        raise ModelError(
            f"the weights {path} are of another model",
            got="; ".join(parts),
            fix="Let the factory build the network that they were stored of.",
        )
    for name, value in expected.items():
        if isinstance(value, Tensor) and value.shape != weights[name].shape:
            raise ModelError(
                f"{name} in {path} has another shape than the factory's, {tuple(value.shape)}",
                got=tuple(weights[name].shape),
                fix="Hand over the features that the model was trained on (--features), or let the "
                "factory build it with these sizes.",
            )
    model.load_state_dict(weights)


def _names(names: list[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
