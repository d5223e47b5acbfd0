"""The last substitution of a box: lower slopes of the first layers, chosen so that the bound gets
small (numba).

With everything above them fixed, the upper bound of g is convex in these slopes: an affine part
plus the maximum of a linear form over the box. Polyak steps towards the value that would prove the
box need a handful of products; the maximisers' mean is a dual point whose value tells when no
slopes can do it, so boxes that no slopes prove cost little."""

from __future__ import annotations

from numba import njit

from graphkeel.verify.branch.pack import BIAS, N_OUT, UNIT, WEIGHT, Net
from graphkeel.verify.branch.relax import Work
from graphkeel.verify.kernel import OPTIONS, rounded_slope
from graphkeel.verify.problem import Array
from graphkeel.verify.settings import KernelSettings


@njit(**OPTIONS)
def default_slopes(net: Net, work: Work) -> tuple[int, float]:
    """The default slopes of the first layers: (number of free units, slack whatever their slopes).

    Reads: coefficient, lines, error. Writes: slope, free."""
    count = 0
    slack = 0.0
    for chain in range(2):
        k = net.start[chain]
        if k == net.start[chain + 1]:
            continue
        for unit in range(net.table[k, UNIT], net.table[k, UNIT] + net.table[k, N_OUT]):
            c = work.coefficient[unit]
            work.slope[unit] = work.chord[unit] if c > 0.0 else work.alpha[unit]
            if work.high[unit] <= 0.0:
                continue
            slack += abs(c) * work.error[unit]
            if work.low[unit] < 0.0 and c > 0.0:
                slack += net.rounding * c * work.lift[unit]
            if work.low[unit] < 0.0 and c < 0.0:
                work.free[count] = unit
                count += 1
    return count, slack


@njit(**OPTIONS)
def linear_form(net: Net, work: Work, skip_free: bool) -> float:
    """The first layers' constant, and g's coefficients on y; free units may be left out.

    Reads: coefficient, slope, lift, direct. Writes: row."""
    data = net.data
    n = work.row.shape[0]
    constant = 0.0
    for d in range(n):
        work.row[d] = work.direct[d]
    for chain in range(2):
        k = net.start[chain]
        if k == net.start[chain + 1]:
            continue
        unit, weight, bias = net.table[k, UNIT], net.table[k, WEIGHT], net.table[k, BIAS]
        for j in range(net.table[k, N_OUT]):
            c = work.coefficient[unit + j]
            if skip_free and c < 0.0 and work.low[unit + j] < 0.0 < work.high[unit + j]:
                continue
            if c > 0.0:
                constant += c * work.lift[unit + j]
            c *= work.slope[unit + j]
            if c != 0.0:
                constant += c * data[bias + j]
                for d in range(n):
                    work.row[d] += c * data[weight + j * n + d]
    return constant


@njit(**OPTIONS)
def maximum(work: Work, lo: Array, hi: Array) -> float:
    """The linear form's maximum over the box.

    Reads: row, the box. Writes: peak, the maximiser."""
    total = 0.0
    for d in range(lo.shape[0]):
        up, down = work.row[d] * hi[d], work.row[d] * lo[d]
        work.peak[d] = hi[d] if up > down else lo[d]
        total += max(up, down)
    return total


@njit(**OPTIONS)
def _free_forms(net: Net, work: Work, count: int) -> None:
    """The forms that one unit of slope adds, for each free unit; the fixed part comes last.

    Reads: free, coefficient, row. Writes: offset, unit_forms."""
    n = work.row.shape[0]
    for f in range(count):
        unit = work.free[f]
        k = net.start[0]
        if net.start[1] == k or unit >= net.table[k, UNIT] + net.table[k, N_OUT]:
            k = net.start[1]
        j = unit - net.table[k, UNIT]
        c = work.coefficient[unit]
        work.offset[f] = c * net.data[net.table[k, BIAS] + j]
        for d in range(n):
            work.unit_forms[f * n + d] = c * net.data[net.table[k, WEIGHT] + j * n + d]
    for d in range(n):
        work.unit_forms[count * n + d] = work.row[d]


@njit(**OPTIONS)
def _form_at(work: Work, count: int, fixed: float, lo: Array, hi: Array) -> float:
    """The bound with the present slopes.

    Reads: slope, offset, unit_forms. Writes: row, peak."""
    n = lo.shape[0]
    total = fixed
    for d in range(n):
        work.row[d] = work.unit_forms[count * n + d]
    for f in range(count):
        s = work.slope[work.free[f]]
        total += s * work.offset[f]
        for d in range(n):
            work.row[d] += s * work.unit_forms[f * n + d]
    return total + maximum(work, lo, hi)


@njit(**OPTIONS)
def _gradient_at_peak(work: Work, count: int) -> float:
    """Subgradient in the slopes, without the parts that point out of [0, 1]: its squared length.

    Reads: slope, offset, unit_forms, peak. Writes: gradient."""
    n = work.row.shape[0]
    norm = 0.0
    for f in range(count):
        g = work.offset[f]
        for d in range(n):
            g += work.unit_forms[f * n + d] * work.peak[d]
        s = work.slope[work.free[f]]
        if (s <= 0.0 and g > 0.0) or (s >= 1.0 and g < 0.0):
            g = 0.0
        work.gradient[f] = g
        norm += g * g
    return norm


@njit(**OPTIONS)
def _dual_value(work: Work, count: int, fixed: float, total_weight: float) -> float:
    """The best any slopes can do at the mean maximiser: a lower bound on the bound."""
    n = work.row.shape[0]
    low = fixed
    for d in range(n):
        low += work.unit_forms[count * n + d] * work.mean[d] / total_weight
    for f in range(count):
        z = work.offset[f]
        for d in range(n):
            z += work.unit_forms[f * n + d] * work.mean[d] / total_weight
        low += min(z, 0.0)
    return low


@njit(**OPTIONS)
def choose_slopes(
    net: Net,
    settings: KernelSettings,
    work: Work,
    count: int,
    constant: float,
    goal: float,
    lo: Array,
    hi: Array,
) -> None:
    """Move the free slopes until the bound is at most `goal` or no slopes can reach it, then round
    them to 1/255.

    Reads: net, coefficient, free, the box. Writes: slope; all of its scratch fields."""
    fixed = linear_form(net, work, True) + constant
    _free_forms(net, work, count)
    weights = 0.0
    for d in range(lo.shape[0]):
        work.mean[d] = 0.0
    for step in range(settings.slope_steps):
        bound = _form_at(work, count, fixed, lo, hi)
        if bound <= goal:
            break
        norm = _gradient_at_peak(work, count)
        if norm == 0.0:
            break
        length = (bound - goal) / norm
        weights += length
        for d in range(lo.shape[0]):
            work.mean[d] += length * work.peak[d]
        due = step % settings.dual_every == settings.dual_every - 1
        if due and _dual_value(work, count, fixed, weights) > goal:
            break
        for f in range(count):
            s = work.slope[work.free[f]] - length * work.gradient[f]
            work.slope[work.free[f]] = min(1.0, max(0.0, s))
    round_slopes(work, count)


@njit(**OPTIONS)
def round_slopes(work: Work, count: int) -> None:
    """Round the free slopes to those that can be stored."""
    for f in range(count):
        unit = work.free[f]
        work.slope[unit] = rounded_slope(work.slope[unit])
