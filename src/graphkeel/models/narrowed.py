"""A model on fewer features: those combinations of them that its first weights read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from graphkeel.models.frozen import FrozenModel

# logits of a function of fewer features, these features (N, r), and the directions that they
# are coefficients of (d, r)
Narrow = tuple[Callable[[Tensor], Tensor], Tensor, Tensor]


def narrowed(
    frozen: FrozenModel, x: Tensor, edge_index: Tensor, kwargs: Mapping[str, Any]
) -> Narrow | None:
    """The model as a function of x Q, with gradients; None where it reads features otherwise.

    Every weight W of shape (h, d) becomes W Q, Q an orthonormal basis of all their rows. Where
    features meet nothing but sums over neighbours before these weights, answers stay as they are;
    whether they do is seen on the same features at other nodes.

    Args:
        x: features, float32, shape (N, d).
        edge_index: int64, shape (2, E).
    """
    basis = _basis(frozen.model, x.shape[1])
    if basis is None:
        return None
    basis = basis.to(x)
    other = x.flip(0)
    try:
        model = FrozenModel(
            _read_through(frozen.model, basis),
            return_type=frozen.return_type,
            graph=frozen.calling.graph,
        )
        found = model.logits(other @ basis, edge_index, **kwargs)
    except Exception:  # the model is not ours, and may raise anything
        return None
    expected = frozen.logits(other, edge_index, **kwargs)
    if not torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max())):
        return None

    def ask(values: Tensor) -> Tensor:
        return model.differentiable_logits(values, edge_index, **kwargs)

    return ask, x @ basis, basis


def _basis(model: Any, width: int) -> Tensor | None:
    """Q, shape (d, r); None where it would not be narrow."""
    if not isinstance(model, nn.Module):
        return None
    weights = [weight.detach() for _, weight in _first_weights(model, width)]
    if not 0 < 2 * sum(map(len, weights)) < width:
        return None
    basis: Tensor = torch.linalg.qr(torch.cat(weights).T).Q
    return basis


def _read_through(model: nn.Module, basis: Tensor) -> nn.Module:
    """A copy with W Q in the place of every first weight W."""
    copied = copy.deepcopy(model)
    for name, weight in list(_first_weights(copied, len(basis))):
        owner, _, own = name.rpartition(".")
        narrow = nn.Parameter(weight.detach() @ basis.to(weight), requires_grad=False)
        setattr(copied.get_submodule(owner), own, narrow)
    return copied


def _first_weights(model: nn.Module, width: int) -> list[tuple[str, nn.Parameter]]:
    return [
        (name, weight)
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and weight.shape[1] == width
    ]
