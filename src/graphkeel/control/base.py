"""The protocol of controllers: for a plant y = C(x) and a target Y, a feature x with C(x) = Y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError
from graphkeel.core.tensors import relu_network

Layers = tuple[tuple[Tensor, Tensor], ...]  # (weight, bias) in float64, a ReLU between each two


class Plant(Protocol):
    """The head C: R^d -> R^n. `layers` is empty when C has no exact ReLU form; it can still be
    called."""

    @property
    def layers(self) -> Layers: ...

    @property
    def n_in(self) -> int: ...

    @property
    def n_out(self) -> int: ...

    def __call__(self, x: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class LayeredPlant:
    """A plant that is nothing but its layers."""

    layers: Layers

    @property
    def n_in(self) -> int:
        return int(self.layers[0][0].shape[1])

    @property
    def n_out(self) -> int:
        return int(self.layers[-1][0].shape[0])

    def __call__(self, x: Tensor) -> Tensor:
        return relu_network(self.layers, x)


@dataclass(frozen=True)
class Regulation:
    """Where a controller brought the plant for one target.

    Attributes:
        anchor: h*, the feature as it will be shipped (float32).
        residual: ‖C(h*) − Y‖₂, measured at the shipped float32 feature.
        steps: plant evaluations that steered (a closed form takes none but the last).
    """

    controller: str
    anchor: Tensor
    residual: float
    steps: int


class Controller(Protocol):
    """Steers the plant to a target; stateless between calls."""

    name: str

    def regulate(self, plant: Plant, target: Tensor) -> Regulation:
        """Steer the plant to the target, from the feature zero.

        Args:
            plant: the head C, from d features to n logits.
            target: Y, shape (n,).
        """


def set_point(plant: Plant, target: Tensor) -> Tensor:
    """The target Y in float64, checked against the plant's outputs.

    Args:
        plant: the head C, from d features to n logits.
        target: Y, shape (n,).
    """
    vector = torch.as_tensor(target).detach().double()
    if vector.shape != (plant.n_out,):
        wanted = f"the target must have one entry per logit, {plant.n_out}"
        raise ConfigError(wanted, got=f"shape {tuple(vector.shape)}")
    if not bool(torch.isfinite(vector).all()):
        raise ConfigError("the target must be finite", got=vector.tolist())
    return vector


def regulation_at(name: str, plant: Plant, target: Tensor, x: Tensor, steps: int) -> Regulation:
    """Round the feature to what is shipped, and measure it there.

    Args:
        name: of the controller.
        plant: the head C, from d features to n logits.
        target: Y, shape (n,).
        x: the feature it ended at, shape (d,).
        steps: plant evaluations on the way.
    """
    anchor = x.detach().float()
    with torch.no_grad():
        residual = float(torch.linalg.vector_norm(plant(anchor.double()) - target.double()))
    return Regulation(name, anchor, residual, steps)


def jacobian(plant: Plant, x: Tensor) -> Tensor:
    """dC/dx at one feature, shape (n, d).

    Args:
        plant: the head C, from d features to n logits.
        x: shape (d,).
    """
    return jacobians(plant, x.unsqueeze(0))[0]


def jacobians(plant: Plant, x: Tensor) -> Tensor:
    """dC/dx (B, n, d) at features (B, d): exact for a layered plant, else by one backward pass a
    logit, or by differences where the plant passes no gradients on."""
    if not plant.layers:
        try:
            return _autograd_jacobians(plant, x.double())
        except RuntimeError:  # a model that passes no gradients on, or takes no x that wants them
            return _difference_jacobians(plant, x.double())
    value = x.double()
    slope = plant.layers[0][0].expand(len(x), -1, -1)
    for i, (weight, bias) in enumerate(plant.layers):
        if i > 0:
            slope = weight @ ((value > 0).double().unsqueeze(2) * slope)
            value = value.relu()
        value = torch.nn.functional.linear(value, weight, bias)
    return slope


def _autograd_jacobians(plant: Plant, x: Tensor) -> Tensor:
    with torch.enable_grad():
        point = x.detach().requires_grad_(True)
        columns = plant(point).unbind(dim=1)
        rows = [torch.autograd.grad(c.sum(), point, retain_graph=True)[0] for c in columns]
    return torch.stack(rows, dim=1).double()


def _difference_jacobians(plant: Plant, x: Tensor, step: float = 1e-2) -> Tensor:
    """Central differences, 2d evaluations a feature; exact between two kinks of the plant."""
    moves = step * torch.eye(x.shape[1], dtype=x.dtype)
    with torch.no_grad():
        above, below = (plant((x[:, None] + sign * moves).flatten(0, 1)) for sign in (1, -1))
    slopes = (above - below).double() / (2 * step)
    return slopes.reshape(len(x), x.shape[1], -1).transpose(1, 2)
