"""The inner loop of the branch engine (numba): depth-first, one box at a time, writing its tree in
preorder."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.branch import pack, relax, slopes
from graphkeel.verify.branch.pack import FORM, N_OUT, UNIT, WEIGHT, Coupling, Net
from graphkeel.verify.branch.relax import Work, descend, hidden_bounds, value
from graphkeel.verify.branch.slopes import (
    choose_slopes,
    default_slopes,
    linear_form,
    maximum,
    round_slopes,
)
from graphkeel.verify.kernel import (
    CANDIDATE,
    FEW,
    FINISHED,
    FULL,
    NODES,
    OPEN,
    OPTIONS,
    SLOPES,
    STUCK,
    Output,
    add_cut,
    add_leaf,
    best_cut,
    compile_cached,
    relaxation_gap,
    source_digest,
    stored_slope,
)
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import HOLE, RELAXED, SLOPED
from graphkeel.verify.settings import KernelSettings


class Hole(NamedTuple):
    """The excluded ball, `inner` the radius of the L∞ ball inside it."""

    present: bool
    centre: Array
    radius: float
    inner: float
    euclidean: bool


@njit(**OPTIONS)
def _inside_hole(hole: Hole, lo: Array, hi: Array) -> bool:
    """Whether the box lies strictly inside the hole, decided on the safe side."""
    limit = hole.radius * (1.0 - 2.0**-45)
    total = 0.0
    for d in range(lo.shape[0]):
        far = max(abs(lo[d] - hole.centre[d]), abs(hi[d] - hole.centre[d]))
        if not hole.euclidean and not far < limit:
            return False
        total += far * far
    return not hole.euclidean or total < limit * limit


@njit(**OPTIONS)
def _outside_hole(hole: Hole, y: Array) -> bool:
    """Whether a point is outside the hole (float test; candidates are confirmed exactly later).

    Args:
        y: a state, shape (n,).
    """
    far = total = 0.0
    for d in range(y.shape[0]):
        far = max(far, abs(y[d] - hole.centre[d]))
        total += (y[d] - hole.centre[d]) ** 2
    if far == 0.0:
        return False
    return total >= hole.radius * hole.radius if hole.euclidean else far >= hole.radius


@njit(**OPTIONS)
def _hole_cut(hole: Hole, lo: Array, hi: Array) -> tuple[int, float]:
    """While the hole reaches into the box: halve the side farthest from it, so boxes shrink with
    their distance."""
    best, axis, sign = hole.inner, -1, 1.0
    for d in range(lo.shape[0]):
        above, below = hi[d] - hole.centre[d], hole.centre[d] - lo[d]
        if above <= -hole.inner or below <= -hole.inner:
            return -1, 0.0
        if above > best:
            best, axis, sign = above, d, 1.0
        if below > best:
            best, axis, sign = below, d, -1.0
    if axis < 0:
        return -1, 0.0
    cut = hole.centre[axis] + sign * max(hole.inner * (1.0 - 2.0**-44), 0.5 * best)
    return (axis, cut) if lo[axis] < cut < hi[axis] else (-1, 0.0)


@njit(**OPTIONS)
def _gap_cut(net: Net, work: Work, lo: Array, hi: Array, narrowest: Array) -> tuple[int, float]:
    """Cut where most of the relaxation gap comes from: each unit's gap, shared by the axes that
    make it wide.

    Args:
        narrowest: the widths below which no axis is cut, shape (n,).
    """
    n = lo.shape[0]
    share = work.mean
    for d in range(n):
        work.score[d] = 0.0
    for chain in range(2):
        for k in range(net.start[chain], net.start[chain + 1]):
            width, first = net.table[k, N_OUT], k == net.start[chain]
            for j in range(width):
                unit = net.table[k, UNIT] + j
                slope = work.slope[unit] if first else work.alpha[unit]
                gap = relaxation_gap(
                    work.coefficient[unit], work.low[unit], work.high[unit], work.lift[unit], slope
                )
                if gap <= 0.0:
                    continue
                total = 0.0
                for d in range(n):
                    if first:
                        w = net.data[net.table[k, WEIGHT] + j * n + d]
                    else:
                        w = work.forms[net.table[k, FORM] + d * width + j]
                    share[d] = abs(w) * (hi[d] - lo[d])
                    total += share[d]
                if total > 0.0:
                    for d in range(n):
                        work.score[d] += gap * share[d] / total
    return best_cut(work.score, lo, hi, narrowest)


@njit(**OPTIONS)
def _prove_box(
    net: Net, coupling: Coupling, settings: KernelSettings, work: Work, lo: Array, hi: Array
) -> tuple[int, float]:
    """Try to prove g ≤ 0 on a box: (leaf kind or 0, slack)."""
    hidden_bounds(net, coupling, work, lo, hi)
    constant, slack = descend(net, coupling, work)
    count, more = default_slopes(net, work)
    slack = (slack + more + net.rounding * abs(constant)) * (1.0 + net.rounding)
    if coupling.layer >= 0:
        round_slopes(work, count)
    bound = constant + linear_form(net, work, False) + maximum(work, lo, hi)
    if bound + slack <= -slack:
        return (SLOPED if coupling.layer >= 0 else RELAXED), slack
    if count > 0:
        goal = -3.0 * slack - 0.003 * abs(bound)  # the slopes are rounded afterwards
        choose_slopes(net, settings, work, count, constant, goal, lo, hi)
        bound = constant + linear_form(net, work, False) + maximum(work, lo, hi)
        if bound + slack <= -slack:
            return SLOPED, slack
    return 0, slack


@njit(**OPTIONS)
def _has_few_units(net: Net, settings: KernelSettings, work: Work) -> bool:
    """Whether only few units can change their sign in the box."""
    count = 0
    for k in range(net.start[2]):
        for unit in range(net.table[k, UNIT], net.table[k, UNIT] + net.table[k, N_OUT]):
            if work.coupled[unit] or work.low[unit] < 0.0 < work.high[unit]:
                count += 1
    return count <= settings.few_units


@njit(**OPTIONS)
def _write_slopes(net: Net, coupling: Coupling, work: Work, out: Output, number: int) -> None:
    """Store the slopes of a leaf, and which units went through the coupling."""
    row, column = out.counts[SLOPES], 0
    for chain in range(2):
        k = net.start[chain]
        if k < net.start[chain + 1]:
            for unit in range(net.table[k, UNIT], net.table[k, UNIT] + net.table[k, N_OUT]):
                free = work.coefficient[unit] < 0.0 and work.low[unit] < 0.0 < work.high[unit]
                out.slopes[row, column] = stored_slope(work.slope[unit]) if free else 0
                column += 1
    if coupling.layer >= 0:
        for k in range(coupling.bias.shape[0]):
            out.slopes[row, column + k] = (
                number if work.coupled[net.table[coupling.layer, UNIT] + k] else 0
            )
    out.counts[SLOPES] += 1


@njit(**OPTIONS)
def _is_candidate(
    net: Net, work: Work, hole: Hole, out: Output, slack: float, strict: bool
) -> bool:
    """Evaluate g at the form's maximiser; keep the highest point; whether it may be a
    violation."""
    if hole.present and not _outside_hole(hole, work.peak):
        return False
    g = value(net, work, work.peak)
    if not g > out.value[0]:
        return False
    out.value[0] = g
    out.point[:] = work.peak
    return g > slack or (strict and g >= 0.0)


def _compile(digest: str) -> Any:
    """The kernel; it captures the digest, which makes it part of the cache key."""

    def explore(
        net: Net,
        coupling: Coupling,
        number: int,
        settings: KernelSettings,
        work: Work,
        hole: Hole,
        strict: bool,
        narrowest: Array,
        boxes: Array,
        waited: NDArray[np.int64],
        most_waited: NDArray[np.int64],
        out: Output,
    ) -> int:
        """Work through the stack `boxes[:counts[OPEN]]` until it is empty or the output is full;
        why it stopped.

        `waited` counts for each box of the stack the cuts since few units were left; after
        `most_waited` of them the run stops, so that the box's cells can be tried. Negative:
        the cells did not decide it, or not yet. No box is clipped: the one form of a row cuts
        little off, and bounding that again for the proof costs more than it saves.

        Reads: net, coupling, hole. Writes: boxes, waited, out, work.
        """
        if len(digest) == 0:
            return FULL
        counts = out.counts
        lo, hi = np.empty_like(hole.centre), np.empty_like(hole.centre)
        while counts[OPEN] > 0:
            if counts[NODES] >= out.axis.shape[0] or counts[OPEN] >= boxes.shape[0]:
                return FULL
            top = counts[OPEN] - 1
            lo[:] = boxes[top, 0]
            hi[:] = boxes[top, 1]
            if hole.present and hole.radius > 0.0 and _inside_hole(hole, lo, hi):
                kind, slack = HOLE, 0.0
            else:
                kind, slack = _prove_box(net, coupling, settings, work, lo, hi)
            if kind < 0:
                if kind == SLOPED:
                    _write_slopes(net, coupling, work, out, number)
                add_leaf(kind, out)
                counts[OPEN] -= 1
                continue
            if _is_candidate(net, work, hole, out, slack, strict):
                return CANDIDATE
            few = _has_few_units(net, settings, work)
            if few and waited[top] >= most_waited[0]:
                return FEW
            axis, cut = _hole_cut(hole, lo, hi) if hole.present else (-1, 0.0)
            if axis < 0:
                axis, cut = _gap_cut(net, work, lo, hi, narrowest)
            if axis < 0 or hi[axis] - lo[axis] <= narrowest[axis]:
                return STUCK
            waited[top] = waited[top] + 1 if few or waited[top] < 0 else 0
            waited[top + 1] = waited[top]
            add_cut(axis, cut, True, boxes, out)
        return FINISHED

    return compile_cached(explore)


explore = _compile(source_digest(pack, relax, slopes, sys.modules[__name__]))
