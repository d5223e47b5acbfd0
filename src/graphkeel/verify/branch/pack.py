"""Rows and couplings flattened into a few arrays, the only thing the compiled kernels see.

The rounding analysis lives here: a substitution step with coefficients C onto a layer z = Wx + b
costs at most γ·|C|·(|W||x| + |b|) in float64, whatever the order of summation. These magnitudes are
taken once, over the root box, and travel with the layer's own error bounds in one vector (`BASE`);
so a box pays for rounding with one extra product."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.affine import TINY, box_magnitude, errors_of, gamma
from graphkeel.verify.problem import Affine, Array
from graphkeel.verify.query import Row

# columns of the layer table: sizes, then offsets into `data`, then the layer's place among units
# and linear forms
N_IN, N_OUT, WEIGHT, TRANSPOSED, BIAS, BASE, ERROR, UNIT, FORM = range(9)


class Net(NamedTuple):
    """A row g = q·y + constant + A + B; `table[start[c]:start[c+1]]` are the hidden layers of chain
    c."""

    table: NDArray[np.int64]
    start: NDArray[np.int64]  # (3,)
    data: Array
    # (3, units): final row, its error, its rounding; at the units of each chain's last layer
    final: Array
    direct: Array  # (n + 2,): q, constant, bound on all that is uncertain or rounded in them
    rounding: float


class Coupling(NamedTuple):
    """θ of docs/formats.md, multiplied out: what replacing unit k of V∘F by e_k changes."""

    layer: int  # index of V∘F's hidden layer in the table; -1: no coupling
    allowed: NDArray[np.bool_]  # (K,)
    theta: Array  # (K, K)
    skip: Array  # (n, K): e_k's coefficients on y
    bias: Array  # (K,)
    error: Array  # (K,)
    onto: Array  # (K, K): v_k·θ_ki, added to b_i
    slack: Array  # (K,): what adding them may cost


def pack(row: Row, shift: float = 0.0) -> Net:
    """Flatten a row; `shift` is added to g, so that g + shift ≤ 0 is what gets shown."""
    n, units = row.n, row.units
    rounding = gamma(n + units)
    reach = box_magnitude(row.lower, row.upper)
    final = np.zeros((3, max(units, 1)))
    store = _Store(n)
    constant, uncertain = _direct_part(row, reach, rounding)
    for hidden, top in zip(row.hidden, row.form.finals, strict=True):
        largest = reach
        for layer in hidden:
            largest = store.add(layer, largest, rounding)
        if hidden:
            last = slice(store.unit - hidden[-1].n_out, store.unit)
            weight_error, bias_error = errors_of(top)
            bias = float(top.bias[0])
            final[0, last] = top.weight[0]
            final[1, last] = weight_error[0] * (1.0 + rounding)
            final[2, last] = 2.0 * rounding * np.abs(top.weight[0]) * largest + TINY
            constant += bias
            uncertain += float(bias_error[0]) + 4.0 * rounding * abs(bias)
        store.start.append(len(store.table))
    uncertain += 2.0 * rounding * (abs(constant) + abs(shift)) + TINY
    direct = np.concatenate(
        [row.form.direct.weight[0], [constant + shift, uncertain * (1.0 + rounding)]]
    )
    return Net(*store.arrays(), final, direct, rounding)


class _Store:
    """Collects layers into the table and the flat data array.

    Writes: its own fields; `arrays` hands them out.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.unit = 0  # units so far
        self.form = 0  # entries of linear forms so far
        self.offset = 0  # entries of data so far
        self.table: list[list[int]] = []
        self.start = [0]
        self.pieces: list[Array] = [np.zeros(0)]

    def add(self, layer: Affine, largest: Array, rounding: float) -> Array:
        """Append a layer; returns a bound on its pre-activations' magnitude over the root box."""
        weight_error, bias_error = errors_of(layer)
        size = np.abs(layer.weight) + weight_error
        magnitude = (size @ largest + np.abs(layer.bias) + bias_error) * (1.0 + rounding)
        base = bias_error + 2.0 * rounding * magnitude + TINY
        places = [self._put(part) for part in (layer.weight, layer.weight.T, layer.bias, base)]
        error = -1
        if layer.weight_error is not None:
            error = self._put(weight_error.T * (1.0 + rounding))
        self.table.append([layer.n_in, layer.n_out, *places, error, self.unit, self.form])
        self.unit += layer.n_out
        self.form += layer.n_out * self.n
        return magnitude

    def _put(self, part: Array) -> int:
        self.pieces.append(np.ascontiguousarray(part).ravel())
        self.offset += part.size
        return self.offset - part.size

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        table = np.array(self.table, dtype=np.int64).reshape(-1, FORM + 1)
        start = np.array(self.start, dtype=np.int64)
        return table, start, np.concatenate([*self.pieces, np.zeros(1)])


def _direct_part(row: Row, reach: Array, rounding: float) -> tuple[float, float]:
    """The constant of g's affine part, and the uncertainty of that part over the box."""
    direct = row.form.direct
    weight_error, bias_error = errors_of(direct)
    constant = float(direct.bias[0])
    size = float(np.abs(direct.weight[0]) @ reach) + abs(constant)
    uncertainty = float(weight_error[0] @ reach) + float(bias_error[0])
    return constant, (uncertainty + 4.0 * rounding * size) * (1.0 + rounding)


def too_large(row: Row, most: float) -> bool:
    """Whether magnitudes come so near to overflow that float bounds cannot be trusted."""
    size = max(1.0, float(np.abs(row.lower).max()), float(np.abs(row.upper).max()))
    direct = row.form.direct
    with np.errstate(over="ignore"):
        for hidden, final in zip(row.hidden, row.form.finals, strict=True):
            product = size
            for layer in (*hidden, final):
                weight_error, bias_error = errors_of(layer)
                total = (np.abs(layer.weight) + weight_error).sum()
                product *= 1.0 + float(total + (np.abs(layer.bias) + bias_error).sum())
            if not product < most:
                return True
        return not float(np.abs(direct.weight).sum() * size + np.abs(direct.bias).sum()) < most


def no_coupling(n: int) -> Coupling:
    """The coupling that changes nothing, for states of n coordinates."""
    none = np.zeros(0)
    square = np.zeros((0, 0))
    allowed = np.zeros(0, np.bool_)
    return Coupling(-1, allowed, square, np.zeros((n, 0)), none, none, square, none)


def accepts_coupling(row: Row) -> bool:
    """Whether V∘F and V can be compared unit by unit: V has one hidden layer and F at least one."""
    after, before = row.hidden
    return row.name == "decrease" and len(before) == 1 and len(after) >= 2


def pack_coupling(row: Row, theta: Array) -> Coupling:
    """Multiply a coupling out, its rounding and V's own errors in `error` and `slack`.

    Args:
        theta: Θ ≥ 0, shape (K, K), K the width of V.
    """
    after, before = row.hidden
    final = row.form.finals[0]
    v = final.weight[0]
    v_error = errors_of(final)[0][0]
    first = before[0]
    weight_error, bias_error = errors_of(first)
    reach = box_magnitude(row.lower, row.upper)
    rounding = gamma(row.n + row.units)
    magnitude = (np.abs(first.weight) + weight_error) @ reach + np.abs(first.bias) + bias_error
    error = theta @ (weight_error @ reach + bias_error) + 4.0 * rounding * (theta @ magnitude)
    uncertain = v_error + 4.0 * rounding * np.abs(v)
    slack = (theta @ magnitude) * uncertain + TINY
    return Coupling(
        layer=len(after) - 1,
        allowed=(v >= v_error) & theta.any(axis=1),
        theta=np.ascontiguousarray(theta),
        skip=np.ascontiguousarray(-(theta @ first.weight).T),
        bias=-(theta @ first.bias),
        error=(error + TINY) * (1.0 + rounding),
        onto=v[:, None] * theta,
        slack=slack * (1.0 + rounding),
    )
