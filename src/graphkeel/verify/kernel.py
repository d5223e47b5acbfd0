"""The parts that the compiled kernels of both branch-and-bound engines share (numba).

Kernels are cached on disk as a whole. Numba watches only the file of the function that it caches,
so a digest of every file that the kernel is made of is captured by it and becomes part of its cache
key. In every kernel `lo` and `hi`, shape (n,), are the ends of a box.

A helper that is called for every unit takes numbers, not `Work`: a tuple of arrays costs a
reference count an array and call, which made the property kernel six times slower."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numba import njit

from graphkeel.verify import relaxation
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import SLOPE_STEPS
from graphkeel.verify.relaxation import relu_lines

_Function = TypeVar("_Function", bound=Callable[..., Any])

# "contract" lets the compiler fuse a product and a sum, which only removes a rounding
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}

FINISHED, FULL, CANDIDATE, STUCK, FEW = 0, 1, 2, 3, 4  # why a run of a kernel ended
OPEN, NODES, CUTS = 0, 1, 2  # the first entries of a run's `counts`

lines = njit(**OPTIONS)(relu_lines)


def source_digest(*modules: ModuleType) -> str:
    """A digest of the kernel's own modules and of those that all kernels use."""
    digest = hashlib.sha256()
    for module in (relaxation, sys.modules[__name__], *modules):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()


def compile_cached(function: _Function) -> _Function:
    """Compile a kernel, cached on disk where there is a place to write to."""
    try:
        compiled: _Function = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no writable folder: compile in every process
        compiled = njit(**OPTIONS)(function)
    return compiled


@njit(**OPTIONS)
def rounded_slope(slope: float) -> float:
    """The nearest slope that can be stored, so that the proof has the slope that was used."""
    return float(np.floor(slope * SLOPE_STEPS + 0.5) / SLOPE_STEPS)


@njit(**OPTIONS)
def stored_slope(slope: float) -> np.uint8:
    """A rounded slope as the proof has it."""
    return np.uint8(slope * SLOPE_STEPS + 0.5)


@njit(**OPTIONS)
def relaxation_gap(coefficient: float, low: float, high: float, lift: float, slope: float) -> float:
    """The most that relaxing a unit with bounds [low, high] can cost a row's upper bound."""
    if coefficient == 0.0 or high <= 0.0 or low >= 0.0:
        return 0.0
    if coefficient > 0.0:
        return coefficient * lift
    return -coefficient * max(-slope * low, (1.0 - slope) * high)


@njit(**OPTIONS)
def best_cut(score: Array, lo: Array, hi: Array, narrowest: Array) -> tuple[int, float]:
    """The middle of the axis with the highest score, or (-1, 0) where none is wide enough.

    Args:
        score: shape (n,).
        narrowest: the widths below which no axis is cut, shape (n,).
    """
    axis, best = -1, -1.0
    for d in range(lo.shape[0]):
        if hi[d] - lo[d] > narrowest[d] and score[d] > best:
            axis, best = d, score[d]
    if axis < 0:
        return -1, 0.0
    cut = 0.5 * (lo[axis] + hi[axis])
    return (axis, cut) if lo[axis] < cut < hi[axis] else (-1, 0.0)
