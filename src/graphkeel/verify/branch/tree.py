"""A proof tree in pieces: written by many workers, joined in preorder, encoded for JSON
(docs/proof-format.md)."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.branch.cells import Step
from graphkeel.verify.problem import Array
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


def join(piece: Piece) -> Piece:
    """All pieces below this one as a single stretch (without recursion: trees are deep)."""
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


def encode(array: NDArray[Any]) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = base64.b64encode(zlib.compress(little.tobytes(), 6)).decode("ascii")
    return {"dtype": little.dtype.str, "shape": list(little.shape), "data": data}


def decode(entry: dict[str, Any]) -> NDArray[Any]:
    raw = zlib.decompress(base64.b64decode(entry["data"]))
    return np.frombuffer(raw, dtype=np.dtype(entry["dtype"])).reshape(entry["shape"])


def tree_entry(row: Row, piece: Piece, lenses: list[Array]) -> dict[str, Any]:
    """One tree of a proof."""
    stacked = np.stack(lenses) if lenses else np.zeros((0, 0, 0))
    entry = {
        "row": row.name,
        "lower": [float(x) for x in row.lower],
        "upper": [float(x) for x in row.upper],
        "axis": encode(piece.axis),
        "cut": encode(piece.cut),
        "slopes": encode(piece.slopes),
        "lenses": encode(stacked),
    }
    return entry | {"cells": piece.cells} if piece.cells else entry
