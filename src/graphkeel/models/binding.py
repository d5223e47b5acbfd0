"""A model and the graph it is asked about, put together: the arguments that its forward needs are
found in the graph, and those that it could take and was not given are named."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.core.errors import DataError, KeelError, KeelWarning, ModelError
from graphkeel.graph.node_graph import is_adjacency, weighs_edges
from graphkeel.graph.task import UNLABELLED
from graphkeel.models.calling import Signature, Style
from graphkeel.models.frozen import FrozenModel, Scores
from graphkeel.models.outputs import ReturnType

# Fields of a graph that change what a model answers; labels and masks do not.
_EDGE_FIELDS = ("edge_weight", "edge_attr")


def bind(
    model: nn.Module | Scores,
    data: Data,
    model_kwargs: dict[str, Any],
    *,
    return_type: str | ReturnType = ReturnType.AUTO,
) -> tuple[FrozenModel, dict[str, Any]]:
    """The frozen model, and every argument that its forward gets beside features and edges."""
    frozen = FrozenModel(model, return_type=return_type, graph=_without_hidden_labels(data))
    signature = frozen.calling.signature
    arguments = {**_found_in(data, signature, model_kwargs), **model_kwargs}
    _warn_of_unused(data, signature, arguments)
    return frozen, arguments


def _found_in(data: Data, signature: Signature, given: dict[str, Any]) -> dict[str, Any]:
    """Required arguments that the graph has under the same name: without them there is no call."""
    missing = [name for name in signature.required if name not in given]
    found = {name: data[name] for name in missing if data.get(name) is not None}
    absent = [name for name in missing if name not in found]
    if absent:
        names = ", ".join(absent)
        raise ModelError(
            "the model's forward needs arguments that neither the call nor the graph has",
            got=names,
            fix=f"Pass them on: fit(data, {absent[0]}=…), or set data.{absent[0]}.",
        )
    return found


def _warn_of_unused(data: Data, signature: Signature, arguments: dict[str, Any]) -> None:
    if signature.style is Style.DATA:
        return  # it reads what it wants
    adjacency = data.get("adj_t")
    takes_edges = signature.style in (Style.TENSORS, Style.SWAPPED)
    no_weights = "edge_weight" not in arguments
    if takes_edges and no_weights and is_adjacency(adjacency) and weighs_edges(adjacency):
        warnings.warn(
            "the graph's adj_t weighs its edges, and the model's forward takes "
            f"{signature.edges}: it gets the edges without their weights; if the model was trained "
            "with adj_t: Reconstructor(lambda x, adj_t: model(x, adj_t))",
            KeelWarning,
            stacklevel=4,
        )
    for name in _EDGE_FIELDS:
        is_open = name in signature.optional and name not in arguments
        if is_open and isinstance(data.get(name), Tensor):
            warnings.warn(
                f"the graph has {name}, the model's forward takes it, and it is not passed; if the "
                f"model was trained with it: fit(data, {name}=data.{name})",
                KeelWarning,
                stacklevel=4,
            )


def _without_hidden_labels(data: Data) -> Data:
    """A shallow copy in which only the labels of train_mask and val_mask are left."""
    y = data.get("y")
    if not isinstance(y, Tensor) or y.dim() != 1 or y.shape[0] != data.x.shape[0]:
        return copy.copy(data)
    visible = torch.zeros(y.shape[0], dtype=torch.bool, device=y.device)
    for name in ("train_mask", "val_mask"):
        mask = data.get(name)
        if isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == visible.shape:
            visible |= mask
    hidden = copy.copy(data)
    hidden.y = torch.where(visible, y, torch.full_like(y, UNLABELLED))
    return hidden


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
    bad = ~torch.isfinite(scores).all(dim=1)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise ModelError(
            "the model's scores must be finite",
            got=f"NaN or infinity for {int(bad.sum())} of {len(bad)} nodes, the first is {first}",
            fix="Look for NaN in its weights, or for a logarithm of 0 in its last layer.",
        )


def is_plain(value: object) -> bool:
    """Whether an argument is of no graph, and can be written down."""
    return value is None or isinstance(value, bool | int | float | str)


def arguments_again(before: dict[str, Any], given: dict[str, Any], graph: Any) -> dict[str, Any]:
    """Arguments of the model's forward on the new graph; a tensor of the old one is of no use."""
    arguments = dict(given)
    for name, value in before.items():
        if name in given:
            continue
        held = getattr(graph, name, None)
        if callable(value) or is_plain(value):
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
