"""The closed loop F = C∘f: batched for training, and collapsed exactly for the proof.

f's last layer and the head's first one are both affine, so C∘f is a ReLU network n → hidden → … → n whose
size does not depend on the feature dimension d. In the anchored forms it is written in z = y − Y, so that
its first layer keeps the controller's own weights, untouched by rounding. Each collapsed number is the
float nearest to the exact one, with a bound on the difference that the verifier has to cover.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.control.base import Layers, Plant
from graphkeel.control.neural import ControllerBatch, NeuralWeights
from graphkeel.lyapunov.config import ResolvedConfig
from graphkeel.lyapunov.domain import Domain
from graphkeel.lyapunov.exact import exact_dot, sum_up
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.verify.problem import Affine, Network, Problem

Array = NDArray[np.float64]
BatchLayers = list[tuple[Tensor, Tensor]]  # weights (classes, out, in), biases (classes, out)


class ClosedLoopBatch:
    """F of all classes as one tensor program, in u = y − Y (anchored forms) or u = y (paper's form)."""

    def __init__(self, plant: Plant, controller: ControllerBatch) -> None:
        self.controller, self.rest = controller, plant.layers[1:]
        self.centred = controller.form != "paper"

    def layers(self, active: Tensor) -> BatchLayers:
        control = self.controller
        inner, bias, outer = control.inner(active), control.bias[active], control.outer_seen(active)
        rest = control.at_rest(active)
        if self.centred:
            rest = rest - torch.einsum("kph,kh->kp", outer, bias.relu())
        layers = [(inner, bias), (outer, rest)]
        layers += [(w.expand(len(active), -1, -1), b.expand(len(active), -1)) for w, b in self.rest]
        if self.centred:
            weight, last = layers[-1]
            layers[-1] = (weight, last - control.targets[active])
        return layers

    def coordinates(self, y: Tensor, active: Tensor) -> Tensor:
        """States y (active, points, n) in the loop's own coordinates u."""
        return y - self.controller.targets[active].unsqueeze(1) if self.centred else y

    def origin(self, active: Tensor) -> Tensor:
        """The equilibrium in u, shape (active, n)."""
        targets = self.controller.targets[active]
        return torch.zeros_like(targets) if self.centred else targets


def run_layers(layers: BatchLayers, u: Tensor) -> Tensor:
    for i, (weight, bias) in enumerate(layers):
        u = torch.einsum("kbn,kmn->kbm", u, weight) + bias.unsqueeze(1)
        if i + 1 < len(layers):
            u = u.relu()
    return u


def interval_bounds(layers: BatchLayers, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Interval bounds of F over a box (classes, n), differentiable; for training, not for proofs."""
    for i, (weight, bias) in enumerate(layers):
        middle, radius = (low + high) / 2, (high - low) / 2
        centre = torch.einsum("kmn,kn->km", weight, middle) + bias
        spread = torch.einsum("kmn,kn->km", weight.abs(), radius)
        low, high = centre - spread, centre + spread
        if i + 1 < len(layers):
            low, high = low.relu(), high.relu()
    return low, high


def gain_matrix(layers: BatchLayers) -> Tensor:
    """M ≥ 0 with |F(u) − F(u′)| ≤ M·|u − u′| entry by entry, as a ReLU never stretches: (classes, n, n)."""
    product = layers[0][0].abs()
    for weight, _ in layers[1:]:
        product = weight.abs() @ product
    return product


def axis_factors(gain: Tensor, gains: Tensor) -> Tensor:
    """κⱼ = Σᵢ rᵢMᵢⱼ/rⱼ, (classes, n): with V = Σ rᵢ|uᵢ|, V(F(u) − F(u′)) ≤ maxⱼ κⱼ · V(u − u′)."""
    return torch.einsum("kn,knm->km", gains, gain) / gains


def collapse(
    head: Layers,
    control: NeuralWeights,
    function: LyapunovWeights,
    domain: Domain,
    config: ResolvedConfig,
    name: str,
) -> Problem:
    """The question put to the verifier about one class's shipped weights."""
    lower, upper, equilibrium = domain.box(centred=config.centred)
    return Problem(
        closed_loop=closed_loop_network(head, control),
        lyapunov=lyapunov_network(function),
        lower=lower,
        upper=upper,
        equilibrium=equilibrium,
        hole_radius=config.epsilon / float(np.sqrt(len(lower))) * (1 - 1e-12),  # inside the L2 ball of radius ε
        hole_norm="inf",
        rho=config.rho,
        positivity=config.positivity,
        name=name,
    )


def closed_loop_network(head: Layers, control: NeuralWeights) -> Network:
    """C∘f of shipped weights as a network of its own, exact up to the stated error bounds."""
    inner, bias = _numpy(control.inner), _numpy(control.bias)
    shift = _numpy(control.equilibrium) if control.centred else np.zeros(len(control.equilibrium))
    start = np.maximum(bias, 0.0) if control.centred else np.zeros_like(bias)
    deep = len(head) > 1
    joined = _join(head[0], control, start, np.zeros(len(head[0][1])) if deep else shift)
    layers = [Affine(inner, bias), joined, *(Affine(_numpy(w), _numpy(b)) for w, b in head[1:])]
    if deep:
        layers[-1] = _shifted(layers[-1], shift)
    return Network(tuple(layers))


def _join(first: tuple[Tensor, Tensor], control: NeuralWeights, start: Array, shift: Array) -> Affine:
    """C₁·(h + B·(t − start)) + c₁ − shift as an affine map of t, the controller's hidden layer."""
    weight, bias = _numpy(first[0]), _numpy(first[1])
    outer, offset = _numpy(control.outer), _numpy(control.offset)
    dots = np.array([[exact_dot(row, column) for column in outer.T] for row in weight])
    values, errors = dots[..., 0], dots[..., 1]
    rests = []
    for i, row in enumerate(weight):
        left = np.concatenate([row, -values[i], [bias[i], -shift[i]]])
        value, error = exact_dot(left, np.concatenate([offset, start, [1.0, 1.0]]))
        rests.append((value, sum_up(np.array([error, *(errors[i] * start * (1 + 1e-15))]))))
    rest = np.array(rests)
    return Affine(values, rest[:, 0], weight_error=errors, bias_error=rest[:, 1])


def _shifted(layer: Affine, shift: Array) -> Affine:
    one = np.ones(2)
    moved = np.array([exact_dot(np.array([b, -s]), one) for b, s in zip(layer.bias, shift, strict=True)])
    return Affine(layer.weight, moved[:, 0], bias_error=moved[:, 1])


def lyapunov_network(function: LyapunovWeights) -> Network:
    return Network.of(
        (_numpy(function.inner), _numpy(function.bias)),
        (_numpy(function.outer)[None, :], _numpy(function.offset).reshape(1)),
    )


def _numpy(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy()
