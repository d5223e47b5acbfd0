"""What SGC feeds its linear layer: no weight is before it, so it is made once per graph, however
often the layer is trained."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from graphkeel.models.networks import SGC

# By features, for as long as they live; the versions tell whether something was changed in place.
_known: Any = WeakIdKeyDictionary()


def propagated(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """The features after the hops, shape (N, d).

    Args:
        model: on a graph that is not too large for its messages (`SGC.is_large`).
        x: features, shape (N, d).
        edge_index: int64, shape (2, E).
    """
    versions = (x._version, edge_index._version, model.conv.K)
    known = _known.get(x)
    if known is None or known[0] != versions or known[1]() is not edge_index:
        made = _made(model, x, edge_index)
        known = (versions, weakref.ref(edge_index), made)
        _known[x] = known
    result: Tensor = known[2]
    return result


def scores_of(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """What the model answers, bit for bit, with gradients into its weights alone.

    Args:
        model: any SGC.
        x: features, shape (N, d).
        edge_index: int64, shape (2, E).
    """
    if model.is_large(x, edge_index):
        return model(x, edge_index)  # type: ignore[no-any-return]
    return model.conv.lin(propagated(model, x, edge_index))  # type: ignore[no-any-return]


def _made(model: SGC, x: Tensor, edge_index: Tensor) -> Tensor:
    """Read with a hook, so that the normalisation is PyG's own."""
    seen: list[Tensor] = []
    handle = model.conv.lin.register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].detach())
    )
    try:
        with torch.no_grad():
            model(x, edge_index)
    finally:
        handle.remove()
    return seen[0]
