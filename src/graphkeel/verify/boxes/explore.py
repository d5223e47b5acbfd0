"""The inner loop of the search (numba): depth-first over boxes, the tree in preorder.

A box is closed by multipliers μ ≥ 0 with max Σ μ_j·s_j < 0 over the box: then no input in it has
all s_j ≥ 0. Inequalities are tried one by one, the cheapest first, so most boxes never need the
whole network; then together, μ by line searches between their linear bounds; then with better
slopes. A row of a loop is one inequality."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.boxes import pack, relax, slopes
from graphkeel.verify.boxes.pack import Coupling, Net
from graphkeel.verify.boxes.relax import (
    Work,
    begin_box,
    bound_needed,
    descend,
    forward,
    measure,
)
from graphkeel.verify.boxes.slopes import (
    bottom_form,
    choose_all_slopes,
    choose_slopes,
    find_free,
    has_choice,
    maximum,
    round_free,
)
from graphkeel.verify.kernel import (
    CANDIDATE,
    CLIPPED,
    FEW,
    FINISHED,
    FULL,
    LEAVES,
    NODES,
    OPEN,
    PLAIN,
    SLOPES,
    STUCK,
    Output,
    Stack,
    add_cut,
    add_leaf,
    best_cut,
    clip,
    compile_cached,
    copy,
    cut_off,
    relaxation_gap,
    source_digest,
    square_gap,
    stored_slope,
)
from graphkeel.verify.problem import Array
from graphkeel.verify.proof import HOLE, RELAXED, SLOPED
from graphkeel.verify.settings import KernelSettings

_SCALE = 65536.0  # the largest multiplier of a leaf: they are stored as integers up to this


class Hole(NamedTuple):
    """The excluded ball, `inner` the radius of the L∞ ball inside it."""

    present: bool
    centre: Array
    radius: float
    inner: float
    euclidean: bool


@njit(**PLAIN)
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


@njit(**PLAIN)
def _outside_hole(hole: Hole, y: Array) -> bool:
    """Whether a point is outside the hole (float test; candidates are confirmed exactly later)."""
    far = total = 0.0
    for d in range(y.shape[0]):
        far = max(far, abs(y[d] - hole.centre[d]))
        total += (y[d] - hole.centre[d]) ** 2
    if far == 0.0:
        return False
    return total >= hole.radius * hole.radius if hole.euclidean else far >= hole.radius


@njit(**PLAIN)
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


@njit(**PLAIN)
def _closes(bound: float, slack: float) -> bool:
    """Whether a bound is below 0 by more than the exact check's own rounding of slopes."""
    return bound + 2.0 * slack <= 0.0


@njit(**PLAIN)
def _bound_row(
    net: Net, coupling: Coupling, work: Work, j: int, lo: Array, hi: Array
) -> tuple[float, float, float]:
    """Bound Σ μ_j·s_j and keep its form in line j: (bound without its slack, slack, constant
    above the bottom).

    Reads: weights, lines, slope. Writes: coefficient, row, peak, kept, slack."""
    above, slack = descend(net, coupling, work)
    if coupling.after >= 0:
        round_free(work, find_free(net, work))  # the leaf will store them
    bound = _keep_form(net, work, j, above, slack, lo, hi)
    return bound, slack, above


@njit(**PLAIN)
def _keep_form(
    net: Net, work: Work, j: int, above: float, slack: float, lo: Array, hi: Array
) -> float:
    """The bound with the present slopes; its form is kept in line j.

    Reads: coefficient, lines, slope. Writes: row, peak, kept, slack."""
    n = lo.shape[0]
    constant = above + bottom_form(net, work, False)
    at = j * (n + 1)
    for d in range(n):
        work.kept[at + d] = work.row[d] / _SCALE
    work.kept[at + n] = constant / _SCALE
    work.slack[j] = slack / _SCALE
    return constant + maximum(work.row, lo, hi, work.peak)


@njit(**PLAIN)
def _line_search(
    now: Array, other: Array, lo: Array, hi: Array, trial: Array, peak: Array
) -> tuple[float, float]:
    """(t, value) that minimise the maximum of (1 − t)·now + t·other: convex and piecewise linear in
    t, with a corner where a coefficient changes its sign."""
    n = lo.shape[0]
    best_t, best = 0.0, now[n] + maximum(now, lo, hi, peak)
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
        value = trial[n] + maximum(trial, lo, hi, peak)
        if value < best:
            best_t, best = t, value
    return best_t, best


@njit(**PLAIN)
def _choose_weights(net: Net, work: Work, lo: Array, hi: Array) -> None:
    """μ for the box: from the best single inequality towards the one that the maximiser violates
    most, again and again.

    Reads: kept. Writes: weights, integers up to SCALE."""
    n = lo.shape[0]
    count = net.needs.shape[0]
    now, trial = work.mixed[0], work.mixed[1]
    first, least = 0, np.inf
    for j in range(count):
        form = work.kept[j * (n + 1) : (j + 1) * (n + 1)]
        value = form[n] + maximum(form, lo, hi, work.peak)
        if value < least:
            first, least = j, value
    for j in range(count):
        work.weights[j] = 0.0
    work.weights[first] = 1.0
    copy(work.kept[first * (n + 1) : (first + 1) * (n + 1)], now)
    for _ in range(2 * count):
        maximum(now, lo, hi, work.peak)
        worst, low = -1, np.inf
        for j in range(count):
            value = work.kept[j * (n + 1) + n]
            for d in range(n):
                value += work.kept[j * (n + 1) + d] * work.peak[d]
            if value < low:
                worst, low = j, value
        other = work.kept[worst * (n + 1) : (worst + 1) * (n + 1)]
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


@njit(**PLAIN)
def _close_box(
    net: Net, coupling: Coupling, settings: KernelSettings, work: Work, lo: Array, hi: Array
) -> int:
    """Try to close a box: the kind of leaf, or 0.

    Writes: weights, slope; kept (the forms of the inequalities, then of their sum), slack; score
    (gaps in proportion to what the bounds lack)."""
    count = net.needs.shape[0]
    for d in range(lo.shape[0]):
        work.score[d] = 0.0
    begin_box(net, work, lo, hi)
    plain = SLOPED if coupling.after >= 0 else RELAXED  # a leaf stores which units are coupled
    bound = slack = above = 0.0
    for k in range(count):
        j = net.order[k]
        bound_needed(net, coupling, work, net.needs[j], lo, hi)
        for i in range(count):
            work.weights[i] = 0.0
        work.weights[j] = _SCALE
        bound, slack, above = _bound_row(net, coupling, work, j, lo, hi)
        if _closes(bound, slack):
            return plain
        if count > 1:
            _add_gaps(net, work, 1.0 / (abs(bound) + slack), lo, hi)
    if count > 1:
        _choose_weights(net, work, lo, hi)
        bound, slack, above = _bound_row(net, coupling, work, count, lo, hi)
        if _closes(bound, slack):
            return plain
    goal = -3.0 * slack - 0.003 * abs(bound)  # the slopes are rounded afterwards
    if settings.all_steps > 0:
        choose_all_slopes(net, coupling, work, settings.all_steps, goal, lo, hi)
        above, slack = descend(net, coupling, work)
    free = find_free(net, work)
    if free > 0 and settings.slope_steps > 0:
        choose_slopes(net, settings, work, free, above, goal, lo, hi)
    bound = _keep_form(net, work, count, above, slack, lo, hi)
    if _closes(bound, slack):
        return SLOPED
    _add_gaps(net, work, settings.combined_weight / (abs(bound) + slack), lo, hi)
    return 0


@njit(**PLAIN)
def _add_gaps(net: Net, work: Work, share: float, lo: Array, hi: Array) -> None:
    """Add to every axis its part of the relaxation gap of the last row that was bounded: each
    unit's gap, shared by the axes that make the unit wide.

    Reads: coefficient, lines, forms. Writes: score, share."""
    n = lo.shape[0]
    for v in range(1, net.relu.shape[0] - 1):
        if not (net.relu[v] or net.square[v]):
            continue
        begin = net.unit[v]
        rows = net.unit[v + 1] - begin
        for j in range(rows):
            i = begin + j
            c, low, high, slope = work.coefficient[i], work.low[i], work.high[i], work.slope[i]
            if net.square[v]:
                gap = square_gap(c, low, high, slope)
            else:
                gap = relaxation_gap(c, low, high, work.lift[i], slope)
            if gap <= 0.0:
                continue
            total = 0.0
            for d in range(n):
                work.share[d] = abs(work.forms[begin * n + d * rows + j]) * (hi[d] - lo[d])
                total += work.share[d]
            if total > 0.0:
                for d in range(n):
                    work.score[d] += share * gap * work.share[d] / total


@njit(**PLAIN)
def _has_few_units(net: Net, settings: KernelSettings, work: Work) -> bool:
    """Whether only few units can change their sign in the box."""
    count = 0
    for i in range(net.unit[1], net.unit[net.relu.shape[0] - 1]):
        if work.coupled[i] or work.low[i] < 0.0 < work.high[i]:
            count += 1
    return count <= settings.few_units


@njit(**PLAIN)
def _write_leaf(net: Net, coupling: Coupling, work: Work, kind: int, out: Output) -> None:
    """Store a leaf's multipliers, and its slopes with the units that went through the coupling."""
    counts = out.counts
    for j in range(out.weights.shape[1]):
        out.weights[counts[LEAVES], j] = np.int32(work.weights[j])
    add_leaf(kind, out)
    if kind != SLOPED:
        return
    line = counts[SLOPES]
    last = 0
    for i in range(net.unit[1], net.unit[net.relu.shape[0] - 1]):
        column = net.column[i]
        if column < 0:
            continue
        last = max(last, column + 1)
        free = has_choice(net, work, i)
        out.slopes[line, column] = stored_slope(work.slope[i]) if free else np.uint8(0)
    if coupling.after >= 0:
        for k in range(coupling.bias.shape[0]):
            through = work.coupled[net.unit[coupling.after] + k]
            out.slopes[line, last + k] = coupling.number if through else 0
    counts[SLOPES] += 1


@njit(**PLAIN)
def _is_candidate(
    net: Net, work: Work, hole: Hole, near: float, lo: Array, hi: Array, out: Output
) -> bool:
    """Whether the maximiser or the middle of a box is better than any point before and may be a
    counterexample.

    Writes: out.point, out.value."""
    found = False
    for turn in range(2):
        if turn == 1:
            for d in range(lo.shape[0]):
                work.peak[d] = 0.5 * (lo[d] + hi[d])
        if hole.present and not _outside_hole(hole, work.peak):
            continue
        value = forward(net, work, work.peak, False)
        if value > out.value[0]:
            out.value[0] = value
            for d in range(lo.shape[0]):
                out.point[d] = work.peak[d]
            found = value >= -near
    return found


@njit(**PLAIN)
def _clip_box(net: Net, work: Work, lo: Array, hi: Array) -> bool:
    """The part of a box where every form can still be ≥ 0; False if there is none.

    Reads: kept, slack. Writes: inner."""
    n = lo.shape[0]
    count = net.needs.shape[0]
    copy(lo, work.inner[0])
    copy(hi, work.inner[1])
    for j in range(count + 1):
        form = work.kept[j * (n + 1) : (j + 1) * (n + 1)]
        if not clip(form[:n], form[n] + 2.0 * work.slack[j], work.inner[0], work.inner[1]):
            return False
    return True


def _compile(digest: str) -> Any:
    """The kernel; it captures the digest, which makes it part of the cache key."""

    def explore(
        net: Net,
        coupling: Coupling,
        settings: KernelSettings,
        work: Work,
        hole: Hole,
        root: Array,
        narrowest: Array,
        share: float,
        stack: Stack,
        most_waited: NDArray[np.int64],
        out: Output,
    ) -> int:
        """Work through a stack until it is empty, the output is full, or something has to be
        decided: why. After `most_waited` cuts with few units left a run stops, so that the box's
        cells can be tried. No axis is cut below its width in `narrowest`; at least a `share` of one
        has to be clipped off, and from 1 on, nothing is.

        Reads: net, coupling, hole. Writes: stack, out, work."""
        _ = digest
        counts = out.counts
        boxes, clipped, waited = stack
        measure(net, coupling, work, root[0], root[1])
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
            if hole.present and hole.radius > 0.0 and _inside_hole(hole, lo, hi):
                add_leaf(HOLE, out)
                counts[OPEN] -= 1
                continue
            kind = _close_box(net, coupling, settings, work, lo, hi)
            if kind != 0:
                _write_leaf(net, coupling, work, kind, out)
                counts[OPEN] -= 1
                continue
            seen = _is_candidate(net, work, hole, settings.near_zero, lo, hi, out)
            few = _has_few_units(net, settings, work)
            if few and waited[top] >= most_waited[0]:
                return FEW
            if share < 1.0:
                if not _clip_box(net, work, lo, hi):
                    clipped[top] = True
                    continue
                cut_off(work.inner, share, stack, work.score, out)
                top = counts[OPEN] - 1
            axis, cut = _hole_cut(hole, lo, hi) if hole.present else (-1, 0.0)
            if axis < 0:
                axis, cut = best_cut(work.score, boxes[top, 0], boxes[top, 1], narrowest)
            if axis >= 0 and boxes[top, 1, axis] - boxes[top, 0, axis] > narrowest[axis]:
                waited[top] = waited[top] + 1 if few or waited[top] < 0 else 0
                waited[top + 1] = waited[top]
                add_cut(axis, cut, True, boxes, out)
            elif counts[NODES] == nodes:
                return STUCK
            if seen:
                return CANDIDATE
        return FINISHED

    return compile_cached(explore, PLAIN)


explore = _compile(source_digest(pack, relax, slopes, sys.modules[__name__]))
