"""A proof tree in pieces: written by many workers, joined in preorder (docs/formats.md)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.branch.cells import CellTree
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import Json, tree_entry
from graphkeel.verify.query import Row

CELLS = -4  # a node that stands for the subtree of its cells


@dataclass(eq=False)
class Piece:
    """A stretch of the preorder, followed by the pieces of the boxes that were still open when it
    ended."""

    axis: NDArray[np.int8]
    cut: Array
    slopes: NDArray[np.uint8]
    children: list[Piece | None] = field(default_factory=list)  # None until that box is finished
    cells: list[CellTree] = field(default_factory=list)  # one per box that its cells prove

    def entry(self, row: Row, couplings: list[Array]) -> Json:
        """The tree of a proof, for a piece with nothing open."""
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
        return tree_entry(row, nodes, self.cut, self.slopes, couplings, multipliers)


def join(piece: Piece) -> Piece:
    """All pieces below this one as a single stretch (without recursion: trees are deep)."""
    axis, cut, slopes = [], [], []
    cells: list[CellTree] = []
    stack: list[Piece] = [piece]
    while stack:
        part = stack.pop()
        axis.append(part.axis)
        cut.append(part.cut)
        slopes.append(part.slopes)
        cells += part.cells
        stack.extend(child for child in reversed(part.children) if child is not None)
    return Piece(np.concatenate(axis), np.concatenate(cut), np.concatenate(slopes), cells=cells)
