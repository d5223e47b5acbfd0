"""A proof tree in pieces: written by many workers, joined in preorder (docs/formats.md).

A search writes leaves that a proof does not know: boxes that their cells prove, which stand for a
subtree of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.cells import CellTree
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import Json, tree_entry
from graphkeel.verify.query import Row

CELLS = -4  # a node that stands for the subtree of its cells


class Lines(NamedTuple):
    """The tables of a tree: a line of `weights` for every bounded leaf, and one of `slopes` for
    those with stored slopes."""

    weights: NDArray[np.int32]
    slopes: NDArray[np.uint8]


@dataclass(eq=False)
class Piece:
    """A stretch of the preorder, followed by the pieces of the boxes that were still open when it
    ended."""

    axis: NDArray[np.int16]
    cut: Array
    lines: Lines
    children: list[Piece | None] = field(default_factory=list)  # None until that box is finished
    cells: list[CellTree] = field(default_factory=list)  # one per box that its cells prove

    def entry(self, row: Row, couplings: list[Array]) -> Json:
        """The tree of a row's proof, for a piece with nothing open."""
        nodes: list[int] = []
        multipliers: list[list[int]] = []
        cells = iter(self.cells)
        for node in self.axis.tolist():
            if node != CELLS:
                nodes.append(node)
                continue
            tree = next(cells)
            nodes += tree.nodes
            # a box that is one cell is a plain leaf
            multipliers += [line for line in tree.multipliers if len(line) > 1]
        return tree_entry(row, nodes, self.cut, self.lines.slopes, couplings, multipliers)


def empty_piece(columns: tuple[int, int], children: int) -> Piece:
    """A piece without nodes, and room for its children."""
    lines = Lines(np.zeros((0, columns[0]), np.int32), np.zeros((0, columns[1]), np.uint8))
    return Piece(np.zeros(0, np.int16), np.zeros(0), lines, [None] * children)


def join(piece: Piece) -> Piece:
    """All pieces below this one as a single stretch (without recursion: trees are deep)."""
    parts: list[Piece] = []
    stack: list[Piece] = [piece]
    while stack:
        part = stack.pop()
        parts.append(part)
        stack.extend(child for child in reversed(part.children) if child is not None)
    lines = Lines(
        *(np.concatenate(tables) for tables in zip(*(p.lines for p in parts), strict=True))
    )
    axis = np.concatenate([part.axis for part in parts])
    cut = np.concatenate([part.cut for part in parts])
    return Piece(axis, cut, lines, cells=[leaf for part in parts for leaf in part.cells])
