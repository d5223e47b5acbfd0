"""Parts of the compiled kernels: their cache, their output, cuts and leaves (numba).

Kernels are cached on disk as a whole. Numba watches only the file of the function that it caches,
so a digest of every file that the kernel is made of is captured by it and becomes part of its cache
key. In every kernel `lo` and `hi`, shape (n,), are the ends of a box.

Kernels of boxes allocate nothing and are compiled without reference counts: a call with a tuple of
forty arrays counted each of them, which was half of the time on narrow networks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from graphkeel.core.digests import sha256_of
from graphkeel.core.files import user_cache
from graphkeel.verify import relaxation
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import RELAXED, SLOPE_STEPS, SLOPED
from graphkeel.verify.relaxation import relu_lines, square_lines

_Function = TypeVar("_Function", bound=Callable[..., Any])

# "contract" lets the compiler fuse a product and a sum, which only removes a rounding
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
# for functions that allocate nothing and keep no array: callers hold all that they are given
PLAIN: dict[str, Any] = OPTIONS | {"_nrt": False}

FINISHED, FULL, CANDIDATE, STUCK, FEW = 0, 1, 2, 3, 4  # why a run of a kernel ended
OPEN, NODES, CUTS, LEAVES, SLOPES = range(5)  # entries of a run's `counts`
CLIPPED = -5  # a leaf that the bounds of the box around it close; never in a proof

lines = njit(**PLAIN)(relu_lines)
lines_of_square = njit(**PLAIN)(square_lines)


class Output(NamedTuple):
    """The output of a run: the tree in preorder, and a point that may be a counterexample."""

    axis: NDArray[np.int16]
    cut: Array
    weights: NDArray[np.int32]  # (leaves, inequalities)
    slopes: NDArray[np.uint8]  # (leaves with stored slopes, units)
    counts: NDArray[np.int64]
    point: Array
    value: Array  # (1,): how much of a violation it is, the largest so far


class Stack(NamedTuple):
    """Open boxes, `counts[OPEN]` of them, the next one last."""

    boxes: Array  # (most, 2, n)
    clipped: NDArray[np.bool_]  # (most,): those that are leaves already
    waited: NDArray[np.int64]  # (most,): cuts since few units were left; < 0: its cells failed


def source_digest(*modules: ModuleType) -> str:
    """A digest of the kernel's own modules and of those that all kernels use."""
    everything = (relaxation, sys.modules[__name__], *modules)
    return sha256_of(Path(str(module.__file__)).read_bytes() for module in everything)


def compile_cached(function: _Function, options: dict[str, Any] = OPTIONS) -> _Function:
    """Compile a kernel, cached in the user's folder; `NUMBA_CACHE_DIR` names another one."""
    settings: Any = config
    theirs = settings.CACHE_DIR
    settings.CACHE_DIR = theirs or str(user_cache() / "kernels")
    try:
        compiled: _Function = njit(cache=True, **options)(function)
    except (RuntimeError, OSError):  # no writable folder: compile in every process
        compiled = njit(**options)(function)
    finally:
        settings.CACHE_DIR = theirs  # that of other packages stays what it was
    return compiled


@njit(**PLAIN)
def rounded_slope(slope: float) -> float:
    """The nearest slope that can be stored, so that the proof has the slope that was used."""
    return float(np.floor(slope * SLOPE_STEPS + 0.5) / SLOPE_STEPS)


@njit(**PLAIN)
def stored_slope(slope: float) -> np.uint8:
    """A rounded slope as the proof has it."""
    return np.uint8(slope * SLOPE_STEPS + 0.5)


@njit(**PLAIN)
def relaxation_gap(coefficient: float, low: float, high: float, lift: float, slope: float) -> float:
    """The most that relaxing a unit with bounds [low, high] can cost a row's upper bound."""
    if coefficient == 0.0 or high <= 0.0 or low >= 0.0:
        return 0.0
    if coefficient > 0.0:
        return coefficient * lift
    return -coefficient * max(-slope * low, (1.0 - slope) * high)


@njit(**PLAIN)
def square_gap(coefficient: float, low: float, high: float, place: float) -> float:
    """`relaxation_gap` of a square whose tangent is at a place of [low, high]."""
    width = high - low
    if coefficient > 0.0:
        return 0.25 * coefficient * width * width
    return -coefficient * (max(place, 1.0 - place) * width) ** 2


@njit(**PLAIN)
def best_cut(score: Array, lo: Array, hi: Array, narrowest: Array) -> tuple[int, float]:
    """The middle of the axis with the highest score, or (-1, 0) where none is wide enough."""
    axis, best = -1, -1.0
    for d in range(lo.shape[0]):
        if hi[d] - lo[d] > narrowest[d] and score[d] > best:
            axis, best = d, score[d]
    if axis < 0:
        return -1, 0.0
    cut = 0.5 * (lo[axis] + hi[axis])
    return (axis, cut) if lo[axis] < cut < hi[axis] else (-1, 0.0)


@njit(**PLAIN)
def clip(form: Array, constant: float, lo: Array, hi: Array) -> bool:
    """Shrink a box to where form·x + constant ≥ 0 can hold, rounded outward; False if that is
    nowhere."""
    highest = constant
    size = abs(constant)
    for d in range(lo.shape[0]):
        up, down = form[d] * hi[d], form[d] * lo[d]
        highest += max(up, down)
        size += max(abs(up), abs(down))
    highest += (lo.shape[0] + 4) * 2.0**-50 * size
    if highest < 0.0:
        return False
    for d in range(lo.shape[0]):
        # from the end where the form is largest, it falls by |form| a unit of length
        reach = highest / abs(form[d]) if form[d] != 0.0 else np.inf
        if not reach < hi[d] - lo[d]:
            continue
        pad = 2.0**-45 * (abs(lo[d]) + abs(hi[d]))
        if form[d] > 0.0:
            lo[d] = max(lo[d], hi[d] - reach - pad)
        else:
            hi[d] = min(hi[d], lo[d] + reach + pad)
    return True


@njit(**PLAIN)
def copy(source: Array, to: Array) -> None:
    """Copy a vector; an assignment of slices would allocate."""
    for d in range(source.shape[0]):
        to[d] = source[d]


@njit(**PLAIN)
def add_cut(axis: int, place: float, upper: bool, boxes: Array, out: Output) -> None:
    """Cut the top box of a stack in two; the lower part comes next in preorder."""
    counts = out.counts
    top = counts[OPEN] - 1
    out.axis[counts[NODES]] = axis
    out.cut[counts[CUTS]] = place
    counts[NODES] += 1
    counts[CUTS] += 1
    if upper:
        copy(boxes[top, 0], boxes[top + 1, 0])
        copy(boxes[top, 1], boxes[top + 1, 1])
        boxes[top + 1, 1, axis] = place
        counts[OPEN] += 1
    boxes[top, 0, axis] = place


@njit(**PLAIN)
def add_leaf(kind: int, out: Output) -> None:
    """The next leaf of the tree."""
    out.axis[out.counts[NODES]] = kind
    out.counts[NODES] += 1
    if kind in (RELAXED, SLOPED):
        out.counts[LEAVES] += 1


@njit(**PLAIN)
def cut_off(inner: Array, share: float, stack: Stack, score: Array, out: Output) -> None:
    """Cut the top box down to what clipping left of it, where that is a `share` of an axis; the
    parts cut off are leaves that need no bound of their own, and scores shrink with the axes."""
    boxes, clipped, _ = stack
    for d in range(inner.shape[1]):
        top = out.counts[OPEN] - 1
        width = boxes[top, 1, d] - boxes[top, 0, d]
        least = share * width
        if boxes[top, 1, d] - inner[1, d] > least:
            add_cut(d, inner[1, d], True, boxes, out)
            clipped[top] = True
            top += 1
            clipped[top] = False
        if inner[0, d] - boxes[top, 0, d] > least:
            add_cut(d, inner[0, d], False, boxes, out)
            add_leaf(CLIPPED, out)
        if width > 0.0:
            score[d] *= (boxes[top, 1, d] - boxes[top, 0, d]) / width
