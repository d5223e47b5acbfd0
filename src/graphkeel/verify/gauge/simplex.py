"""Linear programs over a box, a level of V and some half-spaces, by a dense dual simplex (numba).

    maximise  f·y + cost·t   subject to  t ≥ Ry + r,  t ≥ 0,  least ≤ weight·t ≤ most,
                                         Gy + h ≥ 0,  lower ≤ y ≤ upper,        cost ≤ 0.

Written as equations, with a slack behind each inequality, every program of this kind has a basis
whose dual solution is feasible: y in the corner that f points to. From there the dual simplex keeps
the dual solution feasible, so it may stop at any step, and its multipliers are usable. The
multipliers are proposals: the caller bounds what they prove, with rounding counted in.

Variables, from 0 on: y − lower (n), t (m), the slacks of t ≥ Ry + r (m), of the level (1), of the
half-spaces (q). A row of the tableau is an equation solved for its basic variable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphkeel.verify.kernel import OPTIONS, compile_cached
from graphkeel.verify.problem import Array


class _Settings(NamedTuple):
    """Tolerances and length of a run. They stand in this file, because numba watches no other for
    its cache."""

    feasible: float = 1e-12  # relative: a basic variable within this of its bounds is not moved
    pivot: float = 1e-11  # smaller entries are no pivots
    tie: float = 1e-13  # ratios this near count as equal, and the largest pivot is taken
    steps: int = 20  # for each row and axis


_SETTINGS = _Settings()


class Program(NamedTuple):
    """The feasible set."""

    rows: Array  # R, (m, n)
    bias: Array  # r, (m,)
    weight: Array  # (m,), ≥ 0
    least: float  # of weight·t; infinite where there is no such bound
    most: float
    half: Array  # G, (q, n)
    offset: Array  # h, (q,)
    lower: Array  # (n,)
    upper: Array


class _Tableau(NamedTuple):
    """The state of a run."""

    table: Array  # (height, width)
    value: Array  # (height,): of the basic variables
    basis: NDArray[np.int64]  # (height,): which these are
    gain: Array  # (width,): reduced costs
    low: Array  # (width,): bounds of the variables
    high: Array
    at_high: NDArray[np.bool_]  # (width,): at which bound a variable is that is not basic
    basic: NDArray[np.bool_]  # (width,)


@njit(**OPTIONS)
def _set_up(program: Program, f: Array, cost: Array) -> _Tableau:
    """The first basis: y in the corner that f points to, t or its slack where it is not negative,
    the other slacks."""
    m, n = program.rows.shape
    q = program.half.shape[0]
    height, width = m + 1 + q, n + 2 * m + 1 + q
    level = n + 2 * m
    run = _Tableau(
        np.zeros((height, width)),
        np.zeros(height),
        np.zeros(height, np.int64),
        np.zeros(width),
        np.zeros(width),
        np.full(width, np.inf),
        np.zeros(width, np.bool_),
        np.zeros(width, np.bool_),
    )
    table, value = run.table, run.value
    corner = np.empty(n)
    for d in range(n):
        run.gain[d] = f[d]
        run.high[d] = program.upper[d] - program.lower[d]
        run.at_high[d] = f[d] > 0.0
        corner[d] = program.upper[d] if f[d] > 0.0 else program.lower[d]
    # weight·t + slack = top; without an upper level the slack has no lower bound
    top = program.most if program.most < np.inf else 0.0
    run.low[level] = 0.0 if program.most < np.inf else -np.inf
    run.high[level] = top - program.least
    table[m, level] = 1.0
    run.basis[m] = level
    value[m] = top
    for i in range(m):
        z = program.bias[i] + program.rows[i] @ corner
        sign = 1.0 if z >= 0.0 else -1.0
        run.basis[i] = n + i if z >= 0.0 else n + m + i
        value[i] = sign * z
        # t − slack − R·y = r
        table[i, :n] = -sign * program.rows[i]
        table[i, n + i] = sign
        table[i, n + m + i] = -sign
        run.gain[n + i] = cost[i]
        table[m, n + i] = program.weight[i]
    for i in range(m):
        if run.basis[i] == n + i:
            run.gain[:] -= cost[i] * table[i]
            table[m] -= program.weight[i] * table[i]
            value[m] -= program.weight[i] * value[i]
    for k in range(q):
        row = m + 1 + k
        run.basis[row] = level + 1 + k
        table[row, :n] = -program.half[k]
        table[row, level + 1 + k] = 1.0
        value[row] = program.offset[k] + program.half[k] @ corner
    for i in range(height):
        run.basic[run.basis[i]] = True
    for d in range(n):  # the costs of t may have turned a gain; a box takes either sign
        if (run.gain[d] > 0.0) != run.at_high[d]:
            move = run.high[d] if run.gain[d] > 0.0 else -run.high[d]
            value -= table[:, d] * move
            run.at_high[d] = run.gain[d] > 0.0
    return run


@njit(**OPTIONS)
def _leaving_row(run: _Tableau) -> tuple[int, bool, float]:
    """(the row whose variable is farthest out of its bounds, whether it is too large, how far), or
    row −1."""
    row, too_large, worst = -1, False, 0.0
    for i in range(run.value.shape[0]):
        least = _SETTINGS.feasible * (1.0 + abs(run.value[i]))
        below = run.low[run.basis[i]] - run.value[i]
        above = run.value[i] - run.high[run.basis[i]]
        if below > worst and below > least:
            row, too_large, worst = i, False, below
        if above > worst and above > least:
            row, too_large, worst = i, True, above
    return row, too_large, worst


@njit(**OPTIONS)
def _entering_column(run: _Tableau, row: int, too_large: bool, scale: float) -> int:
    """The variable that keeps all reduced costs on their side when it enters, or −1."""
    column, best, pivot = -1, np.inf, 0.0
    for j in range(run.gain.shape[0]):
        if run.basic[j] or run.high[j] == run.low[j]:
            continue
        a = -run.table[row, j] if too_large else run.table[row, j]
        if (a > _SETTINGS.pivot) if run.at_high[j] else (a < -_SETTINGS.pivot):
            ratio = abs(run.gain[j] / a)
            near = ratio < best + _SETTINGS.tie * scale and abs(a) > pivot
            if ratio < best - _SETTINGS.tie * scale or near:
                column, best, pivot = j, min(ratio, best), abs(a)
    return column


@njit(**OPTIONS)
def _exchange(run: _Tableau, row: int, column: int, too_large: bool) -> None:
    """Let a variable enter the basis in place of a row's."""
    table, value = run.table, run.value
    old = run.basis[row]
    goal = run.high[old] if too_large else run.low[old]
    step = (value[row] - goal) / table[row, column]
    start = run.high[column] if run.at_high[column] else run.low[column]
    value -= table[:, column] * step
    value[row] = start + step
    table[row] /= table[row, column]
    for i in range(value.shape[0]):
        if i != row and table[i, column] != 0.0:
            table[i] -= table[i, column] * table[row]
    run.gain[:] -= run.gain[column] * table[row]
    run.basis[row] = column
    run.basic[column] = True
    run.basic[old] = False
    run.at_high[old] = too_large
    run.at_high[column] = False


@compile_cached
def maximise(
    program: Program, f: Array, cost: Array, offset: float
) -> tuple[bool, Array, Array, float, Array]:
    """(solved, y, θ, λ − γ, β): a solution and the multipliers of its constraints, θ of t ≥ Ry + r,
    λ and γ of the two ends of weight·t, β of the half-spaces. Not solved: the set is empty, and the
    multipliers show that the objective plus `offset` is < 0 on it."""
    m, n = program.rows.shape
    run = _set_up(program, f, cost)
    scale = np.abs(f).max() + np.abs(cost).max()
    solved = True
    for _ in range(_SETTINGS.steps * (run.value.shape[0] + n)):
        row, too_large, worst = _leaving_row(run)
        if row < 0:
            break
        column = _entering_column(run, row, too_large, scale)
        if column < 0:
            # nothing blocks the dual solution: it may go on until it outweighs the objective
            reach = np.maximum(np.abs(program.lower), np.abs(program.upper))
            far = 2.0 * (abs(offset) + np.abs(f) @ reach + 1.0) / worst
            run.gain[:] -= (-far if too_large else far) * run.table[row]
            solved = False
            break
        _exchange(run, row, column, too_large)
    y = np.where(run.at_high[:n], program.upper, program.lower)
    for i in range(run.value.shape[0]):
        if run.basis[i] < n:
            y[run.basis[i]] = program.lower[run.basis[i]] + run.value[i]
    level = n + 2 * m
    theta = -run.gain[n + m : level]
    return solved, y, theta, -run.gain[level], -run.gain[level + 1 :]


@compile_cached
def maximise_all(program: Program, forms: Array) -> tuple[Array, Array]:
    """The multipliers (θ, λ) of the maximum of each form, shapes (count, m) and (count,)."""
    count, m = forms.shape[0], program.rows.shape[0]
    thetas, levels = np.zeros((count, m)), np.zeros(count)
    cost = np.zeros(m)
    for k in range(count):
        _, _, thetas[k], levels[k], _ = maximise(program, forms[k], cost, 0.0)
    return thetas, levels


def load_simplex() -> None:
    """Load the compiled kernels."""
    one, none = np.ones((1, 1)), np.zeros((0, 1))
    ends = (np.zeros(1), np.ones(1))
    program = Program(one, np.zeros(1), np.ones(1), -np.inf, 1.0, none, np.zeros(0), *ends)
    maximise_all(program, one)
    maximise(program, np.ones(1), np.zeros(1), 0.0)
