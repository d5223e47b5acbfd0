"""Class anchors: h*_c with C(h*_c) = m·e_c, the features to which the frozen head answers "class c"."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphkeel.control import CLASSICAL, Controller
from graphkeel.control.base import Layers, Plant
from graphkeel.errors import ConfigError, KeelError
from graphkeel.frozen import FrozenModel
from graphkeel.head import extract_head


@dataclass(frozen=True)
class Anchors:
    """One feature per class.

    Attributes:
        features: h*_c as shipped (float32), shape (n_classes, d).
        strength: m, the logit asked for at the class's own place (0 elsewhere).
        residuals: ‖C(h*_c) − m·e_c‖₂ for each class, measured at the shipped feature.
        controller: who found them.
    """

    features: Tensor
    strength: float
    residuals: tuple[float, ...]
    controller: str

    @property
    def relative_residual(self) -> float:
        """The worst class's residual, relative to the strength."""
        return max(self.residuals) / self.strength


def solve_anchors(plant: Plant, strength: float, controller: str | Controller = "deadbeat") -> Anchors:
    """Ask a controller for the anchor of every class.

    `deadbeat` is the closed form: the least-norm solution for an affine head, Levenberg–Marquardt steps otherwise.
    """
    found = named_controller(controller) if isinstance(controller, str) else controller
    targets = strength * torch.eye(plant.n_out, dtype=torch.float64)
    reached = [found.regulate(plant, target) for target in targets]
    return Anchors(
        torch.stack([one.anchor for one in reached]), strength, tuple(one.residual for one in reached), found.name
    )


def named_controller(name: str) -> Controller:
    if name not in CLASSICAL:
        raise ConfigError(f"the controller must be one of {', '.join(CLASSICAL)}", got=repr(name))
    return CLASSICAL[name]()


def plant_of(frozen: FrozenModel, n_features: int, n_classes: int) -> Plant:
    """The head as an exact network where it can be read off, else the model itself on constant fields."""
    if isinstance(frozen.model, nn.Module):
        try:
            return extract_head(frozen.model, n_features)
        except KeelError:  # for instance a model that needs more than (x, edge_index)
            pass
    return FieldResponse(frozen, n_features, n_classes)


@dataclass(frozen=True)
class FieldResponse:
    """C by its definition, with no layers to read: the model on single nodes that see only themselves."""

    frozen: FrozenModel
    n_in: int
    n_out: int

    @property
    def layers(self) -> Layers:
        return ()

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.n_in).float()
        nodes = torch.arange(rows.shape[0]).repeat(2, 1)
        return self.frozen.differentiable_logits(rows, nodes).reshape(*x.shape[:-1], self.n_out).double()
