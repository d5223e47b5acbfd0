"""Networks as a graph of blocks, and their exact values.

Block k reads the input (number 0) and earlier blocks and is

    x_k = Σ_j W_kj·x_j + b_k,  with a ReLU after it, squared, or as it is.

No two affine maps are multiplied out: every number is one that was read, so the graph is the
network of the file, over the rational numbers that its floats are. The last block is the output."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.problem import Array, Network
from graphkeel.verify.rational import rational, rationals


@dataclass(frozen=True, eq=False)
class Block:
    """One affine map of earlier values, with a ReLU after it, squared or neither, and how far its
    numbers may be off."""

    terms: tuple[tuple[int, Array], ...]  # (number of an earlier value, (width, its width))
    bias: Array  # (width,)
    relu: bool
    weight_errors: tuple[Array | None, ...] = ()  # one a term, entry by entry; none: exact
    bias_error: Array = field(default_factory=lambda: np.zeros(1))  # (width,)
    square: bool = False  # every entry times itself

    def __post_init__(self) -> None:
        errors = self.weight_errors or (None,) * len(self.terms)
        object.__setattr__(self, "weight_errors", errors)
        object.__setattr__(self, "bias_error", np.broadcast_to(self.bias_error, self.bias.shape))

    @property
    def width(self) -> int:
        return int(self.bias.shape[0])


class Cell(NamedTuple):
    """rows·x ≤ ends, where the outputs are forms·x + constants."""

    rows: Array
    ends: Array
    forms: Array
    constants: Array


@dataclass(frozen=True, eq=False)
class BlockNetwork:
    """A network whose last block is its output."""

    inputs: int
    blocks: tuple[Block, ...]  # block k has the number k + 1; 0 is the input

    @property
    def outputs(self) -> int:
        return self.blocks[-1].width

    @property
    def unit_blocks(self) -> list[int]:
        """The values that are units, which linear bounds have to enclose: ReLUs and squares."""
        return [k for k, block in enumerate(self.blocks, 1) if block.relu or block.square]

    def width(self, number: int) -> int:
        """The width of a value."""
        return self.inputs if number == 0 else self.blocks[number - 1].width

    def forward(self, points: Array) -> list[Array]:
        """All values in float64: the input and every block, shape (count, width) each."""
        values = [points]
        for block in self.blocks:
            total = _affine(block, values)
            # in place: the first touch of a page is slow
            if block.relu:
                np.maximum(total, 0.0, out=total)
            elif block.square:
                np.multiply(total, total, out=total)
            values.append(total)
        return values

    def outputs_at(self, points: Array) -> Array:
        """The outputs in float64."""
        return self.forward(points)[-1]

    def gradients(self, values: list[Array], picked: NDArray[np.int64]) -> Array:
        """The gradient of one output at each point, shape (count, inputs)."""
        back: list[Array | None] = [None] * len(values)
        last = np.zeros_like(values[-1])
        last[np.arange(len(last)), picked] = 1.0
        back[-1] = last
        for number in range(len(self.blocks), 0, -1):
            own, back[number] = back[number], None
            if own is None:
                continue
            block = self.blocks[number - 1]
            if block.relu:
                own *= values[number] > 0.0
            elif block.square:
                own *= 2.0 * _affine(block, values)
            for source, weight in block.terms:
                part, old = own @ weight, back[source]
                back[source] = part if old is None else np.add(old, part, out=old)
        return np.zeros_like(values[0]) if back[0] is None else back[0]

    def cell(self, point: Array) -> Cell:
        """The activation cell around a point, shape (inputs,), and the outputs in it; squares are
        taken for their tangents there."""
        n = self.inputs
        maps = [(np.eye(n), np.zeros(n))]
        rows: list[Array] = [np.zeros((0, n))]
        ends: list[Array] = [np.zeros(0)]
        for block in self.blocks:
            weight = sum((w @ maps[source][0] for source, w in block.terms), np.zeros((1, n)))
            offset = sum((w @ maps[source][1] for source, w in block.terms), block.bias)
            if block.relu:
                on = weight @ point + offset >= 0.0
                sign = np.where(on, -1.0, 1.0)
                rows.append(sign[:, None] * weight)
                ends.append(-sign * offset)
                weight, offset = weight * on[:, None], offset * on
            elif block.square:
                here = weight @ point + offset
                weight, offset = 2.0 * here[:, None] * weight, here * (2.0 * offset - here)
            maps.append((np.broadcast_to(weight, (block.width, n)), offset))
        return Cell(np.vstack(rows), np.concatenate(ends), *maps[-1])

    def exact_outputs(self, point: list[Fraction]) -> list[Fraction]:
        """The outputs at one point, without rounding."""
        values = [point]
        for block in self.blocks:
            row = rationals(block.bias)
            for number, weight in block.terms:
                source = values[number]
                for i, j in zip(*np.nonzero(weight), strict=True):
                    row[i] += rational(weight[i, j]) * source[j]
            if block.relu:
                row = [max(v, Fraction(0)) for v in row]
            values.append([v * v for v in row] if block.square else row)
        return values[-1]


def _affine(block: Block, values: list[Array]) -> Array:
    """A block before its ReLU or square, shape (count, width)."""
    parts = [values[number] @ weight.T for number, weight in block.terms]
    total = parts[0] if parts else np.zeros((values[0].shape[0], block.width))
    for part in (*parts[1:], block.bias):
        total += part
    return total


def pruned(inputs: int, blocks: list[Block], output: int) -> BlockNetwork:
    """The blocks that the output depends on, renumbered; the output last."""
    needed = {output}
    for number in range(output, 0, -1):
        if number in needed:
            needed |= {source for source, _ in blocks[number - 1].terms}
    order = sorted(needed - {0})
    place = {0: 0} | {number: k + 1 for k, number in enumerate(order)}
    kept = []
    for number in order:
        block = blocks[number - 1]
        terms = tuple((place[source], weight) for source, weight in block.terms)
        kept.append(Block(terms, block.bias, block.relu, square=block.square))
    return BlockNetwork(inputs, tuple(kept))


def append_network(blocks: list[Block], network: Network, source: int) -> int:
    """Add a network that reads one value; the number of its output."""
    for layer in network.layers:
        blocks.append(Block(((source, layer.weight),), layer.bias, relu=True))
        source = len(blocks)
    blocks[-1] = Block(blocks[-1].terms, blocks[-1].bias, relu=False)
    return source
