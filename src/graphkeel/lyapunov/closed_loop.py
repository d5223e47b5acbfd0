"""The closed loop F = C∘f: batched for training, and collapsed exactly for the proof.

f's last layer and the head's first one are both affine, so C∘f is a ReLU network n → hidden → … → n
whose size does not depend on the feature dimension d: the verifier never sees d. Each collapsed
number is the float nearest to the exact one, with a bound on the difference that the verifier has
to cover."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from graphkeel.control.base import Layers, Plant
from graphkeel.control.neural import ControllerBatch, NeuralWeights
from graphkeel.lyapunov.config import ResolvedConfig
from graphkeel.lyapunov.function import LyapunovWeights
from graphkeel.lyapunov.states import Domain
from graphkeel.verify.problem import Affine, Array, Network, Problem

_SPLIT = 134217729.0  # 2^27 + 1
_SAFE = (2.0**-450, 2.0**450)  # inside, neither a product nor its error over- or underflows

BatchLayers = list[tuple[Tensor, Tensor]]  # weights (classes, out, in), biases (classes, out)


class ClosedLoopBatch:
    """F of all classes as one tensor program."""

    def __init__(self, plant: Plant, controller: ControllerBatch) -> None:
        self.controller, self.rest = controller, plant.layers[1:]

    def layers(self, active: Tensor) -> BatchLayers:
        control = self.controller
        inner, bias, outer = control.inner(active), control.bias[active], control.outer_seen(active)
        rest = control.at_rest(active)
        if control.form != "paper":
            rest = rest - torch.einsum("kph,kh->kp", outer, bias.relu())
            bias = bias - torch.einsum("khn,kn->kh", inner, control.targets[active])
        beyond = [(w.expand(len(active), -1, -1), b.expand(len(active), -1)) for w, b in self.rest]
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


def collapse(
    head: Layers,
    control: NeuralWeights,
    function: LyapunovWeights,
    domain: Domain,
    config: ResolvedConfig,
    name: str,
) -> Problem:
    """The question put to the verifier about one class's shipped weights."""
    inner_radius = config.epsilon / float(np.sqrt(len(domain.lower))) * (1 - 1e-12)  # in the ε-ball
    return Problem(
        closed_loop=_loop_network(head, control),
        lyapunov=_lyapunov_network(function),
        lower=domain.lower,
        upper=domain.upper,
        equilibrium=domain.equilibrium,
        hole_radius=inner_radius,
        hole_norm="inf",
        rho=config.rho,
        positivity=config.positivity,
        name=name,
    )


def _loop_network(head: Layers, control: NeuralWeights) -> Network:
    """C∘f of shipped weights as a network of its own, exact up to the stated error bounds."""
    bias = float64(control.bias)
    anchored = control.form != "paper"
    first = _centred(
        float64(control.inner), bias, float64(control.equilibrium) if anchored else None
    )
    start = np.maximum(bias, 0.0) if anchored else np.zeros_like(bias)
    rest = (Affine(float64(weight), float64(offset)) for weight, offset in head[1:])
    return Network((first, _join(head[0], control, start), *rest))


def _lyapunov_network(function: LyapunovWeights) -> Network:
    first = _centred(float64(function.inner), float64(function.bias), float64(function.centre))
    return Network(
        (first, Affine(float64(function.outer)[None, :], float64(function.offset).reshape(1)))
    )


def _centred(weight: Array, bias: Array, centre: Array | None) -> Affine:
    """weight·(y − centre) + bias as an affine map of y."""
    if centre is None:
        return Affine(weight, bias)
    right = np.append(-centre, 1.0)
    moved = np.array(
        [exact_dot(np.append(row, b), right) for row, b in zip(weight, bias, strict=True)]
    )
    return Affine(weight, moved[:, 0], bias_error=moved[:, 1])


def _join(first: tuple[Tensor, Tensor], control: NeuralWeights, start: Array) -> Affine:
    """C₁·(h + B·(t − start)) + c₁ as an affine map of t, the controller's hidden layer."""
    weight, bias = float64(first[0]), float64(first[1])
    outer, offset = float64(control.outer), float64(control.offset)
    dots = np.array([[exact_dot(row, column) for column in outer.T] for row in weight])
    values, errors = dots[..., 0], dots[..., 1]
    rest = []
    for i, row in enumerate(weight):
        left = np.concatenate([row, -values[i], [bias[i]]])
        value, error = exact_dot(left, np.concatenate([offset, start, [1.0]]))
        rest.append((value, sum_up([error, *map(product_up, errors[i], start)])))
    moved = np.array(rest)
    return Affine(values, moved[:, 0], weight_error=errors, bias_error=moved[:, 1])


# ---- dot products rounded once: each product is split into a float and its exact rounding error
# (Dekker, Veltkamp), and `math.fsum` adds all of them as if in infinite precision


def float64(tensor: Tensor) -> Array:
    """A tensor's numbers, whose products are formed exactly."""
    return tensor.detach().double().numpy()


def exact_dot(left: Array, right: Array) -> tuple[float, float]:
    """(value, error): |true dot product − value| ≤ error."""
    used = (left != 0) & (right != 0)
    left, right = left[used], right[used]
    if not len(left):
        return 0.0, 0.0
    sizes = np.abs(np.concatenate([left, right]))
    if sizes.min() < _SAFE[0] or sizes.max() > _SAFE[1]:
        return _rational_dot(left, right)
    product = left * right
    terms = np.concatenate([product, _product_error(left, right, product)]).tolist()
    value = math.fsum(terms)
    terms.append(-value)
    return value, _round_up(abs(math.fsum(terms)))


def sum_up(values: Iterable[float]) -> float:
    """An upper bound on the exact sum of non-negative floats."""
    return _round_up(math.fsum(values))


def _round_up(value: float) -> float:
    """The next float: covers the half unit by which a correctly rounded result may fall short."""
    return math.nextafter(value, math.inf) if value else 0.0


def product_up(left: float, right: float) -> float:
    """An upper bound on the exact product of two non-negative floats."""
    return math.nextafter(left * right, math.inf) if left and right else 0.0


def _product_error(left: Array, right: Array, product: Array) -> Array:
    left_high, left_low = _halves(left)
    right_high, right_low = _halves(right)
    rest = left_high * right_high - product
    return left_low * right_low + (left_low * right_high + (left_high * right_low + rest))


def _halves(values: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * values
    high = scaled - (scaled - values)
    return high, values - high


def _rational_dot(left: Array, right: Array) -> tuple[float, float]:
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    true = sum((Fraction(a) * Fraction(b) for a, b in pairs), start=Fraction(0))
    value = float(true)
    lost = abs(true - Fraction(value))
    error = float(lost)
    return value, error if Fraction(error) >= lost else math.nextafter(error, math.inf)
