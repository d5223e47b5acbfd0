"""Rigorous linear bounds of blocks over a box by backward substitution, in float64 (numba).

The lines around a unit are those of docs/formats.md: a chord above; below a ReLU a line through the
origin, below a square a tangent, whose *slope* is a place in the interval of its input. Nothing
relies on directed rounding; `pack.py` explains the error terms. Loops run over a block's units
innermost, because those are contiguous and become vector instructions: where indices are unsigned,
since numba tests every signed one for being negative, which halves the speed of it all. `lo` and
`hi`, shape (n,), are the ends of a box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.affine import TINY
from graphkeel.verify.boxes.pack import Coupling, Net
from graphkeel.verify.kernel import PLAIN, copy, lines, lines_of_square
from graphkeel.verify.problem import Array


class Work(NamedTuple):
    """Scratch arrays of one worker; per unit unless said otherwise."""

    known: NDArray[np.bool_]  # per value: whether its bounds are those of this box
    low: Array  # bounds before the ReLU
    high: Array
    chord: Array  # upper line: chord·z + lift
    lift: Array
    alpha: Array  # default lower line
    drop: Array  # its value at 0
    slope: Array  # the lower slope in use; of a square the place of its tangent, 0 … 1
    base: Array  # the error by rounding, on the root box, and by the bias
    error: Array  # the error on this box
    reach: Array  # of the value
    coupled: NDArray[np.bool_]  # whether the unit was replaced through the coupling
    forms: Array  # (units·n): a linear form of every unit with a ReLU, for the choice of cuts
    up: Array  # (units·widest): coefficients of upper bounds, unit by unit
    down: Array
    rising: Array  # (widest,): those of one unit
    falling: Array
    touched: NDArray[np.bool_]  # per value: whether it has coefficients
    versions: Array  # (4·widest): bounds of coupled units, and their forms at the centre
    coefficient: Array  # of one row, on every unit's value; of the inputs what skips the bottom
    relaxed: Array  # the value of each unit on the row's lines at the maximiser
    free: NDArray[np.int64]  # units of the bottom whose lower slope may be chosen
    gradient: Array
    offset: Array
    unit_forms: Array  # ((units + 1)·n): forms of the free units, then the fixed part
    row: Array  # (n,): the form of the row
    kept: Array  # ((inequalities + 1)·(n + 1)): forms of the inequalities, then of their sum
    peak: Array  # (n,): where the form is largest
    mean: Array  # (n,)
    score: Array  # (n,)
    share: Array  # (n,)
    weights: Array  # (inequalities,): μ
    slack: Array  # (inequalities + 1,): of the inequalities' forms, then of the row's
    inner: Array  # (2, n): what clipping leaves of a box
    mixed: Array  # (2, n + 1): forms between those of two inequalities


def workspace(net: Net) -> Work:
    """Scratch arrays for one worker."""
    units, n = int(net.unit[-1]), int(net.unit[1])
    values = net.relu.shape[0]
    widest = int(np.diff(net.unit).max())
    rows = net.needs.shape[0]
    shapes: dict[str, Any] = dict.fromkeys(Work._fields, units)
    shapes |= dict.fromkeys(("known", "touched"), values)
    shapes |= dict.fromkeys(("up", "down"), units * widest)
    shapes |= dict.fromkeys(("row", "peak", "mean", "score", "share"), n)
    shapes |= {"forms": units * n, "unit_forms": (units + 1) * n, "versions": 4 * widest}
    shapes |= dict.fromkeys(("rising", "falling"), widest)
    shapes |= {"kept": (rows + 1) * (n + 1), "weights": rows, "slack": rows + 1, "inner": (2, n)}
    shapes["mixed"] = (2, n + 1)
    kinds: dict[str, Any] = dict.fromkeys(("known", "touched", "coupled"), np.bool_)
    kinds["free"] = np.int64
    return Work(
        **{name: np.zeros(size, kinds.get(name, np.float64)) for name, size in shapes.items()}
    )


@njit(**PLAIN)
def begin_box(net: Net, work: Work, lo: Array, hi: Array) -> None:
    """Forget the last box.

    Writes: known, reach of the inputs."""
    for v in range(net.relu.shape[0]):
        work.known[v] = False
    for d in range(lo.shape[0]):
        work.reach[d] = max(abs(lo[d]), abs(hi[d]))


@njit(**PLAIN)
def measure(net: Net, coupling: Coupling, work: Work, lo: Array, hi: Array) -> None:
    """The errors by rounding on the root box, block by block.

    Writes: base; bounds of all blocks."""
    begin_box(net, work, lo, hi)
    for v in range(1, net.relu.shape[0]):
        begin = net.unit[v]
        rows = net.unit[v + 1] - begin
        for i in range(begin, begin + rows):
            work.base[i] = abs(net.bias[i]) + net.bias_error[i]
        for e in range(net.first[v], net.first[v + 1]):
            p = net.source[e]
            width = net.unit[p + 1] - net.unit[p]
            for q in range(width):
                reach = work.reach[net.unit[p] + q]
                for j in range(rows):
                    size = abs(net.data[net.turned[e] + q * rows + j])
                    if net.error[e] >= 0:
                        size += net.data[net.error[e] + q * rows + j]
                    work.base[begin + j] += size * reach
        for i in range(begin, begin + rows):
            magnitude = work.base[i] * (1.0 + net.rounding)
            work.base[i] = net.bias_error[i] + 2.0 * net.rounding * magnitude + TINY
            work.reach[i] = magnitude
        if net.relu[v] or net.square[v]:
            bound_block(net, coupling, work, v, lo, hi)
        else:
            _set_errors(net, work, v)


@njit(**PLAIN)
def _set_errors(net: Net, work: Work, v: int) -> None:
    """Errors of a block's units: the constant part plus weight error times the largest input.

    Reads: base, reach. Writes: error."""
    begin = net.unit[v]
    rows = net.unit[v + 1] - begin
    for i in range(begin, begin + rows):
        work.error[i] = work.base[i]
    for e in range(net.first[v], net.first[v + 1]):
        if net.error[e] < 0:
            continue
        first = net.unit[net.source[e]]
        for q in range(net.unit[net.source[e] + 1] - first):
            largest = work.reach[first + q] * (1.0 + net.rounding)
            at = np.uint64(net.error[e] + q * rows)
            for j in range(np.uint64(rows)):
                work.error[np.uint64(begin) + j] += net.data[at + j] * largest


@njit(**PLAIN)
def _clear(net: Net, work: Work, v: int, rows: int) -> None:
    """Coefficients of a value that is met for the first time."""
    if not work.touched[v]:
        work.touched[v] = True
        for k in range(np.uint64(net.unit[v] * rows), np.uint64(net.unit[v + 1] * rows)):
            work.up[k] = 0.0
            work.down[k] = 0.0


@njit(**PLAIN)
def _start_rows(net: Net, work: Work, v: int) -> None:
    """The units of a block as rows of coefficients of what it reads.

    Reads: error. Writes: up, down, touched, and the constants into low, high."""
    begin = net.unit[v]
    rows = net.unit[v + 1] - begin
    for p in range(v):
        work.touched[p] = False
    for i in range(begin, begin + rows):
        work.high[i] = net.bias[i] + work.error[i]
        work.low[i] = net.bias[i] - work.error[i]
    for e in range(net.first[v], net.first[v + 1]):
        p = net.source[e]
        work.touched[p] = True
        place, at = np.uint64(net.unit[p] * rows), np.uint64(net.turned[e])
        for k in range(np.uint64((net.unit[p + 1] - net.unit[p]) * rows)):
            work.up[place + k] = net.data[at + k]
            work.down[place + k] = net.data[at + k]
    _clear(net, work, 0, rows)


@njit(**PLAIN)
def _substitute(net: Net, work: Work, p: int, begin: int, rows: int) -> None:
    """Replace the coefficients of block p, one row for each unit from `begin` on, by those of what
    it reads.

    Reads: lines, error. Writes: up, down, and the constants into low, high."""
    low, high, up, down = work.low, work.high, work.up, work.down
    rising, falling = work.rising, work.falling  # arrays of their own: nothing overlaps
    for e in range(net.first[p], net.first[p + 1]):
        _clear(net, work, net.source[e], rows)
    count, start = np.uint64(rows), np.uint64(begin)
    for i in range(net.unit[p], net.unit[p + 1]):
        at = np.uint64(i * rows)
        if net.relu[p] and high[i] <= 0.0:
            continue
        chord = slope = 1.0
        lift = drop = 0.0
        if net.square[p] or (net.relu[p] and low[i] < 0.0):
            chord, slope = work.chord[i], work.alpha[i]
            # pays for the rounding of the constants
            lift = work.lift[i] + net.rounding * abs(work.lift[i])
            drop = work.drop[i] * (1.0 + net.rounding)
        bias, error = net.bias[i], work.error[i]
        for j in range(count):
            rise, fall = max(up[at + j], 0.0), min(up[at + j], 0.0)
            c = rise * chord + fall * slope
            rising[j] = c
            high[start + j] += rise * lift + fall * drop + c * bias + abs(c) * error
            rise, fall = max(down[at + j], 0.0), min(down[at + j], 0.0)
            c = rise * slope + fall * chord
            falling[j] = c
            low[start + j] += fall * lift + rise * drop + c * bias - abs(c) * error
        for e in range(net.first[p], net.first[p + 1]):
            source = net.source[e]
            first = net.unit[source]
            width = net.unit[source + 1] - first
            weights = net.weight[e] + (i - net.unit[p]) * width
            for q in range(width):
                w = net.data[weights + q]
                # a ReLU that is off takes no coefficients
                if w == 0.0 or (net.relu[source] and high[first + q] <= 0.0):
                    continue
                to = np.uint64((first + q) * rows)
                for j in range(count):
                    up[to + j] += w * rising[j]
                    down[to + j] += w * falling[j]


@njit(**PLAIN)
def bound_block(net: Net, coupling: Coupling, work: Work, v: int, lo: Array, hi: Array) -> None:
    """Bounds and lines of a block of units: all are substituted backwards at once.

    Reads: lines of earlier blocks. Writes: error, low, high, forms, lines, reach, coupled."""
    n = lo.shape[0]
    begin = net.unit[v]
    rows = net.unit[v + 1] - begin
    low, high, up, down = work.low, work.high, work.up, work.down
    _set_errors(net, work, v)
    _start_rows(net, work, v)
    for p in range(v - 1, 0, -1):
        if work.touched[p]:
            _substitute(net, work, p, begin, rows)
    if v == coupling.after:
        _coupled_versions(coupling, work, begin, lo, hi)
    for d in range(n):
        at, form = np.uint64(d * rows), np.uint64(begin * n + d * rows)
        for j in range(np.uint64(rows)):
            c = up[at + j]
            work.forms[form + j] = c
            high[np.uint64(begin) + j] += max(c * lo[d], c * hi[d])
            c = down[at + j]
            low[np.uint64(begin) + j] += min(c * lo[d], c * hi[d])
    if v == coupling.after:
        _choose_coupled(net, coupling, work, lo.shape[0])
    for i in range(begin, begin + rows):
        if net.square[v]:
            chord, lift, alpha, drop = lines_of_square(low[i], high[i], 0.5)
            work.slope[i] = 0.5
            work.reach[i] = max(low[i] * low[i], high[i] * high[i]) * (1.0 + net.rounding)
        else:
            chord, lift, alpha = lines(low[i], high[i])
            drop = 0.0
            work.slope[i] = alpha
            work.reach[i] = max(high[i], 0.0)
        work.chord[i] = chord
        work.lift[i] = lift
        work.alpha[i] = alpha
        work.drop[i] = drop


@njit(**PLAIN)
def _coupled_versions(coupling: Coupling, work: Work, begin: int, lo: Array, hi: Array) -> None:
    """Bounds of the units of V∘F through the coupling.

    Reads: up, down, low, high (constants). Writes: versions (upper bound, lower bound, and the
    upper forms at the centre: without the coupling, with it)."""
    rows = coupling.bias.shape[0]
    found = work.versions
    for j in range(rows):
        found[j] = work.high[begin + j] + coupling.bias[j] + coupling.error[j]
        found[rows + j] = work.low[begin + j] + coupling.bias[j] - coupling.error[j]
        found[2 * rows + j] = work.high[begin + j]
        found[3 * rows + j] = found[j]
    for d in range(lo.shape[0]):
        low, high, middle = lo[d], hi[d], 0.5 * (lo[d] + hi[d])
        for j in range(rows):
            c = work.up[d * rows + j]
            found[2 * rows + j] += c * middle
            c += coupling.skip[d, j]
            found[3 * rows + j] += c * middle
            found[j] += max(c * low, c * high)
            c = work.down[d * rows + j] + coupling.skip[d, j]
            found[rows + j] += min(c * low, c * high)


@njit(**PLAIN)
def _choose_coupled(net: Net, coupling: Coupling, work: Work, n: int) -> None:
    """A unit of V∘F takes the better of its two versions.

    Reads: versions, bounds of V's units. Writes: coupled, low, high, error, forms."""
    begin, before = net.unit[coupling.after], net.unit[coupling.before]
    rows = coupling.bias.shape[0]
    found = work.versions
    for j in range(rows):
        unit = begin + j
        low, high = work.low[unit], work.high[unit]
        work.coupled[unit] = False
        if not (coupling.allowed[j] and low < 0.0 < high):
            continue
        cost = _line_at(found[rows + j], found[j], found[3 * rows + j])
        for i in range(rows):
            middle = 0.5 * (work.low[before + i] + work.high[before + i])
            cost += coupling.theta[j, i] * max(middle, 0.0)
        if cost < _line_at(low, high, found[2 * rows + j]):
            work.coupled[unit] = True
            work.low[unit], work.high[unit] = found[rows + j], found[j]
            work.error[unit] += coupling.error[j]
            for d in range(n):
                work.forms[begin * n + d * rows + j] += coupling.skip[d, j]


@njit(**PLAIN)
def _line_at(low: float, high: float, z: float) -> float:
    """The upper line of a unit with these bounds, at z."""
    if low >= 0.0:
        return z
    return 0.0 if high <= 0.0 else (z - low) * high / (high - low)


@njit(**PLAIN)
def bound_needed(
    net: Net, coupling: Coupling, work: Work, needs: NDArray[np.bool_], lo: Array, hi: Array
) -> None:
    """Bounds of all that one inequality depends on and that is not yet bounded."""
    for v in range(1, net.relu.shape[0]):
        if not needs[v] or work.known[v]:
            continue
        if net.relu[v] or net.square[v]:
            work.known[v] = True
            bound_block(net, coupling, work, v, lo, hi)
        else:
            _set_errors(net, work, v)


@njit(**PLAIN)
def descend(net: Net, coupling: Coupling, work: Work) -> tuple[float, float]:
    """Σ μ_j·s_j substituted down to the bottom, the ReLU blocks that read the inputs alone:
    (constant, slack whatever the slopes of the bottom are).

    Reads: weights (μ), slope, lines, error. Writes: coefficient, touched."""
    last = net.relu.shape[0] - 1
    coefficient = work.coefficient
    work.touched[:last] = False
    work.touched[last] = True
    coefficient[: net.unit[last]] = 0.0
    copy(work.weights, coefficient[net.unit[last] :])
    constant = slack = 0.0
    for v in range(last, 0, -1):
        if not work.touched[v]:
            continue
        if net.bottom[v]:
            slack += _bottom_slack(net, work, v)
            continue
        if v == coupling.after:
            slack += _onto_lyapunov(net, coupling, work)
        for i in range(net.unit[v], net.unit[v + 1]):
            c = coefficient[i]
            if c == 0.0 or (net.relu[v] and work.high[i] <= 0.0):
                continue
            if net.relu[v] and work.low[i] < 0.0:
                if c > 0.0:
                    constant += c * work.lift[i]
                    slack += net.rounding * c * work.lift[i]
                    c *= work.chord[i]
                else:
                    c *= work.slope[i]
            elif net.square[v]:
                c, shift, doubt = square_line(work, i, c)
                constant += shift
                slack += net.rounding * abs(shift) + doubt
            constant += c * net.bias[i]
            slack += abs(c) * work.error[i]
            if v == coupling.after and work.coupled[i]:
                k = i - net.unit[v]
                constant += c * coupling.bias[k]
                for d in range(net.unit[1]):
                    coefficient[d] += c * coupling.skip[d, k]
            for e in range(net.first[v], net.first[v + 1]):
                p = net.source[e]
                work.touched[p] = True
                width = net.unit[p + 1] - net.unit[p]
                at = np.uint64(net.weight[e] + (i - net.unit[v]) * width)
                to = np.uint64(net.unit[p])
                for q in range(np.uint64(width)):
                    coefficient[to + q] += c * net.data[at + q]
    return constant, (slack + net.rounding * abs(constant)) * (1.0 + net.rounding)


@njit(**PLAIN)
def square_line(work: Work, i: int, c: float) -> tuple[float, float, float]:
    """A square's line for a coefficient c, times c: slope, value at 0, and how far a checker's
    line, between its own bounds, may be off."""
    low, high = work.low[i], work.high[i]
    chord, lift, slope, drop = lines_of_square(low, high, work.slope[i])
    doubt = 8.0 * abs(c) * max(abs(low), abs(high)) * work.error[i]
    return (c * chord, c * lift, doubt) if c > 0.0 else (c * slope, c * drop, doubt)


@njit(**PLAIN)
def _bottom_slack(net: Net, work: Work, v: int) -> float:
    """The most that substituting a block of the bottom costs, whatever its lower slopes are.

    Reads: coefficient, error, lines."""
    slack = 0.0
    for i in range(net.unit[v], net.unit[v + 1]):
        if work.high[i] > 0.0:
            c = work.coefficient[i]
            slack += abs(c) * work.error[i] + net.rounding * max(c, 0.0) * work.lift[i]
    return slack


@njit(**PLAIN)
def _onto_lyapunov(net: Net, coupling: Coupling, work: Work) -> float:
    """Give V's units their part of the coupled units of V∘F; what that may cost.

    Reads: coefficient, coupled. Writes: coefficient of V's units."""
    after, before = net.unit[coupling.after], net.unit[coupling.before]
    slack = 0.0
    for k in range(coupling.bias.shape[0]):
        if work.coupled[after + k]:
            slack += work.weights[0] * coupling.slack[k]
            for i in range(coupling.bias.shape[0]):
                part = work.coefficient[after + k] * coupling.theta[k, i]
                work.coefficient[before + i] += part
    return slack


@njit(**PLAIN)
def forward(net: Net, work: Work, x: Array, on_lines: bool) -> float:
    """The smallest of the inequalities at an input, in floats and for the search only: of the
    network itself, or of the lines that `descend` chose.

    Reads: coefficient, touched, lines. Writes: relaxed, the input of every unit."""
    last = net.relu.shape[0] - 1
    copy(x, work.relaxed)
    for v in range(1, last + 1):
        if on_lines and not work.touched[v]:
            continue
        begin = net.unit[v]
        rows = net.unit[v + 1] - begin
        for i in range(begin, begin + rows):
            work.relaxed[i] = net.bias[i]
        for e in range(net.first[v], net.first[v + 1]):
            p = net.source[e]
            first = net.unit[p]
            for q in range(net.unit[p + 1] - first):
                value = _unit_value(net, work, p, first + q, on_lines)
                at = np.uint64(net.turned[e] + q * rows)
                if value != 0.0:
                    for j in range(np.uint64(rows)):
                        work.relaxed[np.uint64(begin) + j] += net.data[at + j] * value
    least = np.inf
    for i in range(net.unit[last], net.unit[last + 1]):
        least = min(least, work.relaxed[i])
    return least


@njit(**PLAIN)
def _unit_value(net: Net, work: Work, v: int, i: int, on_lines: bool) -> float:
    """Unit i of a block, or its value on the line that its coefficient chose.

    Reads: relaxed, coefficient, lines."""
    z = work.relaxed[i]
    if net.square[v]:
        if not on_lines:
            return z * z
        chord, lift, slope, drop = lines_of_square(work.low[i], work.high[i], work.slope[i])
        return chord * z + lift if work.coefficient[i] > 0.0 else slope * z + drop
    if not net.relu[v]:
        return z
    if not on_lines:
        return max(z, 0.0)
    if work.high[i] <= 0.0 or work.low[i] >= 0.0:
        return z if work.low[i] >= 0.0 else 0.0
    if work.coefficient[i] > 0.0:
        return work.chord[i] * z + work.lift[i]
    return work.slope[i] * z
