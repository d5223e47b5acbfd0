"""The last substitution of a box: lower slopes, chosen so that the bound of Σ μ_j·s_j gets small
(numba).

With everything above it fixed, the bound is convex in the slopes of the bottom, the ReLU blocks
that read the inputs alone: an affine part plus the maximum of a linear form over the box. Polyak
steps towards the value that would close the box need a handful of products; the maximisers' mean is
a dual point whose value tells when no slopes can do it, so boxes that no slopes close cost little.
Where leaves store the slopes of every unit, a few steps on all of them come first; each needs the
whole network."""

from __future__ import annotations

from numba import njit

from graphkeel.verify.boxes.pack import Coupling, Net
from graphkeel.verify.boxes.relax import Work, descend, forward
from graphkeel.verify.kernel import PLAIN, rounded_slope
from graphkeel.verify.problem import Array
from graphkeel.verify.settings import KernelSettings


@njit(**PLAIN)
def has_choice(net: Net, work: Work, i: int) -> bool:
    """Whether a unit's lower line is used, and there are several."""
    return work.coefficient[i] < 0.0 and (net.squared[i] or work.low[i] < 0.0 < work.high[i])


@njit(**PLAIN)
def find_free(net: Net, work: Work) -> int:
    """The units of the bottom whose lower slope changes the bound: their number.

    Reads: coefficient, bounds. Writes: free."""
    count = 0
    for v in range(1, net.relu.shape[0]):
        if net.bottom[v] and work.touched[v]:
            for i in range(net.unit[v], net.unit[v + 1]):
                if work.coefficient[i] < 0.0 and work.low[i] < 0.0 < work.high[i]:
                    work.free[count] = i
                    count += 1
    return count


@njit(**PLAIN)
def bottom_form(net: Net, work: Work, skip_free: bool) -> float:
    """The bottom's constant, and the row's form over the inputs; free units may be left out.

    Reads: coefficient, lines, slope. Writes: row."""
    n = work.row.shape[0]
    constant = 0.0
    for d in range(n):
        work.row[d] = work.coefficient[d]
    for v in range(1, net.relu.shape[0]):
        if not net.bottom[v] or not work.touched[v]:
            continue
        for i in range(net.unit[v], net.unit[v + 1]):
            c = work.coefficient[i]
            if c == 0.0 or work.high[i] <= 0.0:
                continue
            if work.low[i] < 0.0:
                if c > 0.0:
                    constant += c * work.lift[i]
                    c *= work.chord[i]
                elif skip_free:
                    continue
                else:
                    c *= work.slope[i]
            constant += c * net.bias[i]
            at = net.weight[net.first[v]] + (i - net.unit[v]) * n
            for d in range(n):
                work.row[d] += c * net.data[at + d]
    return constant


@njit(**PLAIN)
def maximum(form: Array, lo: Array, hi: Array, peak: Array) -> float:
    """The maximum of a form over the box, without a constant; writes the maximiser."""
    total = 0.0
    for d in range(lo.shape[0]):
        peak[d] = hi[d] if form[d] > 0.0 else lo[d]
        total += form[d] * peak[d]
    return total


@njit(**PLAIN)
def _free_forms(net: Net, work: Work, count: int) -> None:
    """The forms that one unit of slope adds, for each free unit; the fixed part comes last.

    Reads: free, coefficient, row. Writes: offset, unit_forms."""
    n = work.row.shape[0]
    v = 1
    for f in range(count):
        i = work.free[f]
        while i >= net.unit[v + 1]:
            v += 1
        c = work.coefficient[i]
        at = net.weight[net.first[v]] + (i - net.unit[v]) * n
        work.offset[f] = c * net.bias[i]
        for d in range(n):
            work.unit_forms[f * n + d] = c * net.data[at + d]
    for d in range(n):
        work.unit_forms[count * n + d] = work.row[d]


@njit(**PLAIN)
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
    return total + maximum(work.row, lo, hi, work.peak)


@njit(**PLAIN)
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


@njit(**PLAIN)
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


@njit(**PLAIN)
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
    """Move the free slopes of the bottom until the bound is at most `goal` or no slopes can reach
    it, then round them to 1/255.

    Reads: net, coefficient, free, the box. Writes: slope; all of its scratch fields."""
    fixed = bottom_form(net, work, True) + constant
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
    round_free(work, count)


@njit(**PLAIN)
def round_free(work: Work, count: int) -> None:
    """Round the free slopes to those that can be stored."""
    for f in range(count):
        unit = work.free[f]
        work.slope[unit] = rounded_slope(work.slope[unit])


@njit(**PLAIN)
def _slope_gradient(net: Net, work: Work, i: int) -> float:
    """The bound's derivative in a unit's slope, 0 where that would leave [0, 1].

    Reads: coefficient, bounds, slope, relaxed."""
    if not has_choice(net, work, i):
        return 0.0
    s, g = work.slope[i], work.coefficient[i] * work.relaxed[i]
    if net.squared[i]:
        width = work.high[i] - work.low[i]
        at = work.low[i] + s * width
        g = 2.0 * width * work.coefficient[i] * (work.relaxed[i] - at)
    return 0.0 if (s <= 0.0 and g > 0.0) or (s >= 1.0 and g < 0.0) else g


@njit(**PLAIN)
def choose_all_slopes(
    net: Net, coupling: Coupling, work: Work, steps: int, goal: float, lo: Array, hi: Array
) -> None:
    """Polyak steps on the lower slopes of all units that have a choice, then round them.

    Reads: weights, lines. Writes: slope; coefficient, row, peak, gradient."""
    first, end = net.unit[1], net.unit[net.relu.shape[0] - 1]
    for _ in range(steps):
        constant, _slack = descend(net, coupling, work)
        bound = constant + bottom_form(net, work, False)
        bound += maximum(work.row, lo, hi, work.peak)
        if bound <= goal:
            break
        forward(net, work, work.peak, True)
        norm = 0.0
        for i in range(first, end):
            work.gradient[i] = _slope_gradient(net, work, i)
            norm += work.gradient[i] * work.gradient[i]
        if norm == 0.0:
            break
        length = (bound - goal) / norm
        for i in range(first, end):
            work.slope[i] = min(1.0, max(0.0, work.slope[i] - length * work.gradient[i]))
    for i in range(first, end):
        work.slope[i] = rounded_slope(work.slope[i])
