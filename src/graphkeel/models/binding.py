"""A model and the graph it is asked about, put together: the arguments that its forward needs are
found in the graph, and those that it could take and was not given are named."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphkeel.core.errors import KeelWarning, ModelError
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
