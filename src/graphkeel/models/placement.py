"""Where a model lives and how precisely it computes; what it is asked with is moved there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Placement:
    """A device and a floating-point type.

    Attributes:
        device: where the tensors of a call must lie.
        dtype: the type of the features and of every other argument with a floating-point type.
    """

    device: torch.device
    dtype: torch.dtype

    def moved(self, value: Any) -> Any:
        """The value there; what is no tensor, and what is there already, is returned as it is."""
        if isinstance(value, Tensor):
            dtype = self.dtype if value.is_floating_point() else value.dtype
            return value.to(self.device, dtype)
        if type(value) in (list, tuple):
            return type(value)(self.moved(part) for part in value)
        if type(value) is dict:
            return {name: self.moved(part) for name, part in value.items()}
        return value


def placement_of(model: nn.Module, x: Tensor | None = None) -> Placement | None:
    """Where the model's weights are; for a model without weights, where the features are.

    Args:
        x: features, shape (N, d); for a model that has no weights.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return Placement(tensor.device, tensor.dtype)
    if x is not None and x.is_floating_point():
        return Placement(x.device, x.dtype)
    return None
