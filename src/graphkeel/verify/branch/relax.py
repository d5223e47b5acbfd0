"""Rigorous linear relaxations of a row over a box, in float64 (numba).

The formulas are those of docs/formats.md: backward substitution, a chord above, a line through
the origin below. Nothing relies on directed rounding; `pack.py` explains the error terms. Loops run
over a layer's units innermost, because those are contiguous and become vector instructions.
`lo` and `hi`, shape (n,), are the ends of a box."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.branch.pack import (
    BASE,
    BIAS,
    ERROR,
    FORM,
    N_IN,
    N_OUT,
    TRANSPOSED,
    UNIT,
    WEIGHT,
    Coupling,
    Net,
)
from graphkeel.verify.kernel import OPTIONS, lines
from graphkeel.verify.problem import Array
from graphkeel.verify.query import Row


class Work(NamedTuple):
    """Scratch arrays of one worker; per unit unless said otherwise."""

    low: Array  # pre-activation bounds
    high: Array
    chord: Array  # upper line: chord·z + lift
    lift: Array
    alpha: Array  # default lower slope
    error: Array
    coefficient: Array  # g's coefficient on the unit's output
    slope: Array  # the slope used in the last substitution
    coupled: NDArray[np.bool_]  # whether the unit was replaced through the coupling
    free: NDArray[np.int64]  # units whose lower slope may be chosen
    forms: Array  # (units·n): the linear form of deep units, for the choice of cuts
    up: Array  # four matrices for backward substitution
    down: Array
    up_next: Array
    down_next: Array
    direct: Array  # (n): coefficients of y that do not go through a first layer
    row: Array  # (n): coefficients of y
    peak: Array  # (n): where the linear form is largest
    mean: Array  # (n)
    score: Array  # (n)
    gradient: Array
    offset: Array
    unit_forms: Array  # ((units + 1)·n): forms of the free units, then the fixed part


def workspace(row: Row) -> Work:
    """Scratch arrays for one worker."""
    n, size = row.n, max(row.units, 1)
    widest = max([n, *(layer.n_out for chain in row.hidden for layer in chain)])
    shapes = dict.fromkeys(Work._fields, size)
    shapes |= dict.fromkeys(("up", "down", "up_next", "down_next"), widest * (widest + 2))
    shapes |= dict.fromkeys(("direct", "row", "peak", "mean", "score"), n)
    shapes |= {"forms": size * n, "unit_forms": (size + 1) * n}
    kinds = {"coupled": np.bool_, "free": np.int64}
    return Work(
        **{name: np.zeros(shape, kinds.get(name, np.float64)) for name, shape in shapes.items()}
    )


@njit(**OPTIONS)
def _set_lines(work: Work, unit: int) -> None:
    """Chord and default lower slope of one unit from its bounds.

    Reads: low, high. Writes: chord, lift, alpha."""
    chord, lift, alpha = lines(work.low[unit], work.high[unit])
    work.chord[unit] = chord
    work.lift[unit] = lift
    work.alpha[unit] = alpha


@njit(**OPTIONS)
def _first_bounds(net: Net, work: Work, k: int, lo: Array, hi: Array) -> None:
    """Bounds of a first hidden layer, where interval arithmetic is exact.

    Reads: net, the box. Writes: low, high, error."""
    table, data = net.table, net.data
    n_out, unit = table[k, N_OUT], table[k, UNIT]
    at, bias, errors = table[k, TRANSPOSED], table[k, BIAS], table[k, ERROR]
    low, high, error = work.low, work.high, work.error
    for j in range(n_out):
        error[unit + j] = data[table[k, BASE] + j]
        low[unit + j] = data[bias + j]
        high[unit + j] = data[bias + j]
    for i in range(lo.shape[0]):
        for j in range(n_out):
            w = data[at + i * n_out + j]
            a, b = w * lo[i], w * hi[i]
            low[unit + j] += min(a, b)
            high[unit + j] += max(a, b)
        if errors >= 0:
            largest = max(abs(lo[i]), abs(hi[i]))
            for j in range(n_out):
                error[unit + j] += data[errors + i * n_out + j] * largest
    for j in range(n_out):
        low[unit + j] -= error[unit + j]
        high[unit + j] += error[unit + j]


@njit(**OPTIONS)
def _deep_errors(net: Net, work: Work, k: int) -> None:
    """Error of a later layer: constant part plus weight error times the largest input on this box.

    Reads: net, high of the layer below. Writes: error."""
    table, data = net.table, net.data
    n_out, unit, below = table[k, N_OUT], table[k, UNIT], table[k - 1, UNIT]
    for j in range(n_out):
        work.error[unit + j] = data[table[k, BASE] + j]
    at = table[k, ERROR]
    if at >= 0:
        for i in range(table[k, N_IN]):
            largest = max(work.high[below + i], 0.0)
            for j in range(n_out):
                work.error[unit + j] += data[at + i * n_out + j] * largest


@njit(**OPTIONS)
def _through_relu(
    net: Net, work: Work, m: int, i: int, unit: int, n_out: int, up: Array, down: Array
) -> None:
    """Send the coefficients of layer m's unit i (one per row) through its lines.

    Reads: the unit's lines and error. Writes: up, down (its row), and the constants into low, high.
    """
    low, high = work.low, work.high
    source = net.table[m, UNIT] + i
    row = i * n_out
    if low[source] < 0.0:
        s, alpha = work.chord[source], work.alpha[source]
        lift = work.lift[source] * (1.0 + net.rounding)  # pays for the rounding of the constants
        for j in range(n_out):
            c = up[row + j]
            high[unit + j] += max(c, 0.0) * lift
            up[row + j] = max(c, 0.0) * s + min(c, 0.0) * alpha
            c = down[row + j]
            low[unit + j] += min(c, 0.0) * lift
            down[row + j] = max(c, 0.0) * alpha + min(c, 0.0) * s
    bias, error = net.data[net.table[m, BIAS] + i], work.error[source]
    for j in range(n_out):
        c = up[row + j]
        high[unit + j] += c * bias + abs(c) * error
        c = down[row + j]
        low[unit + j] += c * bias - abs(c) * error


@njit(**OPTIONS)
def _deep_bounds(
    net: Net, coupling: Coupling, work: Work, k: int, first: int, lo: Array, hi: Array
) -> None:
    """Bounds of a later hidden layer: all its rows are substituted backwards at once.

    Reads: net, all lines of the layers below. Writes: low, high, forms, coupled; up, down."""
    table, data = net.table, net.data
    n_out, unit, at, bias = table[k, N_OUT], table[k, UNIT], table[k, TRANSPOSED], table[k, BIAS]
    up, down, up_next, down_next = work.up, work.down, work.up_next, work.down_next
    for i in range(table[k, N_IN] * n_out):
        up[i] = data[at + i]
        down[i] = data[at + i]
    for j in range(n_out):
        work.low[unit + j] = data[bias + j] - work.error[unit + j]
        work.high[unit + j] = data[bias + j] + work.error[unit + j]
    for m in range(k - 1, first - 1, -1):
        n_in, weight = table[m, N_IN], table[m, WEIGHT]
        for i in range(n_in * n_out):
            up_next[i] = 0.0
            down_next[i] = 0.0
        for i in range(table[m, N_OUT]):
            if work.high[table[m, UNIT] + i] <= 0.0:
                continue
            _through_relu(net, work, m, i, unit, n_out, up, down)
            row = i * n_out
            for d in range(n_in):
                w = data[weight + i * n_in + d]
                for j in range(n_out):
                    up_next[d * n_out + j] += up[row + j] * w
                    down_next[d * n_out + j] += down[row + j] * w
        up, up_next = up_next, up
        down, down_next = down_next, down
    _concretise(net, coupling, work, k, lo, hi, up, down, up_next, down_next)


@njit(**OPTIONS)
def _concretise(
    net: Net,
    coupling: Coupling,
    work: Work,
    k: int,
    lo: Array,
    hi: Array,
    up: Array,
    down: Array,
    a: Array,
    b: Array,
) -> None:
    """Finish the bounds of layer k at the box; a coupled unit takes the better of two versions."""
    n_out, unit, form = net.table[k, N_OUT], net.table[k, UNIT], net.table[k, FORM]
    through = k == coupling.layer
    # a[n_out:] and b[n_out:] hold the values of both upper forms at the box's centre
    for j in range(n_out):
        work.coupled[unit + j] = False
        if through:
            a[j] = work.high[unit + j] + coupling.bias[j] + coupling.error[j]
            b[j] = work.low[unit + j] + coupling.bias[j] - coupling.error[j]
            a[n_out + j], b[n_out + j] = work.high[unit + j], a[j]
    for d in range(lo.shape[0]):
        low, high, middle = lo[d], hi[d], 0.5 * (lo[d] + hi[d])
        for j in range(n_out):
            c = up[d * n_out + j]
            work.forms[form + d * n_out + j] = c
            work.high[unit + j] += max(c * low, c * high)
            c = down[d * n_out + j]
            work.low[unit + j] += min(c * low, c * high)
        if through:
            for j in range(n_out):
                a[n_out + j] += up[d * n_out + j] * middle
                c = up[d * n_out + j] + coupling.skip[d, j]
                b[n_out + j] += c * middle
                a[j] += max(c * low, c * high)
                c = down[d * n_out + j] + coupling.skip[d, j]
                b[j] += min(c * low, c * high)
    if through:
        before = net.table[net.start[1], UNIT]
        for j in range(n_out):
            low, high = work.low[unit + j], work.high[unit + j]
            if not (coupling.allowed[j] and low < 0.0 < high):
                continue
            cost = _line_at(b[j], a[j], b[n_out + j])
            for i in range(n_out):
                cost += coupling.theta[j, i] * max(
                    0.5 * (work.low[before + i] + work.high[before + i]), 0.0
                )
            if cost < _line_at(low, high, a[n_out + j]):
                work.coupled[unit + j] = True
                work.low[unit + j], work.high[unit + j] = b[j], a[j]
                work.error[unit + j] += coupling.error[j]
                for d in range(lo.shape[0]):
                    work.forms[form + d * n_out + j] += coupling.skip[d, j]


@njit(**OPTIONS)
def _line_at(low: float, high: float, z: float) -> float:
    """The upper line of a unit with these bounds, at z."""
    if low >= 0.0:
        return z
    return 0.0 if high <= 0.0 else (z - low) * high / (high - low)


@njit(**OPTIONS)
def hidden_bounds(net: Net, coupling: Coupling, work: Work, lo: Array, hi: Array) -> None:
    """Bounds and lines of every hidden unit of both chains.

    Reads: net, the box. Writes: low, high, error, chord, lift, alpha, forms, coupled."""
    for chain in (1, 0):  # V first: the choice of coupled units reads its bounds
        first = net.start[chain]
        for k in range(first, net.start[chain + 1]):
            if k == first:
                _first_bounds(net, work, k, lo, hi)
            else:
                _deep_errors(net, work, k)
                _deep_bounds(net, coupling, work, k, first, lo, hi)
            for j in range(net.table[k, N_OUT]):
                _set_lines(work, net.table[k, UNIT] + j)


@njit(**OPTIONS)
def _final_rows(net: Net, coupling: Coupling, work: Work) -> float:
    """Coefficients of g on both chains' last layers, couplings included; their uncertainty.

    Reads: net, high, coupled. Writes: coefficient (last layers), direct."""
    slack = 0.0
    for chain in range(2):
        last = net.start[chain + 1] - 1
        if last < net.start[chain]:
            continue
        for unit in range(net.table[last, UNIT], net.table[last, UNIT] + net.table[last, N_OUT]):
            work.coefficient[unit] = net.final[0, unit]
            slack += net.final[1, unit] * max(work.high[unit], 0.0) + net.final[2, unit]
    for d in range(work.direct.shape[0]):
        work.direct[d] = net.direct[d]
    if coupling.layer >= 0:
        after, before = net.table[coupling.layer, UNIT], net.table[net.start[1], UNIT]
        width = coupling.bias.shape[0]
        for k in range(width):
            if work.coupled[after + k]:
                slack += coupling.slack[k]
                for i in range(width):
                    work.coefficient[before + i] += coupling.onto[k, i]
    return slack


@njit(**OPTIONS)
def descend(net: Net, coupling: Coupling, work: Work) -> tuple[float, float]:
    """g's coefficients on every unit, from the final rows down to the first layers: (constant,
    slack).

    Reads: net, lines, error, coupled. Writes: coefficient, direct."""
    table, data = net.table, net.data
    constant = net.direct[net.direct.shape[0] - 2]
    slack = net.direct[net.direct.shape[0] - 1] + _final_rows(net, coupling, work)
    for chain in range(2):
        first = net.start[chain]
        for k in range(net.start[chain + 1] - 1, first, -1):
            unit = table[k, UNIT]
            below = table[k - 1, UNIT]
            n_in = table[k, N_IN]
            weight = table[k, WEIGHT]
            for i in range(n_in):
                work.coefficient[below + i] = 0.0
            for j in range(table[k, N_OUT]):
                c = work.coefficient[unit + j]
                if work.high[unit + j] <= 0.0 or c == 0.0:
                    continue
                if c > 0.0:
                    constant += c * work.lift[unit + j]
                    slack += net.rounding * c * work.lift[unit + j]
                    c *= work.chord[unit + j]
                else:
                    c *= work.alpha[unit + j]
                constant += c * data[table[k, BIAS] + j]
                slack += abs(c) * work.error[unit + j]
                for i in range(n_in):
                    work.coefficient[below + i] += c * data[weight + j * n_in + i]
                if work.coupled[unit + j]:
                    constant += c * coupling.bias[j]
                    for d in range(work.direct.shape[0]):
                        work.direct[d] += c * coupling.skip[d, j]
    return constant, slack


@njit(**OPTIONS)
def value(net: Net, work: Work, y: Array) -> float:
    """g at a point, in plain float64: for the search only.

    Args:
        y: a state, shape (n,).
    """
    table, data = net.table, net.data
    n = y.shape[0]
    total = float(net.direct[n])
    x, z = work.up, work.down
    for d in range(n):
        total += net.direct[d] * y[d]
    for chain in range(2):
        first, end = net.start[chain], net.start[chain + 1]
        if end == first:
            continue
        for d in range(n):
            x[d] = y[d]
        for k in range(first, end):
            n_out, at, bias = table[k, N_OUT], table[k, TRANSPOSED], table[k, BIAS]
            for j in range(n_out):
                z[j] = data[bias + j]
            for i in range(table[k, N_IN]):
                if x[i] != 0.0:
                    for j in range(n_out):
                        z[j] += data[at + i * n_out + j] * x[i]
            for j in range(n_out):
                x[j] = max(z[j], 0.0)
        unit = table[end - 1, UNIT]
        for j in range(table[end - 1, N_OUT]):
            total += net.final[0, unit + j] * x[j]
    return total
