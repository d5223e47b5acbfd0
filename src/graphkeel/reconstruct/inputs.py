"""Checks of what people hand to a `Reconstructor`: each mistake gets one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binomtest
from torch import Tensor
from torch_geometric.data import Data

from graphkeel.core.errors import ConfigError, DataError, KeelError, KeelWarning, ModelError
from graphkeel.core.names import check_name
from graphkeel.graph.task import GraphTask
from graphkeel.models.frozen import FrozenModel

Ids = Tensor | NDArray[np.int64] | Sequence[int]  # of nodes or classes, shape (k,)
MethodName = Literal["auto", "replace", "diffuse"]
ControllerName = Literal["deadbeat", "mfac", "pid", "lqr", "neural"]
LabelUse = Literal["all", "train"]  # what validation labels do: serve and judge, or judge alone
GuardName = Literal["cross-fit", "holdout"]
ClassWeight = Literal["balanced"] | None
KeepName = Literal["graph", "summary", "model"]

_MASKS = ("train", "val", "test")
LARGEST_SEED = 2**32 - 1  # NumPy's generators and scikit-learn take no larger one
CHOICES: dict[str, tuple[str | None, ...]] = {
    "method": get_args(MethodName),
    "labels": get_args(LabelUse),
    "guard": get_args(GuardName),
    "class_weight": (None, "balanced"),
}


@dataclass(frozen=True)
class _Doubt:
    """Attributes:
    level: of the test that labels in `train_mask` are what the model was trained on.
    """

    level: float = 0.001


_DOUBT = _Doubt()

# ---- the constructor's arguments


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse constructor arguments of a wrong type or out of range."""
    if parameters["model"] is None:
        raise ModelError(
            "there is no model to reconstruct for",
            fix="Pass the trained model: Reconstructor(model).",
        )
    for name, known in CHOICES.items():
        check_choice(name, parameters[name], known)
    _check_controller(parameters["controller"])
    _check_verifier(parameters["verifier"])
    _check_risk(parameters["risk"])
    _check_seed(parameters["seed"])
    _check_callbacks(parameters["callbacks"])


def check_choice(name: str, value: object, known: Sequence[str | None]) -> None:
    """Refuse what is none of the known names; None may be one."""
    if value is not None or None not in known:
        check_name(name, value, [one for one in known if one is not None])


def _check_controller(value: object) -> None:
    if not hasattr(value, "regulate"):  # a controller of the user's own may be an object
        check_choice("the controller", value, get_args(ControllerName))


def _check_verifier(value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(
            "verifier must be the name of an engine", got=repr(value), fix="'auto' is usual."
        )
    if value != "auto":
        from graphkeel.lyapunov import ask_engine  # the engines are not loaded for nothing

        ask_engine(value)


def _check_risk(value: object) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) <= 1.0:  # type: ignore[arg-type]
        raise ConfigError("risk must lie in (0, 1]", got=repr(value), fix="0.5 is the default.")


def _check_seed(value: object) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not 0 <= int(value) <= LARGEST_SEED:  # type: ignore[call-overload]
        raise ConfigError(f"seed must be a whole number from 0 to {LARGEST_SEED}", got=repr(value))


def _check_callbacks(value: object) -> None:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(callable(one) for one in value):  # type: ignore[attr-defined]
        raise ConfigError(
            "callbacks must be a list of functions, each called with a step", got=repr(value)[:80]
        )


# ---- the model on the graph


def first_scores(frozen: FrozenModel, data: Data, model_kwargs: dict[str, Any]) -> Tensor:
    """The model's scores of every node, shape (N, n); a model that cannot take this graph is
    named as the cause."""
    try:
        return frozen(data.x, data.edge_index, **model_kwargs)
    except KeelError:
        raise
    except Exception as error:  # an untrusted model may raise anything
        style = frozen.calling.signature.style.value
        raise ModelError(
            f"the model cannot be run on x of shape {tuple(data.x.shape)} ({data.x.dtype}), "
            f"called as {style}",
            got=f"{type(error).__name__}: {error}"[:200],
            fix="Hand over the features it was trained on; arguments of its own go to fit.",
        ) from error


def check_scores(scores: Tensor) -> None:
    """Refuse scores that cannot be compared.

    Args:
        scores: of every node, shape (N, n).
    """
    bad = ~torch.isfinite(scores).all(dim=1)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise ModelError(
            "the model's scores must be finite",
            got=f"NaN or infinity for {int(bad.sum())} of {len(bad)} nodes, the first is {first}",
            fix="Look for NaN in its weights, or for a logarithm of 0 in its last layer.",
        )


# ---- labels and masks


def warn_of_labels(data: Data, task: GraphTask, logits: Tensor) -> None:
    """Warn of labels that no mask selects, and of some that the model has hardly been trained on.

    Training makes a model at least as often right on its own labels as it is sure of them."""
    labelled = getattr(data, "y", None) is not None and bool((data.y >= 0).any())
    masked = any(getattr(data, f"{name}_mask", None) is not None for name in _MASKS)
    if labelled and not masked:
        warnings.warn(
            "data.y has labels, but no mask selects any of them, so none is used; set train_mask "
            "to the nodes that the model was trained on, and val_mask to others whose label is "
            "known",
            KeelWarning,
            stacklevel=2,
        )
    trained = task.train_mask.nonzero().flatten()
    if not len(trained):
        return
    sure = float(logits[trained].softmax(dim=1).amax(dim=1).mean())
    right = int((logits[trained].argmax(dim=1) == task.y[trained]).sum())
    if binomtest(right, len(trained), min(1.0, sure), "less").pvalue < _DOUBT.level:
        warnings.warn(
            f"the model is right on {100 * right / len(trained):.0f} % of train_mask and is "
            f"{100 * sure:.0f} % sure there, so it was hardly trained on these labels; leave "
            "in train_mask what it was trained on, and hand over new labels in val_mask or "
            "with feedback",
            KeelWarning,
            stacklevel=2,
        )


# ---- feedback


def checked_feedback(
    nodes: object, labels: object, n_nodes: int, n_classes: int
) -> tuple[Tensor, Tensor]:
    """Node ids and their classes as int64 tensors, shape (L,) both."""
    ids = _whole_numbers("nodes", nodes, n_nodes)
    classes = _whole_numbers("labels", labels, n_classes)
    if ids.shape != classes.shape:
        raise DataError(
            "feedback needs one label per node", got=f"{len(ids)} nodes, {len(classes)} labels"
        )
    _check_agreement(ids.tolist(), classes.tolist())
    return ids, classes


def _whole_numbers(what: str, values: object, limit: int) -> Tensor:
    wanted = f"{what} must be integers in 0..{limit - 1}"
    if _is_mask(values):
        raise DataError(
            wanted, got="true and false", fix="mask.nonzero().flatten() gives the ids of a mask."
        )
    try:
        found = torch.as_tensor(values).flatten()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(wanted, got=repr(values)[:80]) from error
    if not len(found):
        return found.long()
    is_whole = not (found.is_floating_point() or found.is_complex())
    if not is_whole or int(found.min()) < 0 or int(found.max()) >= limit:
        raise DataError(wanted, got=found.tolist()[:5])
    return found.long()


def _is_mask(values: object) -> bool:
    """Truth values, which Python would count as 0 and 1."""
    if isinstance(values, list | tuple):
        return any(isinstance(value, bool) for value in values)
    return isinstance(values, bool) or "bool" in str(getattr(values, "dtype", ""))


def _check_agreement(nodes: list[int], classes: list[int]) -> None:
    seen: dict[int, int] = {}
    for node, label in zip(nodes, classes, strict=True):
        if seen.setdefault(node, label) != label:
            raise DataError(
                f"node {node} has two labels in one call",
                got=f"{seen[node]} and {label}",
                fix="Decide for one; a later call may correct an earlier one.",
            )


# ---- the same graph, later


def check_grown(x: Tensor, new_x: Tensor) -> None:
    """Refuse a graph that cannot be the same one later.

    Args:
        x: features as they were, shape (n, d).
    """
    if new_x.shape[1] != x.shape[1]:
        raise DataError(
            f"update needs the {x.shape[1]} features of the graph that was fitted",
            got=int(new_x.shape[1]),
            fix="Prepare them in the same way, or call fit.",
        )
    if new_x.shape[0] < x.shape[0]:
        raise DataError(
            f"update keeps the ids of all {x.shape[0]} nodes that were fitted",
            got=f"{new_x.shape[0]} nodes",
            fix="Leave nodes that are gone in place, without edges; or call fit.",
        )


def arguments_again(before: dict[str, Any], given: dict[str, Any], graph: Any) -> dict[str, Any]:
    """Arguments of the model's forward on the new graph; a tensor of the old one is of no use."""
    arguments = dict(given)
    for name, value in before.items():
        if name in given:
            continue
        held = getattr(graph, name, None)
        if callable(value) or isinstance(value, bool | int | float | str) or value is None:
            arguments[name] = value
        elif held is not None:
            arguments[name] = held
        else:
            raise DataError(
                f"the model was fitted with {name}, and the new graph needs one of its own",
                got=f"no {name}",
                fix=f"Pass it on: update(data, {name}=…).",
            )
    return arguments
