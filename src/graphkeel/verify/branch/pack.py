"""Rows and lenses flattened into a few arrays, the only thing the compiled kernels see.

The rounding analysis lives here: a substitution step with coefficients C onto a layer z = Wx + b
costs at most γ·|C|·(|W||x| + |b|) in float64, whatever the order of summation. These magnitudes are
taken once, over the root box, and travel with the layer's own error bounds in one vector (`BASE`);
so a box pays for rounding with one extra product."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.problem import Affine, Array
from graphkeel.verify.query import TINY, Row, errors_of, gamma

# columns of the layer table: sizes, then offsets into `data`, then the layer's place among units
# and linear forms
N_IN, N_OUT, WEIGHT, TRANSPOSED, BIAS, BASE, ERROR, UNIT, FORM = range(9)
COLUMNS = 9
LARGEST = (
    1e120  # no product of weights and states may come near overflow: NaN would slip through max()
)


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


class Lens(NamedTuple):
    """θ of docs/proof-format.md, multiplied out: what replacing unit k of V∘F by e_k changes."""

    layer: int  # index of V∘F's hidden layer in the table; -1: no lens
    allowed: NDArray[np.bool_]  # (K,)
    theta: Array  # (K, K)
    skip: Array  # (n, K): e_k's coefficients on y
    bias: Array  # (K,)
    error: Array  # (K,)
    onto: Array  # (K, K): v_k·θ_ki, added to b_i
    slack: Array  # (K,): what adding them may cost


class Size(NamedTuple):
    """How much room the kernels need."""

    n: int
    units: int
    widest: int


def pack(row: Row, shift: float = 0.0) -> Net:
    """Flatten a row; `shift` is added to g, so that g + shift ≤ 0 is what gets shown."""
    n = row.lower.shape[0]
    units = size_of(row).units
    rounding = gamma(n + units)
    reach = np.maximum(np.abs(row.lower), np.abs(row.upper))
    final = np.zeros((3, max(units, 1)))
    store = _Store(n)
    constant, uncertain = _direct_part(row, reach, rounding)
    for chain in row.chains:
        largest = reach
        for layer in chain.hidden:
            largest = store.add(layer, largest, rounding)
        if chain.hidden:
            last = slice(store.unit - chain.hidden[-1].n_out, store.unit)
            we, be = errors_of(chain.final)
            weight, bias = chain.final.weight[0], float(chain.final.bias[0])
            final[0, last], final[1, last] = weight, we[0] * (1.0 + rounding)
            final[2, last] = 2.0 * rounding * np.abs(weight) * largest + TINY
            constant += bias
            uncertain += float(be[0]) + 4.0 * rounding * abs(bias)
        store.start.append(len(store.table))
    uncertain += 2.0 * rounding * (abs(constant) + abs(shift)) + TINY
    direct = np.concatenate(
        [row.direct.weight[0], [constant + shift, uncertain * (1.0 + rounding)]]
    )
    return Net(*store.arrays(), final, direct, rounding)


class _Store:
    """Collects layers into the table and the flat data array."""

    def __init__(self, n: int) -> None:
        self.n, self.unit, self.form, self.offset = n, 0, 0, 0
        self.table: list[list[int]] = []
        self.start = [0]
        self.pieces: list[Array] = [np.zeros(0)]

    def add(self, layer: Affine, largest: Array, rounding: float) -> Array:
        """Append a layer; returns a bound on its pre-activations' magnitude over the root box."""
        we, be = errors_of(layer)
        magnitude = ((np.abs(layer.weight) + we) @ largest + np.abs(layer.bias) + be) * (
            1.0 + rounding
        )
        base = be + 2.0 * rounding * magnitude + TINY
        places = [self._put(part) for part in (layer.weight, layer.weight.T, layer.bias, base)]
        error = -1 if layer.weight_error is None else self._put(we.T * (1.0 + rounding))
        self.table.append([layer.n_in, layer.n_out, *places, error, self.unit, self.form])
        self.unit += layer.n_out
        self.form += layer.n_out * self.n
        return magnitude

    def _put(self, part: Array) -> int:
        self.pieces.append(np.ascontiguousarray(part).ravel())
        self.offset += part.size
        return self.offset - part.size

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        table = np.array(self.table, dtype=np.int64).reshape(-1, COLUMNS)
        return (
            table,
            np.array(self.start, dtype=np.int64),
            np.concatenate([*self.pieces, np.zeros(1)]),
        )


def _direct_part(row: Row, reach: Array, rounding: float) -> tuple[float, float]:
    we, be = errors_of(row.direct)
    constant = float(row.direct.bias[0])
    size = float(np.abs(row.direct.weight[0]) @ reach) + abs(constant)
    return constant, (float(we[0] @ reach) + float(be[0]) + 4.0 * rounding * size) * (
        1.0 + rounding
    )


def size_of(row: Row) -> Size:
    n = row.lower.shape[0]
    layers = [layer for chain in row.chains for layer in chain.hidden]
    widest = max([n, *(layer.n_out for layer in layers)])
    return Size(n, sum(layer.n_out for layer in layers), widest)


def too_large(row: Row) -> bool:
    """Whether magnitudes come so near to overflow that float bounds cannot be trusted."""
    size = max(1.0, float(np.abs(row.lower).max()), float(np.abs(row.upper).max()))
    for chain in row.chains:
        product = size
        for layer in (*chain.hidden, chain.final):
            we, be = errors_of(layer)
            with np.errstate(over="ignore"):
                product *= 1.0 + float(
                    (np.abs(layer.weight) + we).sum() + (np.abs(layer.bias) + be).sum()
                )
        if not product < LARGEST:
            return True
    with np.errstate(over="ignore"):
        return (
            not float(np.abs(row.direct.weight).sum() * size + np.abs(row.direct.bias).sum())
            < LARGEST
        )


def no_lens(n: int) -> Lens:
    return Lens(
        -1,
        np.zeros(0, np.bool_),
        np.zeros((0, 0)),
        np.zeros((n, 0)),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, 0)),
        np.zeros(0),
    )


def accepts_lens(row: Row) -> bool:
    """Whether V∘F and V can be compared unit by unit: V has one hidden layer and F at least one."""
    after, before = row.chains
    return row.name == "decrease" and len(before.hidden) == 1 and len(after.hidden) >= 2


def pack_lens(row: Row, theta: Array) -> Lens:
    """Multiply a lens out, its rounding and V's own errors in `error` and `slack`."""
    after, before = row.chains
    v, r = after.final.weight[0], before.hidden[0]
    v_error = errors_of(after.final)[0][0]
    reach = np.maximum(np.abs(row.lower), np.abs(row.upper))
    we, be = errors_of(r)
    rounding = gamma(row.lower.shape[0] + size_of(row).units)
    magnitude = (np.abs(r.weight) + we) @ reach + np.abs(r.bias) + be
    error = theta @ (we @ reach + be) + 4.0 * rounding * (theta @ magnitude) + TINY
    uncertain = v_error + 4.0 * rounding * np.abs(v)
    slack = (theta @ magnitude) * uncertain + TINY
    return Lens(
        len(after.hidden) - 1,
        (v >= v_error) & theta.any(axis=1),
        np.ascontiguousarray(theta),
        np.ascontiguousarray(-(theta @ r.weight).T),
        -(theta @ r.bias),
        error * (1.0 + rounding),
        v[:, None] * theta,
        slack * (1.0 + rounding),
    )
