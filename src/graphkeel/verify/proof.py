"""The JSON of a proof: arrays as base64, trees, the head (docs/formats.md)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.problem import Array
from graphkeel.verify.query import Row

VERSION = 4
HOLE, RELAXED, SLOPED, LEVEL = -1, -2, -3, -4  # leaves of a tree
SLOPE_STEPS = 255.0  # stored slopes are multiples of 1/255

Json = dict[str, Any]


def encode(array: NDArray[Any]) -> Json:
    """An array as base64 of its little-endian bytes in C order: exact, whatever the machine."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    text = base64.b64encode(little.tobytes()).decode("ascii")
    return {"dtype": little.dtype.str, "shape": list(little.shape), "base64": text}


def head(kind: str, condition: str) -> Json:
    """The keys that every proof begins with."""
    return {"version": VERSION, "kind": kind, "condition": condition}


def multipliers_entry(rows: list[Row]) -> Json:
    """The multipliers that were folded into rows, one line a row, or nothing."""
    folded = [row.multipliers for row in rows if row.multipliers is not None]
    return {"multipliers": encode(np.stack(folded))} if folded else {}


def empty_tree(row: Row) -> Json:
    """The tree of a row whose box is empty."""
    return {"row": row.name, "empty": True}


def tree_entry(
    row: Row,
    axis: Sequence[int],
    cut: Array,
    slopes: NDArray[np.uint8],
    couplings: list[Array],
    multipliers: list[list[int]],
    supports: tuple[Array, NDArray[np.int32]] | None = None,
) -> Json:
    """One tree of a proof."""
    entry: Json = {
        "row": row.name,
        "lower": [float(x) for x in row.lower],
        "upper": [float(x) for x in row.upper],
        "axis": encode(np.array(axis, dtype=np.int8 if max(axis, default=0) < 128 else np.int16)),
        "cut": encode(cut),
        "slopes": encode(slopes),
        "couplings": encode(np.stack(couplings) if couplings else np.zeros((0, 0, 0))),
    }
    if multipliers:
        entry["multipliers"] = multipliers
    if supports is not None:
        entry["supports"] = encode(supports[0])
        entry["supported"] = encode(supports[1])
    return entry


def one_leaf_tree(row: Row) -> Json:
    """The tree of a row that default slopes prove on its whole box."""
    slopes = np.zeros((0, slope_columns(row)), np.uint8)
    return tree_entry(row, [RELAXED], np.zeros(0), slopes, [], [])


def unit_numbers(row: Row) -> tuple[list[int], list[int]]:
    """The numbers of the first units of every hidden layer, for chain A and chain B.

    Units are numbered by stage: both chains are aligned at their ends, and a stage has the units of
    chain A before those of chain B."""
    numbers: tuple[list[int], list[int]] = ([], [])
    depth = max(map(len, row.hidden))
    count = 0
    for stage in range(depth):
        for layers, firsts in zip(row.hidden, numbers, strict=True):
            at = stage - depth + len(layers)
            if at >= 0:
                firsts.append(count)
                count += layers[at].n_out
    return numbers


def slope_columns(row: Row) -> int:
    """How many numbers a leaf with stored slopes has: first layers' units, then coupled units."""
    couples = row.name == "decrease" and len(row.hidden[1]) == 1
    return sum(row.first_widths) + (row.first_widths[1] if couples else 0)
