"""A stored proof tree: its arrays, read with limits, and its leaves, level by level.

The cover needs no check of its own: a cut inside the node's box gives two boxes whose union is the
node, so the leaves of a complete tree cover its root."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.certificate.dyadic import Floats
from graphkeel.certificate.encoding import decode_bytes
from graphkeel.core.errors import CertificateError

HOLE, DEFAULT, STORED, CELLS = -1, -2, -3, -4
MAX_NODES = 2**27
BATCH = 4096  # leaves that are worth a call


class Refused(Exception):
    """A proof that was read and does not prove; the message is the reason."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaf boxes of one kind."""

    kind: int
    lower: Floats
    upper: Floats
    slopes: Floats | None = None  # (leaves, units of the first hidden layers)
    lenses: Floats | None = (
        None  # (leaves, K, K): row k is the θ of unit k, zero where it has no lens
    )
    cells: list[Any] | None = None  # the steps of each leaf, as they were stored

    def only(self, leaf: int) -> Leaves:
        return self._chosen(np.array([leaf]), self.lower, self.upper)

    def halved(self, chosen: NDArray[np.bool_]) -> Leaves:
        """The chosen boxes, each cut in the middle of its longest side."""
        lower, upper = self.lower[chosen], self.upper[chosen]
        rows, axes = np.arange(lower.shape[0]), np.argmax(upper - lower, axis=1)
        below, above = upper.copy(), lower.copy()
        below[rows, axes] = above[rows, axes] = (lower[rows, axes] + upper[rows, axes]) / 2
        twice = np.concatenate([np.flatnonzero(chosen)] * 2)
        return self._chosen(
            twice, np.concatenate([lower, above]), np.concatenate([below, upper]), picked=True
        )

    def _chosen(
        self, rows: NDArray[np.int64], lower: Floats, upper: Floats, *, picked: bool = False
    ) -> Leaves:
        slopes, lenses = (
            None if array is None else array[rows] for array in (self.slopes, self.lenses)
        )
        return Leaves(
            self.kind,
            lower if picked else lower[rows],
            upper if picked else upper[rows],
            slopes,
            lenses,
        )


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree of boxes in preorder."""

    lower: Floats
    upper: Floats
    axis: NDArray[np.int8]
    cut: Floats
    slopes: NDArray[np.uint8]
    lenses: Floats  # (lenses + 1, K, K); number 0 is no lens, all zero
    cells: list[Any]

    @staticmethod
    def from_json(content: dict[str, Any], n: int, width: int, lens_width: int, where: str) -> Tree:
        lower, upper = (
            _box_end(content.get(key), n, f"{where}.{key}") for key in ("lower", "upper")
        )
        axis = _array(content.get("axis"), "<i1", 1, f"{where}.axis").astype(np.int8)
        cut = _array(content.get("cut"), "<f8", 1, f"{where}.cut").astype(np.float64)
        slopes = _array(content.get("slopes"), "|u1", 2, f"{where}.slopes")
        if ((axis < CELLS) | (axis >= n)).any():
            raise Refused(f"{where} has an axis that does not exist")
        if cut.shape[0] != int((axis >= 0).sum()) or slopes.shape[0] != int((axis == STORED).sum()):
            raise Refused(f"{where}: the numbers of nodes, cuts and slopes do not fit together")
        if slopes.shape[0] and slopes.shape[1] != width + lens_width:
            raise Refused(
                f"{where}: a leaf needs {width + lens_width} slopes and lenses, got {slopes.shape[1]}"
            )
        lenses = _lenses(content.get("lenses"), lens_width, where)
        if slopes.size and int(slopes[:, width:].max(initial=0)) >= lenses.shape[0]:
            raise Refused(f"{where}: a leaf names a lens that does not exist")
        return Tree(
            lower, upper, axis, cut, slopes, lenses, _cells(content.get("cells", []), axis, where)
        )

    def leaves(self, where: str) -> Iterator[Leaves]:
        """All leaves in batches of one kind; refuses an incomplete tree, and one with a cut outside
        its box."""
        waiting: dict[tuple[int, bool], list[Leaves]] = {}
        counts: dict[tuple[int, bool], int] = {}
        for level in self._levels(where):
            key = (level.kind, level.lenses is None)
            group = waiting.setdefault(key, [])
            group.append(level)
            counts[key] = counts.get(key, 0) + level.lower.shape[0]
            if counts[key] >= BATCH:
                yield _joined(group)
                group.clear()
                counts[key] = 0
        yield from (_joined(group) for group in waiting.values() if group)

    def _levels(self, where: str) -> Iterator[Leaves]:
        """The leaves level by level; deep trees have many levels with few leaves each."""
        upper_child = self._upper_children(where)
        cut_of = np.cumsum(self.axis >= 0) - 1
        slopes_of = np.cumsum(self.axis == STORED) - 1
        cells_of = np.cumsum(self.axis == CELLS) - 1
        nodes, lower, upper = np.zeros(1, dtype=np.int64), self.lower[None], self.upper[None]
        while nodes.size:
            axes = self.axis[nodes]
            for kind in (HOLE, DEFAULT, STORED):
                chosen = axes == kind
                if chosen.any():
                    stored = self.slopes[slopes_of[nodes[chosen]]] if kind == STORED else None
                    yield self._leaves(kind, lower[chosen], upper[chosen], stored)
            if (chosen := axes == CELLS).any():
                steps = [self.cells[i] for i in cells_of[nodes[chosen]]]
                yield Leaves(CELLS, lower[chosen], upper[chosen], cells=steps)
            inner = axes >= 0
            nodes, lower, upper, axes = (
                nodes[inner],
                lower[inner],
                upper[inner],
                axes[inner].astype(np.int64),
            )
            cuts, rows = self.cut[cut_of[nodes]], np.arange(nodes.size)
            if not ((lower[rows, axes] <= cuts) & (cuts <= upper[rows, axes])).all():
                raise Refused(
                    f"{where}: a cut lies outside its box, so the leaves do not cover the domain"
                )
            below, above = upper.copy(), lower.copy()
            below[rows, axes], above[rows, axes] = cuts, cuts
            nodes = np.concatenate([nodes + 1, upper_child[nodes]])
            lower, upper = np.concatenate([lower, above]), np.concatenate([below, upper])

    def _leaves(
        self, kind: int, lower: Floats, upper: Floats, stored: NDArray[np.uint8] | None
    ) -> Leaves:
        if stored is None:
            return Leaves(kind, lower, upper)
        units = self.lenses.shape[1]
        slopes, numbers = (
            stored[:, : stored.shape[1] - units] / 255.0,
            stored[:, stored.shape[1] - units :],
        )
        if not numbers.any():
            return Leaves(kind, lower, upper, slopes)
        return Leaves(
            kind, lower, upper, slopes, self.lenses[numbers.astype(np.int64), np.arange(units)]
        )

    def _upper_children(self, where: str) -> NDArray[np.int64]:
        """In preorder the node after a leaf is the upper child of the innermost node that still
        waits for one."""
        count = self.axis.shape[0]
        children = [0] * count
        waiting: list[int] = []
        for node, axis in enumerate(self.axis.tolist()):
            if axis >= 0:
                waiting.append(node)
            elif waiting:
                children[waiting.pop()] = node + 1
            elif node + 1 != count:
                raise Refused(f"{where}: the tree ends before its arrays do")
        if waiting or not count or max(children) >= count:
            raise Refused(f"{where}: the tree is not complete")
        return np.array(children, dtype=np.int64)


def _joined(parts: list[Leaves]) -> Leaves:
    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    cells = (
        None if parts[0].cells is None else [steps for part in parts for steps in part.cells or []]
    )
    lower, upper, slopes, lenses = (joined(name) for name in ("lower", "upper", "slopes", "lenses"))
    return Leaves(parts[0].kind, lower, upper, slopes, lenses, cells)


def _lenses(value: Any, units: int, where: str) -> Floats:
    """The lenses of a tree, with the lens that is none put first."""
    array = _array(value, "<f8", 3, f"{where}.lenses")
    if array.shape[0] == 0:
        return np.zeros((1, units, units))
    if array.shape[1:] != (units, units) or (array < 0).any() or array.shape[0] > 255:
        raise Refused(f"{where}: lenses must be {units} × {units} and not negative")
    return np.concatenate([np.zeros((1, units, units)), array])


def _cells(value: Any, axis: NDArray[np.int8], where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != int((axis == CELLS).sum()):
        raise Refused(
            f"{where}: the numbers of cell leaves and of their proofs do not fit together"
        )
    return value


def _box_end(value: Any, n: int, where: str) -> Floats:
    if (
        not isinstance(value, list)
        or len(value) != n
        or not all(type(v) in (int, float) for v in value)
    ):
        raise CertificateError(f"{where} must be a list of {n} numbers", got=repr(value)[:80])
    array = np.array([float(v) if abs(v) < 1e300 else math.inf for v in value], dtype=np.float64)
    if not np.isfinite(array).all():
        raise CertificateError(f"{where} must be finite", got=repr(value)[:80])
    return array


def _array(value: Any, dtype: str, ndim: int, where: str) -> NDArray[Any]:
    spellings = (
        dtype,
        dtype.replace("<i1", "|i1"),
    )  # numpy's own name of a one-byte integer has no byte order
    if (
        not isinstance(value, dict)
        or set(value) != {"dtype", "shape", "data"}
        or value["dtype"] not in spellings
    ):
        raise CertificateError(f"{where} is not a packed array of {dtype}", got=repr(value)[:80])
    shape = value["shape"]
    if (
        not isinstance(shape, list)
        or len(shape) != ndim
        or not all(type(k) is int and k >= 0 for k in shape)
    ):
        raise CertificateError(f"{where} must have {ndim} dimension(s)", got=repr(shape)[:80])
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > 8 * MAX_NODES:
        raise CertificateError(f"{where} is too large", got=f"{size} bytes")
    raw = _unpacked(decode_bytes(value["data"], where), size, where)
    array = np.frombuffer(raw, dtype=dtype).reshape(shape)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise CertificateError(f"{where} must be finite", got="NaN or infinity")
    return array


def _unpacked(packed: bytes, size: int, where: str) -> bytes:
    """Unpack at most the announced size, so that a small file cannot fill the memory."""
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise CertificateError(f"{where} cannot be unpacked", got=str(error)) from error
    if len(raw) != size or not unpacker.eof or unpacker.unused_data:
        raise CertificateError(
            f"{where} has another size than its shape says", got=f"{len(raw)} bytes"
        )
    return raw
