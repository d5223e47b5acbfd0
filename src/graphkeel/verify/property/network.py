"""ReLU networks as a graph of blocks, and their exact values.

Block k reads the input (number 0) and earlier blocks and is

    x_k = Σ_j W_kj·x_j + b_k,  with a ReLU after it or without.

No two affine maps are multiplied out: every number is one that was read, so the graph is the
network of the file, over the rational numbers that its floats are. The last block is the output."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphkeel.verify.problem import Array
from graphkeel.verify.rational import rational, rationals


@dataclass(frozen=True, eq=False)
class Block:
    """One affine map of earlier values, with a ReLU or without."""

    terms: tuple[tuple[int, Array], ...]  # (number of an earlier value, (width, its width))
    bias: Array  # (width,)
    relu: bool

    @property
    def width(self) -> int:
        return int(self.bias.shape[0])


@dataclass(frozen=True, eq=False)
class BlockNetwork:
    """A network whose last block is its output."""

    inputs: int
    blocks: tuple[Block, ...]  # block k has the number k + 1; 0 is the input

    @property
    def outputs(self) -> int:
        return self.blocks[-1].width

    @property
    def relus(self) -> int:
        """The number of units with a ReLU."""
        return sum(block.width for block in self.blocks if block.relu)

    def width(self, number: int) -> int:
        """The width of a value."""
        return self.inputs if number == 0 else self.blocks[number - 1].width

    def forward(self, points: Array) -> list[Array]:
        """All values in float64, the pre-activations of ReLU blocks among them.

        Args:
            points: inputs, shape (count, inputs).

        Returns:
            For the input and every block, its affine part, shape (count, width).
        """
        values = [points]
        sums = [points]
        for block in self.blocks:
            total = np.broadcast_to(block.bias, (points.shape[0], block.width)).copy()
            for number, weight in block.terms:
                total += values[number] @ weight.T
            sums.append(total)
            values.append(np.maximum(total, 0.0) if block.relu else total)
        return sums

    def outputs_at(self, points: Array) -> Array:
        """The outputs in float64.

        Args:
            points: inputs, shape (count, inputs).
        """
        last = self.forward(points)[-1]
        return np.maximum(last, 0.0) if self.blocks[-1].relu else last

    def exact_outputs(self, point: list[Fraction]) -> list[Fraction]:
        """The outputs at one point, without rounding."""
        values = [point]
        for block in self.blocks:
            row = rationals(block.bias)
            for number, weight in block.terms:
                source = values[number]
                for i, j in zip(*np.nonzero(weight), strict=True):
                    row[i] += rational(weight[i, j]) * source[j]
            values.append([max(v, Fraction(0)) for v in row] if block.relu else row)
        return values[-1]


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
        kept.append(Block(terms, block.bias, block.relu))
    return BlockNetwork(inputs, tuple(kept))
