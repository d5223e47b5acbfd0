"""The inner loop of a property's search (numba): depth-first over boxes, the tree in preorder.

A box is closed by multipliers μ ≥ 0 with max Σ μ_j·s_j < 0 over the box: then no input in it has
all s_j ≥ 0. Inequalities are tried one by one, the cheapest first, so most boxes never need the
whole network; then together, μ by line searches between their linear bounds; then with better
slopes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.kernel import (
    CANDIDATE,
    CLIPPED,
    FINISHED,
    FULL,
    LEAVES,
    NODES,
    OPEN,
    OPTIONS,
    SLOPES,
    STUCK,
    Output,
    add_cut,
    add_leaf,
    best_cut,
    clip,
    compile_cached,
    cut_off,
    relaxation_gap,
    rounded_slope,
    source_digest,
    stored_slope,
)
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import RELAXED, SLOPED
from graphkeel.verify.property import pack, relax
from graphkeel.verify.property.pack import Net
from graphkeel.verify.property.relax import (
    Work,
    begin_box,
    bound_needed,
    descend,
    relaxed_values,
    values_at,
)

_SCALE = 65536.0  # the largest multiplier of a leaf: they are stored as integers up to this


@njit(**OPTIONS)
def _closes(bound: float, slack: float) -> bool:
    """Whether a bound is below 0 by more than the exact check's own rounding of slopes."""
    return bound + 4.0 * slack < 0.0


@njit(**OPTIONS)
def _close_with_one(net: Net, work: Work, lo: Array, hi: Array) -> bool:
    """Bound each inequality by itself; True as soon as one closes the box.

    Writes: row (their forms), weights, score (gaps in proportion to what the bound lacks)."""
    n = lo.shape[0]
    count = net.needs.shape[0]
    for d in range(n):
        work.score[d] = 0.0
    for k in range(count):
        j = net.order[k]
        bound_needed(net, work, net.needs[j], lo, hi)
        for i in range(count):
            work.weights[i] = 0.0
        work.weights[j] = _SCALE
        bound, slack = descend(net, work, lo, hi)
        if _closes(bound, slack):
            return True
        _keep_form(work, j, n, slack)
        _add_gaps(net, work, 1.0 / (abs(bound) + slack), lo, hi)
    return False


@njit(**OPTIONS)
def _keep_form(work: Work, j: int, n: int, slack: float) -> None:
    """Store the form of inequality j; the first n + 1 entries of `row` are `descend`'s own."""
    at = (j + 1) * (n + 1)
    work.slack[j] = slack / _SCALE
    for d in range(n):
        work.row[at + d] = work.coefficient[d] / _SCALE
    work.row[at + n] = work.row[n] / _SCALE


@njit(**OPTIONS)
def _highest(form: Array, lo: Array, hi: Array, peak: Array) -> float:
    """The maximum of a form over a box.

    Args:
        form: coefficients and constant, shape (n + 1,).
        peak: where the maximiser is written, shape (n,).
    """
    n = lo.shape[0]
    total = float(form[n])
    for d in range(n):
        peak[d] = hi[d] if form[d] > 0.0 else lo[d]
        total += form[d] * peak[d]
    return total


@njit(**OPTIONS)
def _line_search(
    now: Array, other: Array, lo: Array, hi: Array, trial: Array, peak: Array
) -> tuple[float, float]:
    """(t, value) that minimise the maximum of (1 − t)·now + t·other: convex and piecewise linear in
    t, with a corner where a coefficient changes its sign.

    Args:
        now, other: forms, shape (n + 1,).
        trial, peak: scratch, shapes (n + 1,) and (n,).
    """
    n = lo.shape[0]
    best_t, best = 0.0, _highest(now, lo, hi, peak)
    for d in range(-1, n):
        t = 1.0
        if d >= 0:
            if (now[d] > 0.0) == (other[d] > 0.0) or now[d] == other[d]:
                continue
            t = now[d] / (now[d] - other[d])
        if not 0.0 < t <= 1.0:
            continue
        for i in range(n + 1):
            trial[i] = (1.0 - t) * now[i] + t * other[i]
        value = _highest(trial, lo, hi, peak)
        if value < best:
            best_t, best = t, value
    return best_t, best


@njit(**OPTIONS)
def _choose_weights(net: Net, work: Work, lo: Array, hi: Array) -> None:
    """μ for the box: from the best single inequality towards the one that the maximiser violates
    most, again and again.

    Reads: row. Writes: weights, integers up to SCALE."""
    n = lo.shape[0]
    count = net.needs.shape[0]
    trial = np.empty(n + 1)
    now = np.empty(n + 1)
    first, least = 0, np.inf
    for j in range(count):
        value = _highest(work.row[(j + 1) * (n + 1) : (j + 2) * (n + 1)], lo, hi, work.peak)
        if value < least:
            first, least = j, value
    for j in range(count):
        work.weights[j] = 0.0
    work.weights[first] = 1.0
    now[:] = work.row[(first + 1) * (n + 1) : (first + 2) * (n + 1)]
    for _ in range(2 * count):
        _highest(now, lo, hi, work.peak)
        worst, low = -1, np.inf
        for j in range(count):
            value = work.row[(j + 1) * (n + 1) + n]
            for d in range(n):
                value += work.row[(j + 1) * (n + 1) + d] * work.peak[d]
            if value < low:
                worst, low = j, value
        other = work.row[(worst + 1) * (n + 1) : (worst + 2) * (n + 1)]
        t, _value = _line_search(now, other, lo, hi, trial, work.share)
        if t == 0.0:
            break
        for i in range(n + 1):
            now[i] = (1.0 - t) * now[i] + t * other[i]
        for j in range(count):
            work.weights[j] *= 1.0 - t
        work.weights[worst] += t
    largest = 0.0
    for j in range(count):
        largest = max(largest, work.weights[j])
    for j in range(count):
        work.weights[j] = np.floor(work.weights[j] / largest * _SCALE + 0.5)


@njit(**OPTIONS)
def _is_free(low: float, high: float, coefficient: float) -> bool:
    """Whether a unit's lower slope changes the bound; bounds of units without a ReLU stay 0."""
    return low < 0.0 < high and coefficient < 0.0


@njit(**OPTIONS)
def _improve_slopes(net: Net, work: Work, goal: float, steps: int, lo: Array, hi: Array) -> bool:
    """Polyak steps on the lower slopes of all units with both signs; True if the box closes with
    slopes rounded to 1/255.

    Reads: weights, lines. Writes: slope."""
    first, end = net.unit[1], net.unit[net.relu.shape[0] - 1]
    for step in range(steps + 1):
        bound, slack = descend(net, work, lo, hi)
        if bound <= goal or step == steps:
            break
        relaxed_values(net, work)
        norm = 0.0
        for i in range(first, end):
            if _is_free(work.low[i], work.high[i], work.coefficient[i]):
                g = work.coefficient[i] * work.relaxed[i]
                s = work.slope[i]
                if not ((s <= 0.0 and g > 0.0) or (s >= 1.0 and g < 0.0)):
                    norm += g * g
        if norm == 0.0:
            break
        length = (bound - goal) / norm
        for i in range(first, end):
            if _is_free(work.low[i], work.high[i], work.coefficient[i]):
                g = work.coefficient[i] * work.relaxed[i]
                work.slope[i] = min(1.0, max(0.0, work.slope[i] - length * g))
    for i in range(first, end):
        work.slope[i] = rounded_slope(work.slope[i])
    bound, slack = descend(net, work, lo, hi)
    work.slack[net.needs.shape[0]] = slack
    return _closes(bound, slack)


@njit(**OPTIONS)
def _close_box(net: Net, work: Work, steps: int, combined: float, lo: Array, hi: Array) -> int:
    """Try to close a box: the kind of leaf, or 0."""
    begin_box(net, work, lo, hi)
    if _close_with_one(net, work, lo, hi):
        return RELAXED
    _choose_weights(net, work, lo, hi)
    bound, slack = descend(net, work, lo, hi)
    work.slack[net.needs.shape[0]] = slack
    if _closes(bound, slack):
        return RELAXED
    _add_gaps(net, work, combined / (abs(bound) + slack), lo, hi)
    if steps > 0:
        goal = -8.0 * slack - 0.003 * abs(bound)
        if _improve_slopes(net, work, goal, steps, lo, hi):
            return SLOPED
    return 0


@njit(**OPTIONS)
def _add_gaps(net: Net, work: Work, share: float, lo: Array, hi: Array) -> None:
    """Add to every axis its part of the relaxation gap of the last row that was bounded: each
    unit's gap, shared by the axes that make the unit wide.

    Reads: coefficient, lines, forms. Writes: score, share."""
    n = lo.shape[0]
    for i in range(net.unit[1], net.unit[net.relu.shape[0] - 1]):
        gap = relaxation_gap(
            work.coefficient[i], work.low[i], work.high[i], work.lift[i], work.slope[i]
        )
        if gap <= 0.0:
            continue
        total = 0.0
        for d in range(n):
            work.share[d] = abs(work.forms[i * n + d]) * (hi[d] - lo[d])
            total += work.share[d]
        if total > 0.0:
            for d in range(n):
                work.score[d] += share * gap * work.share[d] / total


@njit(**OPTIONS)
def _write_leaf(net: Net, work: Work, kind: int, out: Output) -> None:
    """Store a leaf's multipliers and slopes."""
    counts = out.counts
    for j in range(net.needs.shape[0]):
        out.weights[counts[LEAVES], j] = np.int32(work.weights[j])
    add_leaf(kind, out)
    if kind != SLOPED:
        return
    column = 0
    for v in range(1, net.relu.shape[0] - 1):
        if net.relu[v]:
            for i in range(net.unit[v], net.unit[v + 1]):
                both = work.low[i] < 0.0 < work.high[i]
                stored = stored_slope(work.slope[i]) if both else np.uint8(0)
                out.slopes[counts[SLOPES], column] = stored
                column += 1
    counts[SLOPES] += 1


@njit(**OPTIONS)
def _is_candidate(net: Net, work: Work, lo: Array, hi: Array, out: Output) -> bool:
    """Whether the maximiser or the middle of a box is better than any point before and may be a
    counterexample.

    Writes: out.point, out.value."""
    found = False
    for turn in range(2):
        if turn == 1:
            for d in range(lo.shape[0]):
                work.peak[d] = 0.5 * (lo[d] + hi[d])
        value = values_at(net, work, work.peak)
        if value > out.value[0]:
            out.value[0] = value
            for d in range(lo.shape[0]):
                out.point[d] = work.peak[d]
            found = value >= -1e-9
    return found


@njit(**OPTIONS)
def _clip_box(net: Net, work: Work, lo: Array, hi: Array) -> bool:
    """The part of a box where every form can still be ≥ 0; False if there is none.

    Reads: row, slack, coefficient. Writes: inner."""
    n = lo.shape[0]
    count = net.needs.shape[0]
    work.inner[0] = lo
    work.inner[1] = hi
    for j in range(count):
        form = work.row[(j + 1) * (n + 1) : (j + 2) * (n + 1)]
        if not clip(form[:n], form[n] + 4.0 * work.slack[j], work.inner[0], work.inner[1]):
            return False
    constant = work.row[n] + 4.0 * work.slack[count]
    return clip(work.coefficient[:n], constant, work.inner[0], work.inner[1])


def _compile(digest: str) -> Any:
    """The kernel; it captures the digest, which makes it part of the cache key."""

    def explore(
        net: Net,
        work: Work,
        steps: int,
        combined: float,
        share: float,
        narrowest: Array,
        boxes: Array,
        clipped: NDArray[np.bool_],
        out: Output,
    ) -> int:
        """Explore boxes[:counts[OPEN]] until none is left, `out` is full, or a point may be a
        counterexample.

        Args:
            share: of an axis that has to be clipped off; from 1 on, nothing is.
            narrowest: the widths below which no axis is cut, shape (n,).
            boxes: the stack of open boxes, shape (most, 2, n).
            clipped: those of them that are leaves already, shape (most,).
        """
        _ = digest
        counts = out.counts
        room = 3 * boxes.shape[2] + 2  # nodes that one box may add
        while counts[OPEN] > 0:
            nodes = counts[NODES]
            if nodes + room > out.axis.shape[0] or counts[OPEN] + room > boxes.shape[0]:
                return FULL
            top = counts[OPEN] - 1
            if clipped[top]:
                clipped[top] = False
                add_leaf(CLIPPED, out)
                counts[OPEN] -= 1
                continue
            lo, hi = boxes[top, 0], boxes[top, 1]
            kind = _close_box(net, work, steps, combined, lo, hi)
            if kind != 0:
                _write_leaf(net, work, kind, out)
                counts[OPEN] -= 1
                continue
            seen = _is_candidate(net, work, lo, hi, out)
            if share < 1.0:
                if not _clip_box(net, work, lo, hi):
                    clipped[top] = True
                    continue
                cut_off(work.inner, share, boxes, clipped, work.score, out)
                top = counts[OPEN] - 1
            axis, cut = best_cut(work.score, boxes[top, 0], boxes[top, 1], narrowest)
            if axis >= 0:
                add_cut(axis, cut, True, boxes, out)
            elif counts[NODES] == nodes:
                return STUCK
            if seen:
                return CANDIDATE
        return FINISHED

    return compile_cached(explore)


explore = _compile(source_digest(pack, relax, sys.modules[__name__]))
