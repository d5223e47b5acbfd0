"""The closed loop F = C∘f: batched for training, and collapsed exactly for the proof.

f's last layer and the head's first one are both affine, so C∘f is a ReLU network n → hidden → … → n
whose size does not depend on the feature dimension d: the verifier never sees d. Each collapsed
number is the float nearest to the exact one, with a bound on the difference that the verifier has
to cover (`certificate.sources`)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.certificate.sources import (
    Source,
    anchored_controller,
    chain,
    mlp,
)
from graphkeel.control.base import Layers, Plant
from graphkeel.control.neural import ControllerBatch, NeuralWeights
from graphkeel.lyapunov.function import LyapunovWeights

BatchLayers = list[tuple[Tensor, Tensor]]  # weights (classes, out, in), biases (classes, out)


def loop_layers(plant: Plant, control: ControllerBatch, active: Tensor) -> BatchLayers:
    """F of the active classes as one tensor program."""
    inner, bias, outer = control.inner(active), control.bias[active], control.outer_seen(active)
    rest = control.at_rest(active)
    if control.form != "paper":
        rest = rest - torch.einsum("kph,kh->kp", outer, bias.relu())
        bias = bias - torch.einsum("khn,kn->kh", inner, control.targets[active])
    rows = len(active)
    beyond = ((w.expand(rows, -1, -1), b.expand(rows, -1)) for w, b in plant.layers[1:])
    return [(inner, bias), (outer, rest), *beyond]


def run_layers(layers: BatchLayers, states: Tensor) -> Tensor:
    """F at states of shape (classes, points, n)."""
    for i, (weight, bias) in enumerate(layers):
        states = torch.einsum("kbn,kmn->kbm", states, weight) + bias.unsqueeze(1)
        if i + 1 < len(layers):
            states = states.relu()
    return states


def interval_bounds(layers: BatchLayers, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Interval bounds of F over a box (classes, n), differentiable; for training, not for
    proofs."""
    for i, (weight, bias) in enumerate(layers):
        middle, radius = (low + high) / 2, (high - low) / 2
        centre = torch.einsum("kmn,kn->km", weight, middle) + bias
        spread = torch.einsum("kmn,kn->km", weight.abs(), radius)
        low, high = centre - spread, centre + spread
        if i + 1 < len(layers):
            low, high = low.relu(), high.relu()
    return low, high


def margin_bounds(
    layers: BatchLayers, low: Tensor, high: Tensor, classes: Tensor, margin: float
) -> Tensor:
    """Upper bounds of F_k − F_c + margin over the states of the box that have the margin for class
    c: (classes, n).

    A linear relaxation of F, plus λ(y_c − y_k − margin) with the best λ ≥ 0: that term is not
    negative on these states, and the rest is maximised over the whole box (docs/formats.md).
    Entry c is the margin and says nothing."""
    chosen, own = torch.arange(len(classes)), torch.arange(low.shape[1])
    rows = torch.eye(low.shape[1], dtype=low.dtype).repeat(len(classes), 1, 1)
    rows[chosen, :, classes] -= 1.0
    linear, constant = _upper_forms(layers, rows, low, high)
    middle, radius = (low + high).unsqueeze(1) / 2, (high - low).unsqueeze(1) / 2
    own_slope, rival = linear[chosen, :, classes], linear[:, own, own]
    bounds = []
    # The maximum has its kinks at these λ only.
    for weight in (torch.zeros_like(own_slope), (-own_slope).relu(), rival.relu()):
        tilted = linear.clone()
        tilted[chosen, :, classes] += weight
        tilted[:, own, own] -= weight
        top = (tilted * middle).sum(dim=2) + (tilted.abs() * radius).sum(dim=2)
        bounds.append(top + constant + margin * (1.0 - weight))
    return torch.stack(bounds).amin(dim=0)


def _upper_forms(
    layers: BatchLayers, rows: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor]:
    """rows·F as linear forms of y that lie above it on the box: coefficients (classes, rows, n),
    constants."""
    ends = [interval_bounds(layers[:depth], low, high) for depth in range(1, len(layers))]
    weight, bias = layers[-1]
    linear, constant = rows @ weight, torch.einsum("krm,km->kr", rows, bias)
    for (weight, bias), (under, over) in zip(reversed(layers[:-1]), reversed(ends), strict=True):
        width = (over - under).clamp_min(1e-12)
        stable = (under >= 0).double()
        unstable = (under < 0) & (over > 0)
        upper = torch.where(unstable, over / width, stable)
        lower = torch.where(unstable, (0.5 + 4 * (over + under) / width).clamp(0.0, 1.0), stable)
        lift = torch.where(unstable, -upper * under, torch.zeros_like(under))
        rising, falling = linear.relu(), -(-linear).relu()
        slanted = rising * upper.unsqueeze(1) + falling * lower.unsqueeze(1)
        constant = constant + torch.einsum("krm,km->kr", rising, lift)
        constant = constant + torch.einsum("krm,km->kr", slanted, bias)
        linear = slanted @ weight
    return linear, constant


def gain_matrix(layers: BatchLayers) -> Tensor:
    """M ≥ 0 with |F(y) − F(y′)| ≤ M·|y − y′| entry by entry, as a ReLU never stretches: (classes,
    n, n)."""
    product = layers[0][0].abs()
    for weight, _ in layers[1:]:
        product = weight.abs() @ product
    return product


def axis_factors(gain: Tensor, gains: Tensor) -> Tensor:
    """κⱼ = Σᵢ rᵢMᵢⱼ/rⱼ, (classes, n): in the norm V = Σ rᵢ|·|ᵢ, F is Lipschitz with the constant
    maxⱼ κⱼ."""
    return torch.einsum("kn,knm->km", gains, gain) / gains


# ---- shipped weights as the certificate's own chains of factors


def plain_source(layers: Layers) -> Source:
    return mlp((_array(weight), _array(bias)) for weight, bias in layers)


def controller_source(control: NeuralWeights) -> Source:
    if control.form == "paper":
        return plain_source(((control.inner, control.bias), (control.outer, control.offset)))
    parts = (control.inner, control.bias, control.outer, control.offset, control.equilibrium)
    return anchored_controller(*map(_array, parts))


def lyapunov_source(function: LyapunovWeights) -> Source:
    first = (_array(function.inner), _array(function.bias))
    last = (_array(function.outer)[None, :], _array(function.offset).reshape(1))
    return (chain((None, -_array(function.centre)), first), chain(last))


def _array(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.detach().double().numpy()
