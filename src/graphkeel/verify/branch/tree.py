"""A proof tree in pieces: written by many workers, joined in preorder (docs/proof-format.md)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.branch.cells import Step
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import Json, tree_entry
from graphkeel.verify.query import Row


@dataclass(eq=False)
class Piece:
    """A stretch of the preorder, followed by the pieces of the boxes that were still open when it
    ended."""

    axis: NDArray[np.int8]
    cut: Array
    slopes: NDArray[np.uint8]
    rest: list[Piece | None] = field(default_factory=list)  # None until that box is finished
    cells: list[list[Step]] = field(default_factory=list)  # one entry per leaf proved by its cells

    def entry(self, row: Row, couplings: list[Array]) -> Json:
        """The tree of a proof, for a piece with nothing open.

        Args:
            row: the row that it proves.
            couplings: those that its leaves refer to by number.
        """
        return tree_entry(row, self.axis, self.cut, self.slopes, couplings, self.cells)


def join(piece: Piece) -> Piece:
    """All pieces below this one as a single stretch (without recursion: trees are deep).

    Args:
        piece: the first piece.
    """
    axis, cut, slopes = [], [], []
    cells: list[list[Step]] = []
    stack: list[Piece] = [piece]
    while stack:
        part = stack.pop()
        axis.append(part.axis)
        cut.append(part.cut)
        slopes.append(part.slopes)
        cells += part.cells
        stack.extend(child for child in reversed(part.rest) if child is not None)
    return Piece(np.concatenate(axis), np.concatenate(cut), np.concatenate(slopes), cells=cells)
