"""The bound of a relaxed leaf once more, from docs/formats.md, section 2: plain Fractions,
chain by chain, no stacking, no common exponents. Standard library only; it shares nothing with
the checker."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

ONE = 1 << 60
Line = tuple[Fraction, Fraction, Fraction]  # lower slope, upper slope, the upper line at zero
Rows = list[list[Fraction]]


@dataclass
class PlainRow:
    """g(y) = form·y + constant + Σ final·(last hidden layer of a chain)."""

    chains: list[list[tuple[Rows, list[Fraction]]]]  # hidden layers: weight, bias
    finals: list[list[Fraction]]
    form: list[Fraction]
    constant: Fraction


@dataclass
class Leaf:
    """All that a leaf may choose; signs by (chain, layer, unit)."""

    slopes: list[list[int]] | None = None
    signs: dict[tuple[int, int, int], bool] = field(default_factory=dict)
    weights: list[int] = field(default_factory=lambda: [1])
    theta: dict[int, list[Fraction]] = field(default_factory=dict)


def dot(left: Any, right: Any) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def relu(value: Fraction) -> Fraction:
    return max(value, Fraction(0))


def value(row: PlainRow, y: list[Fraction]) -> Fraction:
    """g(y)."""
    total = row.constant + dot(row.form, y)
    for chain, final in zip(row.chains, row.finals, strict=True):
        point = y
        for weight, bias in chain:
            point = [relu(dot(w, point) + b) for w, b in zip(weight, bias, strict=True)]
        total += dot(final, point)
    return total


def inputs(row: PlainRow, y: list[Fraction]) -> dict[tuple[int, int, int], Fraction]:
    """z of every unit."""
    found = {}
    for number, chain in enumerate(row.chains):
        point = y
        for k, (weight, bias) in enumerate(chain):
            z = [dot(w, point) + b for w, b in zip(weight, bias, strict=True)]
            found |= {(number, k, unit): entry for unit, entry in enumerate(z)}
            point = [relu(entry) for entry in z]
    return found


def highest(form: list[Fraction], low: list[Fraction], high: list[Fraction]) -> Fraction:
    return sum((max(c * a, c * b) for c, a, b in zip(form, low, high, strict=True)), Fraction(0))


def lines_of(least: Fraction, most: Fraction) -> Line:
    if most <= 0:
        return Fraction(0), Fraction(0), Fraction(0)
    if least >= 0:
        return Fraction(1), Fraction(1), Fraction(0)
    width = most - least
    chord = Fraction(math.ceil(most / width * ONE), ONE)
    slope = Fraction(1, 2) + Fraction(math.floor(4 * (most + least) / width * ONE), ONE)
    return min(max(slope, Fraction(0)), Fraction(1)), chord, -chord * least


@dataclass
class _Layer:
    weight: Rows  # over the previous layer of the chain
    skip: Rows  # over y
    bias: list[Fraction]
    lines: list[Line] = field(default_factory=list)


class _Chain:
    """The hidden layers of one chain over one box."""

    def __init__(self, layers: list[_Layer], low: list[Fraction], high: list[Fraction]) -> None:
        self.layers = layers
        self.box = (low, high)

    def substituted(
        self, form: list[Fraction], k: int, pulls: dict[tuple[int, int], Fraction]
    ) -> tuple[list[Fraction], Fraction]:
        """A form over the outputs of layer k as one over y that is nowhere smaller."""
        over_y = [Fraction(0)] * len(self.box[0])
        constant = Fraction(0)
        for j in range(k, -1, -1):
            layer = self.layers[j]
            sloped = []
            for unit, c in enumerate(form):
                lower, upper, lift = layer.lines[unit]
                sloped.append(c * (upper if c > 0 else lower) + pulls.get((j, unit), Fraction(0)))
                constant += c * lift if c > 0 else 0
            constant += dot(sloped, layer.bias)
            over_y = [
                old + dot(sloped, [line[i] for line in layer.skip]) for i, old in enumerate(over_y)
            ]
            width = len(layer.weight[0])
            form = [dot(sloped, [line[i] for line in layer.weight]) for i in range(width)]
        return [a + b for a, b in zip(over_y, form, strict=True)] if k >= 0 else form, constant

    def relax(self, signs: dict[tuple[int, int], bool]) -> None:
        """Find the lines of every layer."""
        low, high = self.box
        least, most = low, high
        for k, layer in enumerate(self.layers):
            ends = []
            for unit, weight in enumerate(layer.weight):
                skip, bias = layer.skip[unit], layer.bias[unit]
                bottom = bias - highest([-w for w in weight], least, most)
                bottom -= highest([-w for w in skip], low, high)
                top = bias + highest(weight, least, most) + highest(skip, low, high)
                affine = k == 0 or not any(weight)
                if not affine:
                    above, lift = self.substituted(weight, k - 1, {})
                    below, drop = self.substituted([-w for w in weight], k - 1, {})
                    above = [a + b for a, b in zip(above, skip, strict=True)]
                    below = [a - b for a, b in zip(below, skip, strict=True)]
                    top = bias + highest(above, low, high) + lift
                    bottom = bias - highest(below, low, high) - drop
                if (k, unit) in signs:
                    active = signs[k, unit]
                    bottom = relu(bottom) if active else min(bottom, Fraction(-1))
                    top = relu(top) if active else min(top, Fraction(0))
                ends.append((bottom, top))
            layer.lines = [lines_of(*pair) for pair in ends]
            least = [relu(bottom) for bottom, _ in ends]
            most = [relu(top) for _, top in ends]


def upper_bound(
    row: PlainRow, low: list[Fraction], high: list[Fraction], leaf: Leaf | None = None
) -> Fraction:
    """The bound of Q·g on a leaf."""
    leaf = leaf or Leaf()
    n = len(low)
    scale, *betas = leaf.weights
    form = [scale * c for c in row.form]
    constant = scale * row.constant
    finals = [list(final) for final in row.finals]
    for k, theta in leaf.theta.items():
        finals[1] = [b + row.finals[0][k] * t for b, t in zip(finals[1], theta, strict=True)]
    for number, (hidden, final) in enumerate(zip(row.chains, finals, strict=True)):
        layers = [
            _Layer([list(w) for w in weight], [[Fraction(0)] * n for _ in weight], list(bias))
            for weight, bias in hidden
        ]
        if number == 0 and leaf.theta:
            _couple(layers[-1], row.chains[1][0], leaf.theta, first=len(layers) == 1)
        chain = _Chain(layers, low, high)
        chain.relax({(k, u): s for (c, k, u), s in leaf.signs.items() if c == number})
        if leaf.slopes is not None:
            _choose(layers[0], leaf.slopes[number])
        pulls: dict[tuple[int, int], Fraction] = {}
        for (c, k, u), beta in zip(leaf.signs, betas, strict=True):
            if c == number:
                pulls[k, u] = Fraction(beta if leaf.signs[c, k, u] else -beta)
        part, more = chain.substituted([scale * c for c in final], len(layers) - 1, pulls)
        form = [a + b for a, b in zip(form, part, strict=True)]
        constant += more
    return constant + highest(form, low, high)


def _choose(layer: _Layer, slopes: list[int]) -> None:
    for unit, (slope, (_, upper, lift)) in enumerate(zip(slopes, layer.lines, strict=True)):
        if lift:
            layer.lines[unit] = (Fraction((slope << 60) // 255, ONE), upper, lift)


def _couple(
    last: _Layer,
    other: tuple[Rows, list[Fraction]],
    theta: dict[int, list[Fraction]],
    *,
    first: bool,
) -> None:
    """Unit k reads a_k − θ·b, b = R·y + r."""
    weight, bias = other
    for k, pulls in theta.items():
        n = len(weight[0])
        moved = [-dot(pulls, [line[i] for line in weight]) for i in range(n)]
        target = last.weight if first else last.skip
        target[k] = [a + b for a, b in zip(target[k], moved, strict=True)]
        last.bias[k] -= dot(pulls, bias)
