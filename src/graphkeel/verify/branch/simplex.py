"""Linear programs over a box, a level of V and some half-spaces, by a dense dual simplex (numba).

    maximise  f·y + cost·t   subject to  t ≥ Ry + r,  t ≥ 0,  least ≤ weight·t ≤ most,
                                         Gy + h ≥ 0,  lower ≤ y ≤ upper,        cost ≤ 0.

Written as equations, with a slack behind each inequality, every program of this kind has a basis
whose dual solution is feasible: y in the corner that f points to. From there the dual simplex keeps
the dual solution feasible, so it may stop at any step, and its multipliers are usable. Nothing here
is believed: whoever uses the multipliers bounds what they show by itself, with rounding counted in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from graphkeel.verify.branch.relax import OPTIONS
from graphkeel.verify.problem import Array

TOLERANCE = 1e-9  # relative to the size of the program's numbers


class Program(NamedTuple):
    """The feasible set.

    Args:
        rows: R, shape (m, n).
        bias: r, shape (m,).
        weight: shape (m,), ≥ 0.
        least, most: of weight·t; infinite where there is no such bound.
        half: G, shape (q, n).
        offset: h, shape (q,).
        lower, upper: the box, shape (n,).
    """

    rows: Array
    bias: Array
    weight: Array
    least: float
    most: float
    half: Array
    offset: Array
    lower: Array
    upper: Array


@njit(cache=True, **OPTIONS)
def maximise(
    program: Program, f: Array, cost: Array, offset: float = 0.0
) -> tuple[bool, Array, Array, float, Array]:
    """(solved, y, θ, λ − γ, β): a solution and the multipliers of its constraints, θ of t ≥ Ry + r,
    λ and γ of the two ends of weight·t, β of the half-spaces. Not solved: the set is empty, and the
    multipliers show that the objective plus `offset` is < 0 on it.

    Args:
        program: the feasible set.
        f: the objective's coefficients of y, shape (n,).
        cost: those of t, shape (m,), ≤ 0.
        offset: a constant behind the objective.
    """
    m, n = program.rows.shape
    q = program.half.shape[0]
    height, width = m + 1 + q, n + 2 * m + 1 + q
    t0, s0, end, h0 = n, n + m, n + 2 * m, n + 2 * m + 1
    table = np.zeros((height, width))
    value = np.zeros(height)
    basis = np.zeros(height, np.int64)
    high = np.full(width, np.inf)
    at_high = np.zeros(width, np.bool_)
    basic = np.zeros(width, np.bool_)
    gain = np.zeros(width)  # reduced costs
    y = np.zeros(n)
    # variables from 0 on: y − lower, t, slack of t, of the level, of the half-spaces
    scale = 0.0
    for d in range(n):
        high[d] = program.upper[d] - program.lower[d]
        at_high[d] = f[d] > 0.0
        gain[d] = f[d]
        y[d] = program.upper[d] if at_high[d] else program.lower[d]
        scale = max(scale, abs(f[d]))
    if np.isfinite(program.least) and np.isfinite(program.most):
        high[end] = program.most - program.least
    top = program.most if np.isfinite(program.most) else 0.0
    used = 0.0
    for i in range(m):
        z = program.bias[i]
        for d in range(n):
            z += program.rows[i, d] * y[d]
        active = z >= 0.0
        # t_i − s_i − R_i·y = r_i; the basic one of t_i and s_i is the one that is not negative
        sign = 1.0 if active else -1.0
        basis[i] = t0 + i if active else s0 + i
        value[i] = sign * z
        table[i, t0 + i] = sign
        table[i, s0 + i] = -sign
        for d in range(n):
            table[i, d] = -sign * program.rows[i, d]
        gain[t0 + i] = cost[i]
        scale = max(scale, abs(cost[i]))
        if active:
            used += program.weight[i] * z
            for j in range(width):
                gain[j] -= cost[i] * table[i, j]
    # weight·t + slack = most, t eliminated where it is basic
    table[m, end] = 1.0
    for i in range(m):
        table[m, t0 + i] += program.weight[i]
        if basis[i] == t0 + i:
            for j in range(width):
                table[m, j] -= program.weight[i] * table[i, j]
    basis[m] = end
    value[m] = top - used
    low_end = 0.0 if np.isfinite(program.most) else -np.inf
    if not np.isfinite(program.most):
        high[end] = -program.least if np.isfinite(program.least) else np.inf
    for k in range(q):
        row = m + 1 + k
        basis[row] = h0 + k
        table[row, h0 + k] = 1.0
        value[row] = program.offset[k]
        for d in range(n):
            table[row, d] = -program.half[k, d]
            value[row] += program.half[k, d] * y[d]
    for d in range(n):  # gains may have turned: the box takes any sign
        if gain[d] > 0.0 and not at_high[d]:
            for i in range(height):
                value[i] -= table[i, d] * high[d]
            at_high[d] = True
        elif gain[d] < 0.0 and at_high[d]:
            for i in range(height):
                value[i] += table[i, d] * high[d]
            at_high[d] = False
    for i in range(height):
        basic[basis[i]] = True
    size = 1.0
    for i in range(height):
        size = max(size, abs(value[i]))
    tolerance = TOLERANCE * 1e-3
    solved = True
    for _ in range(20 * (height + n)):
        leaving, worst, up = -1, 0.0, False
        for i in range(height):
            low = low_end if basis[i] == end else 0.0
            below, above = low - value[i], value[i] - high[basis[i]]
            slack = tolerance * (1.0 + abs(value[i]))
            if below > worst and below > slack:
                leaving, worst, up = i, below, False
            if above > worst and above > slack:
                leaving, worst, up = i, above, True
        if leaving < 0:
            break
        entering, best, pivot = -1, np.inf, 0.0
        for j in range(width):
            if basic[j] or high[j] == 0.0:
                continue
            a = -table[leaving, j] if up else table[leaving, j]
            usable = a > 1e-11 if at_high[j] else a < -1e-11
            if usable:
                ratio = abs(gain[j] / a)
                if ratio < best - 1e-13 * scale or (ratio < best + 1e-13 * scale and abs(a) > pivot):
                    entering, best, pivot = j, min(ratio, best), abs(a)
        if entering < 0:
            # nothing blocks the dual solution: it may go on until it outweighs the objective
            solved = False
            total = abs(offset)
            for d in range(n):
                total += abs(f[d]) * max(abs(program.lower[d]), abs(program.upper[d]))
            far = 2.0 * (total + 1.0) / worst
            for j in range(width):
                gain[j] -= -far * table[leaving, j] if up else far * table[leaving, j]
            break
        old = basis[leaving]
        goal = high[old] if up else (low_end if old == end else 0.0)
        step = (value[leaving] - goal) / table[leaving, entering]
        start = high[entering] if at_high[entering] else 0.0
        for i in range(height):
            value[i] -= table[i, entering] * step
        value[leaving] = start + step
        p = table[leaving, entering]
        for j in range(width):
            table[leaving, j] /= p
        for i in range(height):
            if i != leaving and table[i, entering] != 0.0:
                c = table[i, entering]
                for j in range(width):
                    table[i, j] -= c * table[leaving, j]
        c = gain[entering]
        for j in range(width):
            gain[j] -= c * table[leaving, j]
        basis[leaving] = entering
        basic[entering] = True
        basic[old] = False
        at_high[old] = up
        at_high[entering] = False
    for d in range(n):
        y[d] = program.upper[d] if at_high[d] else program.lower[d]
    for i in range(height):
        if basis[i] < n:
            y[basis[i]] = program.lower[basis[i]] + value[i]
    theta = np.empty(m)
    for i in range(m):
        theta[i] = -gain[s0 + i]
    beta = np.empty(q)
    for k in range(q):
        beta[k] = -gain[h0 + k]
    return solved, y, theta, -gain[end], beta


@njit(cache=True, **OPTIONS)
def maximise_all(program: Program, forms: Array) -> tuple[Array, Array]:
    """The multipliers (θ, λ) of the maximum of each form, shapes (count, m) and (count,).

    Args:
        program: the feasible set, without half-spaces.
        forms: shape (count, n).
    """
    count, m = forms.shape[0], program.rows.shape[0]
    thetas, levels = np.zeros((count, m)), np.zeros(count)
    cost = np.zeros(m)
    for k in range(count):
        _, _, theta, level, _ = maximise(program, forms[k], cost)
        thetas[k] = theta
        levels[k] = level
    return thetas, levels
