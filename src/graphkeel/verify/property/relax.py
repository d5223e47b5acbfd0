"""Linear bounds of blocks over a box by backward substitution, in float64 with rounding counted in
(numba).

The lines around a ReLU are those of docs/formats.md. A step that replaces Σ d_i·z_i by
Σ d_i·(W_i·x + b_i) is rounded by at most γ·Σ |d_i|·m_i, m_i = |W_i|·|x| + |b_i| the magnitude of
z_i on this box and γ the relative rounding of a sum as long as the network has units; so each row
pays γ·|d_i|·m_i for every unit that it passes, and the bound is the true one plus that slack. `lo`
and `hi`, shape (n,), are the ends of a box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.kernel import OPTIONS, lines
from graphkeel.verify.problem import Array
from graphkeel.verify.property.pack import Net


class Work(NamedTuple):
    """Scratch arrays; per unit unless said otherwise."""

    known: NDArray[np.bool_]  # per value: whether its bounds are those of this box
    low: Array  # bounds before the ReLU
    high: Array
    chord: Array  # upper line: chord·z + lift
    lift: Array
    alpha: Array  # default lower slope
    slope: Array  # the lower slope in use
    magnitude: Array  # of the affine part
    reach: Array  # of the value
    forms: Array  # (units·n): a linear form of every unit with a ReLU, for the choice of cuts
    up: Array  # (units·widest): coefficients of upper bounds, unit by unit
    down: Array
    touched: NDArray[np.bool_]  # per value: whether it has coefficients
    constant_up: Array  # (widest,)
    constant_down: Array
    slack_up: Array
    slack_down: Array
    coefficient: Array  # of one row, per unit
    relaxed: Array  # the value of each unit on the row's lines at the maximiser
    row: Array  # ((inequalities + 1)·(n + 1)): the last form, then those of the inequalities
    peak: Array  # (n,)
    score: Array  # (n,)
    share: Array  # (n,)
    weights: Array  # (inequalities,): μ
    slack: Array  # (inequalities + 1,): of the inequalities' forms, then of the last form
    inner: Array  # (2, n): what clipping leaves of a box


def workspace(net: Net, n: int) -> Work:
    """Scratch arrays for one worker."""
    units = int(net.unit[-1])
    values = net.relu.shape[0]
    widest = int(np.diff(net.unit).max())
    rows = net.needs.shape[0]
    shapes: dict[str, Any] = dict.fromkeys(Work._fields, units)
    shapes |= {"known": values, "touched": values, "forms": units * n}
    shapes |= dict.fromkeys(("up", "down"), units * widest)
    shapes |= dict.fromkeys(("constant_up", "constant_down", "slack_up", "slack_down"), widest)
    shapes |= {"row": (rows + 1) * (n + 1), "peak": n, "score": n, "share": n}
    shapes |= {"weights": rows, "slack": rows + 1}
    shapes["inner"] = (2, n)
    kinds: dict[str, Any] = {"known": np.bool_, "touched": np.bool_}
    return Work(
        **{name: np.zeros(size, kinds.get(name, np.float64)) for name, size in shapes.items()}
    )


@njit(**OPTIONS)
def begin_box(net: Net, work: Work, lo: Array, hi: Array) -> None:
    """Forget the last box.

    Writes: known, reach of the inputs."""
    for v in range(net.relu.shape[0]):
        work.known[v] = False
    for d in range(lo.shape[0]):
        work.reach[d] = max(abs(lo[d]), abs(hi[d]))


@njit(**OPTIONS)
def _set_magnitudes(net: Net, work: Work, v: int) -> None:
    """Magnitudes of a block's affine part from the reach of what it reads.

    Reads: reach. Writes: magnitude, and reach where no ReLU follows."""
    for i in range(net.unit[v], net.unit[v + 1]):
        work.magnitude[i] = abs(net.bias[i])
    for e in range(net.first[v], net.first[v + 1]):
        p = net.source[e]
        at = net.weight[e]
        for i in range(net.unit[v], net.unit[v + 1]):
            total = 0.0
            for q in range(net.unit[p], net.unit[p + 1]):
                total += abs(net.data[at]) * work.reach[q]
                at += 1
            work.magnitude[i] += total
    for i in range(net.unit[v], net.unit[v + 1]):
        work.magnitude[i] *= 1.0 + net.rounding
        work.reach[i] = work.magnitude[i]


@njit(**OPTIONS)
def _clear(net: Net, work: Work, v: int, rows: int, both: bool) -> None:
    """Coefficients of a value that is met for the first time."""
    if work.touched[v]:
        return
    work.touched[v] = True
    for k in range(net.unit[v] * rows, net.unit[v + 1] * rows):
        work.up[k] = 0.0
    if both:
        for k in range(net.unit[v] * rows, net.unit[v + 1] * rows):
            work.down[k] = 0.0


@njit(**OPTIONS)
def _start_rows(net: Net, work: Work, v: int) -> int:
    """The rows of a block as coefficients of what it reads; returns their number.

    Writes: up, down, touched, constants, slacks."""
    rows = net.unit[v + 1] - net.unit[v]
    for p in range(v):
        work.touched[p] = False
    for j in range(rows):
        i = net.unit[v] + j
        work.constant_up[j] = net.bias[i]
        work.constant_down[j] = net.bias[i]
        work.slack_up[j] = net.rounding * work.magnitude[i]
        work.slack_down[j] = net.rounding * work.magnitude[i]
    for e in range(net.first[v], net.first[v + 1]):
        p = net.source[e]
        _clear(net, work, p, rows, True)
        width = net.unit[p + 1] - net.unit[p]
        for q in range(width):
            place = (net.unit[p] + q) * rows
            for j in range(rows):
                w = net.data[net.weight[e] + j * width + q]
                work.up[place + j] += w
                work.down[place + j] += w
    return int(rows)


@njit(**OPTIONS)
def _through_relu(net: Net, work: Work, v: int, rows: int) -> None:
    """Replace the coefficients of a ReLU block's outputs by those of its inputs.

    Reads: lines. Writes: up, down, constants, slacks."""
    for i in range(net.unit[v], net.unit[v + 1]):
        at = i * rows
        if work.high[i] <= 0.0 or work.low[i] >= 0.0:
            continue
        chord, slope, lift = work.chord[i], work.slope[i], work.lift[i]
        pay = net.rounding * lift
        for j in range(rows):
            c = work.up[at + j]
            rise = max(c, 0.0)
            work.constant_up[j] += rise * lift
            work.slack_up[j] += rise * pay
            work.up[at + j] = rise * chord + min(c, 0.0) * slope
        for j in range(rows):
            c = work.down[at + j]
            fall = min(c, 0.0)
            work.constant_down[j] += fall * lift
            work.slack_down[j] -= fall * pay
            work.down[at + j] = fall * chord + max(c, 0.0) * slope


@njit(**OPTIONS)
def _onto_sources(net: Net, work: Work, v: int, rows: int) -> None:
    """Substitute a block's affine part.

    Reads: up and down at v. Writes: up and down at its sources, constants, slacks."""
    for i in range(net.unit[v], net.unit[v + 1]):
        if net.relu[v] and work.high[i] <= 0.0:
            continue
        at = i * rows
        bias = net.bias[i]
        pay = net.rounding * work.magnitude[i]
        for j in range(rows):
            work.constant_up[j] += work.up[at + j] * bias
            work.constant_down[j] += work.down[at + j] * bias
            work.slack_up[j] += abs(work.up[at + j]) * pay
            work.slack_down[j] += abs(work.down[at + j]) * pay
    for e in range(net.first[v], net.first[v + 1]):
        p = net.source[e]
        _clear(net, work, p, rows, True)
        width = net.unit[p + 1] - net.unit[p]
        for i in range(net.unit[v], net.unit[v + 1]):
            if net.relu[v] and work.high[i] <= 0.0:
                continue
            at = i * rows
            weights = net.weight[e] + (i - net.unit[v]) * width
            for q in range(width):
                w = net.data[weights + q]
                # a ReLU that is off takes no coefficients
                if w == 0.0 or (net.relu[p] and work.high[net.unit[p] + q] <= 0.0):
                    continue
                to = (net.unit[p] + q) * rows
                for j in range(rows):
                    work.up[to + j] += w * work.up[at + j]
                    work.down[to + j] += w * work.down[at + j]


@njit(**OPTIONS)
def _bound_block(net: Net, work: Work, v: int, lo: Array, hi: Array) -> None:
    """Bounds and lines of a ReLU block.

    Reads: lines of earlier blocks. Writes: low, high, chord, lift, alpha, slope, reach, forms."""
    n = lo.shape[0]
    rows = _start_rows(net, work, v)
    for p in range(v - 1, 0, -1):
        if work.touched[p]:
            if net.relu[p]:
                _through_relu(net, work, p, rows)
            _onto_sources(net, work, p, rows)
    _clear(net, work, 0, rows, True)
    for j in range(rows):
        i = net.unit[v] + j
        high, low = work.constant_up[j], work.constant_down[j]
        size_up, size_down = abs(high), abs(low)
        for d in range(n):
            a, b = work.up[d * rows + j], work.down[d * rows + j]
            high += max(a * lo[d], a * hi[d])
            low += min(b * lo[d], b * hi[d])
            size_up += abs(a) * work.reach[d]
            size_down += abs(b) * work.reach[d]
            work.forms[i * n + d] = 0.5 * (a + b)
        work.high[i] = high + 1.01 * (work.slack_up[j] + net.rounding * size_up) + 1e-290
        work.low[i] = low - 1.01 * (work.slack_down[j] + net.rounding * size_down) - 1e-290
        chord, lift, alpha = lines(work.low[i], work.high[i])
        work.chord[i] = chord
        work.lift[i] = lift
        work.alpha[i] = alpha
        work.slope[i] = alpha
        work.reach[i] = max(work.high[i], 0.0)


@njit(**OPTIONS)
def bound_needed(net: Net, work: Work, needs: NDArray[np.bool_], lo: Array, hi: Array) -> None:
    """Bounds of all that one inequality depends on and that is not yet bounded."""
    for v in range(1, net.relu.shape[0]):
        if not needs[v] or work.known[v]:
            continue
        work.known[v] = v < net.relu.shape[0] - 1
        _set_magnitudes(net, work, v)
        if net.relu[v]:
            _bound_block(net, work, v, lo, hi)


@njit(**OPTIONS)
def descend(net: Net, work: Work, lo: Array, hi: Array) -> tuple[float, float]:
    """The upper bound of Σ μ_j·s_j with the slopes in use: (bound without its slack, slack).

    Reads: weights (μ), slope, lines. Writes: coefficient (on every unit's value; of the inputs, the
    linear form), peak (its maximiser), and in the first line of `row` the form's constant."""
    last = net.relu.shape[0] - 1
    start = net.unit[last]
    for p in range(last):
        work.touched[p] = False
    work.touched[0] = True
    for i in range(net.unit[last]):
        work.coefficient[i] = 0.0
    constant = slack = 0.0
    for j in range(net.needs.shape[0]):
        work.coefficient[start + j] = work.weights[j]
    work.touched[last] = True
    for v in range(last, 0, -1):
        if not work.touched[v]:
            continue
        for i in range(net.unit[v], net.unit[v + 1]):
            c = work.coefficient[i]
            if c == 0.0:
                continue
            if net.relu[v]:
                if work.high[i] <= 0.0:
                    continue
                if work.low[i] < 0.0:
                    if c > 0.0:
                        constant += c * work.lift[i]
                        slack += net.rounding * c * work.lift[i]
                        c *= work.chord[i]
                    else:
                        c *= work.slope[i]
            constant += c * net.bias[i]
            slack += net.rounding * abs(c) * work.magnitude[i]
            for e in range(net.first[v], net.first[v + 1]):
                p = net.source[e]
                work.touched[p] = True
                width = net.unit[p + 1] - net.unit[p]
                at = net.weight[e] + (i - net.unit[v]) * width
                to = net.unit[p]
                for q in range(width):
                    work.coefficient[to + q] += c * net.data[at + q]
    work.row[lo.shape[0]] = constant
    total = constant
    size = abs(constant)
    for d in range(lo.shape[0]):
        a = work.coefficient[d]
        up, down = a * hi[d], a * lo[d]
        work.peak[d] = hi[d] if up > down else lo[d]
        total += max(up, down)
        size += abs(a) * work.reach[d]
    return total, 1.01 * (slack + net.rounding * size) + 1e-290


@njit(**OPTIONS)
def relaxed_values(net: Net, work: Work) -> None:
    """The value of every unit on the lines that `descend` chose, at its maximiser: times the
    coefficients, the gradient of the bound in the slopes.

    Reads: peak, coefficient, touched, lines. Writes: relaxed (affine parts)."""
    last = net.relu.shape[0] - 1
    for d in range(work.peak.shape[0]):
        work.relaxed[d] = work.peak[d]
    for v in range(1, last + 1):
        if not work.touched[v]:
            continue
        for i in range(net.unit[v], net.unit[v + 1]):
            total = net.bias[i]
            for e in range(net.first[v], net.first[v + 1]):
                p = net.source[e]
                width = net.unit[p + 1] - net.unit[p]
                at = net.weight[e] + (i - net.unit[v]) * width
                from_ = net.unit[p]
                if not net.relu[p]:
                    for q in range(width):
                        total += net.data[at + q] * work.relaxed[from_ + q]
                    continue
                for q in range(width):
                    z = work.relaxed[from_ + q]
                    total += net.data[at + q] * _line_value(work, from_ + q, z)
            work.relaxed[i] = total


@njit(**OPTIONS)
def _line_value(work: Work, i: int, z: float) -> float:
    """A ReLU's value on the line that its coefficient chose."""
    if work.high[i] <= 0.0:
        return 0.0
    if work.low[i] >= 0.0:
        return z
    if work.coefficient[i] > 0.0:
        return work.chord[i] * z + work.lift[i]
    return work.slope[i] * z


@njit(**OPTIONS)
def values_at(net: Net, work: Work, x: Array) -> float:
    """The smallest of the inequalities at an input x, shape (n,), in floats.

    Writes: relaxed (values)."""
    last = net.relu.shape[0] - 1
    for d in range(x.shape[0]):
        work.relaxed[d] = x[d]
    for v in range(1, last + 1):
        for i in range(net.unit[v], net.unit[v + 1]):
            total = net.bias[i]
            for e in range(net.first[v], net.first[v + 1]):
                p = net.source[e]
                width = net.unit[p + 1] - net.unit[p]
                at = net.weight[e] + (i - net.unit[v]) * width
                for q in range(width):
                    total += net.data[at + q] * work.relaxed[net.unit[p] + q]
            work.relaxed[i] = max(total, 0.0) if net.relu[v] else total
    least = np.inf
    for i in range(net.unit[last], net.unit[last + 1]):
        least = min(least, work.relaxed[i])
    return least
