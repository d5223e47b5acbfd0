"""The neural controller f, a two-layer ReLU network, for every class of a task at once.

Three forms (A: inner weights, a: their bias, B: outer weights, h: offset; Y: the class's
equilibrium):

* `paper`:       f(y) = B·relu(A·y + a) + h, everything free, as published;
* `anchored`:    f(y) = h + B·(relu(A(y−Y) + a) − relu(a)) with C(h) = Y, so f(Y) = h by
  construction;
* `homogeneous`: the same with a = 0.

In the last two forms B = C₁⁺·G, where C₁ is the head's first weight matrix: the model cannot see
what B adds in C₁'s null space, so training moves G alone and its cost does not depend on the
feature dimension."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphkeel.control.base import Controller, Plant, Regulation, regulation_at, set_point
from graphkeel.control.deadbeat import solve_anchor
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import check_name

FORMS = ("anchored", "homogeneous", "paper")


@dataclass(frozen=True)
class NeuralWeights:
    """One class's controller as it is shipped and verified (float32, exact to the bit)."""

    form: str
    equilibrium: Tensor  # Y, float64 (n,)
    inner: Tensor  # A (hidden, n)
    bias: Tensor  # a (hidden,)
    outer: Tensor  # B (d, hidden)
    offset: Tensor  # h (d,)

    def __call__(self, y: Tensor) -> Tensor:
        """f(y) in y's precision, for states of shape (..., n)."""
        kind = y.dtype
        inner, bias, outer = (part.to(kind) for part in (self.inner, self.bias, self.outer))
        if self.form == "paper":
            hidden = (y @ inner.T + bias).relu()
        else:
            hidden = ((y - self.equilibrium.to(kind)) @ inner.T + bias).relu() - bias.relu()
        return self.offset.to(kind) + hidden @ outer.T


class NeuralController(Controller):
    """A trained f behind the controllers' protocol: anchor f(Y), steps those of y⁺ = C(f(y)).

    Args:
        weights: of f.
        steps: at most so many.
        tolerance: ‖y − Y‖₂ at which the loop has arrived.
    """

    name = "neural"

    def __init__(self, weights: NeuralWeights, steps: int = 50, tolerance: float = 1e-9) -> None:
        self.weights, self.steps, self.tolerance = weights, steps, tolerance

    @torch.no_grad()
    def regulate(self, plant: Plant, target: Tensor) -> Regulation:
        target = set_point(plant, target)
        if not torch.equal(target, self.weights.equilibrium):
            raise ConfigError(
                "a neural controller holds the equilibrium it was trained for", got=target.tolist()
            )
        state, steps = plant(torch.zeros(plant.n_in, dtype=torch.float64)), 0
        while steps < self.steps and float((state - target).norm()) > self.tolerance:
            state, steps = plant(self.weights(state)), steps + 1
        return regulation_at(self.name, plant, target, self.weights(target), steps)


class ControllerBatch(nn.Module):
    """The controllers of all classes as one tensor program: every parameter has the class as its
    first axis. Methods take the positions of the classes that are still in work, shape (active,).

    The half-widths of the domain (classes, n) are the unit in which each axis is trained; f(Y) of
    the anchored forms, `anchors` (classes, d), is solved for where None."""

    def __init__(
        self,
        plant: Plant,
        targets: Tensor,
        width: Tensor,
        *,
        form: str,
        hidden: int,
        generator: torch.Generator,
        anchors: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_name("form", form, FORMS)
        self.form = form
        self.targets = targets.double()
        self.unit = width.double()
        self.first, self.first_bias = plant.layers[0]
        classes, n = targets.shape
        out = plant.n_in if form == "paper" else int(self.first.shape[0])
        self.raw_inner = uniform_start((classes, hidden, n), n, generator)
        self.bias = uniform_start((classes, hidden), n, generator)
        self.raw_outer = uniform_start((classes, out, hidden), hidden, generator)
        self.offset = uniform_start((classes, plant.n_in), hidden, generator)
        if form != "paper":
            self._anchor(plant, anchors)

    def _anchor(self, plant: Plant, given: Tensor | None) -> None:
        """Put f(Y) on the solution of C(h) = Y, rounded as it will be shipped, and prepare B =
        C₁⁺·G."""
        if given is None:
            given = torch.stack([solve_anchor(plant, target) for target in self.targets])
        self.offset = nn.Parameter(given.float().double(), requires_grad=False)
        self.lift = torch.linalg.pinv(self.first)  # C₁⁺ (d, p)
        # the part of G that C₁ lets through (p, p): the identity at full rank
        self.seen = self.first @ self.lift
        if self.form == "homogeneous":
            self.bias = nn.Parameter(torch.zeros_like(self.bias), requires_grad=False)

    def inner(self, active: Tensor) -> Tensor:
        """A, shape (active, hidden, n); trained in the domain's own units, so that one step size
        fits all axes."""
        inner = self.raw_inner[active]
        return inner if self.form == "paper" else inner / self.unit[active, None]

    def outer(self, active: Tensor) -> Tensor:
        """B (paper's form, (active, d, hidden)) or G (the others, (active, p, hidden))."""
        if self.form == "paper":
            return self.raw_outer[active]
        return self.raw_outer[active] * self.unit[active].mean(dim=1).view(-1, 1, 1)

    def outer_seen(self, active: Tensor) -> Tensor:
        """C₁·B, shape (active, p, hidden): f's last layer and the head's first one, collapsed."""
        if self.form == "paper":
            return torch.einsum("pd,kdh->kph", self.first, self.outer(active))
        return torch.einsum("pq,kqh->kph", self.seen, self.outer(active))

    def at_rest(self, active: Tensor) -> Tensor:
        """C₁·h + c₁, shape (active, p)."""
        return self.offset[active] @ self.first.T + self.first_bias

    @torch.no_grad()
    def shipped(self, index: int) -> NeuralWeights:
        """One class's weights, rounded once to float32; these are what is verified, saved and
        used."""
        only = torch.tensor([index])
        outer = self.outer(only)[0]
        outer = outer if self.form == "paper" else self.lift @ outer
        return NeuralWeights(
            self.form,
            self.targets[index].clone(),
            self.inner(only)[0].float().clone(),
            self.bias[index].float().clone(),
            outer.float().contiguous().clone(),
            self.offset[index].float().clone(),
        )


def uniform_start(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> nn.Parameter:
    """PyTorch's own start for a linear layer, U(±1/√fan_in), from a generator of ours."""
    bound = fan_in**-0.5
    return nn.Parameter(
        (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1) * bound
    )
