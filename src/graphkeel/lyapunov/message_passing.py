"""One gauge for all classes in which the loop with message passing contracts.

The model is read as layers with one aggregation (`models.aggregation`). A word picks one power of
the aggregation in every layer; along it the loop of a class is a plain ReLU network. The graph's
loop has as its factor the sum over words of the largest factor of any class (docs/mathematics.md).
Here a good gauge is chosen in floats; the factor is computed exactly where it is written down."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkeel.certificate import GraphProof
from graphkeel.control.neural import ControllerBatch, NeuralWeights
from graphkeel.lyapunov.closed_loop import axis_factors
from graphkeel.models.aggregation import Aggregation
from graphkeel.verify.problem import Array


def graph_proof(
    aggregation: Aggregation, controls: Sequence[NeuralWeights], most_words: int = 1024
) -> GraphProof:
    """The claim of a certificate about message passing; a reason where there is none."""
    if aggregation.reason:
        return GraphProof(reason=aggregation.reason)
    layers = used_layers(aggregation)
    count = int(np.prod([len(layer) for layer in layers]))
    if count > most_words:
        return GraphProof(reason=f"{count} products of powers are too many to bound")
    gains = word_gains(layers, controls)
    return GraphProof(
        layers=layers,
        gauge=_common_gauge(gains),
        operator=aggregation.operator,
        undirected=aggregation.undirected,
    )


class Passing:
    """The loop with message passing as training sees it: its factor, and a term of the loss, for a
    recognised model and controllers in an anchored form.

    The term is how far the axes' factors of each class exceed an aim, in one gauge for all classes.
    Its words are merged into one matrix, which bounds κ from below and costs a product a step; what
    is proved is the sum over words. The gauge follows the weights by a few power steps."""

    def __init__(self, aggregation: Aggregation, controller: ControllerBatch) -> None:
        self.layers = used_layers(aggregation)
        first, *rest = self.layers
        self.controller = controller
        self.seen = [torch.from_numpy(weight) @ controller.lift for _, weight in first]
        self.beyond = torch.from_numpy(_merged(rest, first[0][1].shape[0]))
        self.everyone = torch.arange(len(controller.targets))
        self.gauge = torch.ones(controller.targets.shape[1], dtype=torch.float64)

    def factor(self, controls: Sequence[NeuralWeights]) -> float:
        """κ of the graph's loop in floats."""
        gains = word_gains(self.layers, controls)
        return loop_factor(gains, _common_gauge(gains))

    def __call__(self, active: Tensor, aim: Tensor) -> Tensor:
        """The excess of each active class over the factor (active, 1) that training works for,
        shape (active,)."""
        with torch.no_grad():
            matrix = self.gains(self.everyone).amax(dim=0)
            unit = matrix / matrix.max().clamp_min(1e-300)
            self.gauge = _power_steps(self.gauge, unit, steps=2)
        gauge = self.gauge.expand(len(active), -1)
        return (axis_factors(self.gains(active), gauge) - aim).relu().sum(dim=1)

    def gains(self, active: Tensor) -> Tensor:
        """M ≥ 0 of each class, shape (active, n, n)."""
        outer = self.controller.outer(active)
        starts = sum((seen @ outer).abs() for seen in self.seen)
        return self.beyond @ starts @ self.controller.inner(active).abs()


def _merged(rest: list[list[tuple[int, Array]]], width: int) -> Array:
    """Σ over words of |W_K|···|W_2|, shape (n, width)."""
    product = np.eye(width)
    for layer in rest:
        product = np.sum([np.abs(weight) for _, weight in layer], axis=0) @ product
    return product


def used_layers(aggregation: Aggregation) -> list[list[tuple[int, Array]]]:
    """(power, weight) of all branches whose weight is not zero; biases move nothing."""
    found = []
    for layer in aggregation.layers:
        branches = [(branch.power, branch.weight.numpy()) for branch in layer]
        found.append([one for one in branches if one[1].any()] or branches[:1])
    return found


def word_gains(
    layers: list[list[tuple[int, Array]]], controls: Sequence[NeuralWeights]
) -> NDArray[np.float64]:
    """M ≥ 0 with |ΔF| ≤ M·|Δy| along each word, shape (words, classes, n, n)."""
    first, *rest = layers
    width = first[0][1].shape[0]
    ends = [_merged([[branch] for branch in word], width) for word in product(*rest)]
    starts = [[_start(weight, control) for control in controls] for _, weight in first]
    return np.stack([[end @ one for one in start] for start in starts for end in ends])


def _start(weight: Array, control: NeuralWeights) -> Array:
    """|W·B|·|A|: the first layer and the controller's last one have no ReLU in between."""
    outer = control.outer.double().numpy()
    inner = control.inner.double().numpy()
    return np.abs(weight @ outer) @ np.abs(inner)


def _common_gauge(gains: Array, steps: int = 200) -> Array:
    """r > 0 for which the factor of the graph's loop is small, shape (n,), float32 numbers."""
    total = gains.max(axis=1).sum(axis=0)
    ones = np.ones(total.shape[0])
    unit = total / (total.max() or 1.0)
    perron = _power_steps(ones, unit, steps)
    candidates = [ones, perron, np.sqrt(perron)]
    best = min(candidates, key=lambda r: loop_factor(gains, r))
    return (best / best.max()).astype(np.float32).astype(np.float64)


def _power_steps(r: Any, matrix: Any, steps: int, mixing: float = 1e-3) -> Any:
    """r after so many steps towards r·M = ρ(M)·r, as arrays or tensors: in the norm Σ rᵢ|zᵢ| the
    matrix M, whose largest entry is one, expands least. What is mixed in keeps r positive."""
    mixed = matrix + mixing
    for _ in range(steps):
        r = r @ mixed
        r = r / r.max()
    return r


def loop_factor(gains: Array, r: Array) -> float:
    """κ = Σ over words of the largest factor of any class in the gauge Σ rᵢ|zᵢ|, in floats."""
    factors = (np.einsum("i,wcij->wcj", r, gains) / r).max(axis=2)
    return float(factors.max(axis=1).sum())
