"""Class anchors: h*_c with C(h*_c) = m·e_c, the features to which the frozen head answers "class
c"."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.optimize import nnls
from torch import Tensor

from graphkeel.control import CLASSICAL, Controller
from graphkeel.control.base import Layers, Plant
from graphkeel.control.deadbeat import LEVENBERG, levenberg_marquardt
from graphkeel.core.names import check_name

_NON_NEGATIVE = "non-negative least squares"  # who found the anchors of `blendable_anchors`


@dataclass(frozen=True)
class AnchorSettings:
    """How class anchors are found, set and blended.

    Attributes:
        ridge: beside non-negative least squares, in norms of the outer layer: among all solutions,
            one of small norm.
        steps: of Levenberg–Marquardt at most.
        reached: residual at which it stops, in strengths.
        strong: times the model's largest logit that an affine head is asked for. Where Ŝ's rows do
            not sum to one, the head's bias is off by as much, and strong anchors make that small;
            a model with attention answers ten-fold anchors five points worse.
        sharper: power of the posterior in a blend for heads that are not affine: only an affine
            head answers a mixture with the mixture of its answers.
    """

    ridge: float = 1e-3
    steps: int = 60
    reached: float = 1e-5
    strong: float = 10.0
    sharper: int = 4


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

    @classmethod
    def at(cls, plant: Plant, features: Tensor, strength: float, controller: str) -> Anchors:
        """Features (n_classes, d), float32, with the residuals measured at them.

        Args:
            plant: the head C, from d features to n logits.
            features, strength, controller: as above.
        """
        targets = strength * torch.eye(plant.n_out, dtype=torch.float64)
        residuals = (plant(features.double()).detach() - targets).norm(dim=1)
        return cls(features, strength, tuple(residuals.tolist()), controller)


def solve_anchors(
    plant: Plant,
    strength: float,
    controller: str | Controller = "deadbeat",
    settings: AnchorSettings = AnchorSettings(),
) -> Anchors:
    """The anchor of every class, by a controller.

    `deadbeat` is the closed form: the least-norm solution for an affine head; any other head gets
    Levenberg–Marquardt steps.

    Args:
        plant: the head C, from d features to n logits.
        strength: m.
        controller: a controller, or the name of a classical one.
        settings: of the search.
    """
    if controller == "deadbeat" and len(plant.layers) != 1:
        return _searched_anchors(plant, strength, settings)
    if isinstance(controller, str):
        check_name("the controller", controller, CLASSICAL)
        found: Controller = CLASSICAL[controller]()
    else:
        found = controller
    targets = strength * torch.eye(plant.n_out, dtype=torch.float64)
    reached = [found.regulate(plant, target) for target in targets]
    return Anchors(
        torch.stack([one.anchor for one in reached]),
        strength,
        tuple(one.residual for one in reached),
        found.name,
    )


def blendable_anchors(
    plant: Plant, strength: float, settings: AnchorSettings = AnchorSettings()
) -> Anchors:
    """Anchors of a head W₂·relu(W₁x + b₁) + b₂ that can be mixed: the head is linear between them.

    Whatever the features, the head answers W₂a + b₂ with a ≥ 0. The best such a is non-negative
    least squares, a convex problem; and x with W₁x + b₁ = a exists because W₁ has full row rank.
    All these x have no negative pre-activation, nor has any mixture of them, so no unit switches in
    between: C(Σ p_c h*_c) = Σ p_c C(h*_c)."""
    (inner, inner_bias), (outer, outer_bias) = plant.layers
    lift = torch.linalg.pinv(inner)
    targets = strength * torch.eye(plant.n_out, dtype=torch.float64)
    small = settings.ridge * outer.norm() * torch.eye(outer.shape[1], dtype=torch.float64)
    system = torch.cat([outer, small])
    features = []
    for target in targets:
        wanted = torch.cat([target - outer_bias, torch.zeros(outer.shape[1], dtype=torch.float64)])
        active, _ = nnls(system.numpy(), wanted.numpy())
        features.append((lift @ (torch.from_numpy(active) - inner_bias)).float())
    return Anchors.at(plant, torch.stack(features), strength, _NON_NEGATIVE)


def _searched_anchors(plant: Plant, strength: float, settings: AnchorSettings) -> Anchors:
    """Levenberg–Marquardt for all classes at once, on a head of which only the answers are known.

    What the steps could not reach is in the residuals."""
    targets = strength * torch.eye(plant.n_out, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(plant.n_out, plant.n_in, generator=generator, dtype=torch.float64)
    start = 0.1 * noise  # at zero itself, units may all be off
    goal = settings.reached * strength
    found, _ = levenberg_marquardt(
        plant, targets, start, steps=settings.steps, damping=1.0, goal=goal
    )
    return Anchors.at(plant, found.float(), strength, LEVENBERG)


def hidden_is_free(layers: Layers) -> bool:
    """One hidden layer, each of whose pre-activations some feature reaches."""
    return len(layers) == 2 and int(torch.linalg.matrix_rank(layers[0][0])) == layers[0][0].shape[0]
