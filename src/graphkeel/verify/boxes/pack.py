"""A network of blocks and the inequalities over it, flattened into the arrays that kernels read.

Values are numbered as in property/network.py; their units stand one after the other in all arrays,
the inputs first, the inequalities last. A row g of a loop becomes one inequality, its chains become
blocks: V before V∘F, because the choice of coupled units reads V's bounds.

The rounding analysis: a substitution step with coefficients C onto z = Wx + b costs at most
γ·|C|·(|W||x| + |b|) in float64, whatever the order of summation. The magnitudes are taken once, on
the root box, and are part of each unit's error; so a box pays for rounding with one product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import ProblemError
from graphkeel.verify.affine import TINY, box_magnitude, errors_of, gamma
from graphkeel.verify.problem import Affine, Array
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.query import Row


class Net(NamedTuple):
    """Blocks as arrays; block v reads the edges first[v] … first[v + 1]."""

    unit: NDArray[np.int64]  # (values + 1,): the first unit of each value
    relu: NDArray[np.bool_]  # (values,)
    square: NDArray[np.bool_]  # (values,)
    squared: NDArray[np.bool_]  # (units,): whether a unit is the square of its input
    bottom: NDArray[np.bool_]  # (values,): whether a ReLU block reads the inputs alone
    first: NDArray[np.int64]  # (values + 1,)
    source: NDArray[np.int64]  # (edges,)
    weight: NDArray[np.int64]  # (edges,): where the edge's matrix begins in `data`
    turned: NDArray[np.int64]  # (edges,): where its transpose does
    error: NDArray[np.int64]  # (edges,): where the bounds on its error do, transposed; −1: exact
    data: Array
    bias: Array  # (units,)
    bias_error: Array  # (units,)
    needs: NDArray[np.bool_]  # (inequalities, values): what an inequality depends on
    order: NDArray[np.int64]  # (inequalities,): those that need few units first
    column: NDArray[np.int64]  # (units,): where a leaf stores the unit's lower slope; −1: nowhere
    rounding: float


class Coupling(NamedTuple):
    """θ of docs/formats.md, multiplied out: what replacing unit k of V∘F by e_k changes."""

    after: int  # the value of V∘F's hidden units; −1: no coupling
    before: int  # that of V's
    number: int  # by which leaves name it
    allowed: NDArray[np.bool_]  # (K,)
    theta: Array  # (K, K)
    skip: Array  # (n, K): e_k's coefficients on y
    bias: Array  # (K,)
    error: Array  # (K,)
    slack: Array  # (K,): what adding v_k·θ_k to V's coefficients may cost


def pack(network: BlockNetwork, sloped: Sequence[int]) -> Net:
    """Flatten a network whose outputs are inequalities."""
    values = len(network.blocks) + 1
    widths = [network.width(number) for number in range(values)]
    unit = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    store = _Store()
    first = [0, 0]
    for block in network.blocks:
        for (number, matrix), error in zip(block.terms, block.weight_errors, strict=True):
            store.edge(number, matrix, error)
        first.append(len(store.source))
    needs = np.array([_needs(network, row) for row in range(network.outputs)])
    relu = np.array([False, *(block.relu for block in network.blocks)])
    square = np.array([False, *(block.square for block in network.blocks)])
    reads = [[number for number, _ in block.terms] for block in network.blocks]
    if any(len(set(read)) < len(read) for read in reads):
        raise ProblemError("a block reads a value twice")  # kernels keep the last of its matrices
    costs = (needs * (np.array(widths) * (relu | square))).sum(axis=1)
    columns = np.full(unit[-1], -1)
    places = np.concatenate([[], *(np.arange(unit[v], unit[v + 1]) for v in sloped)]).astype(int)
    columns[places] = np.arange(len(places))
    nothing = np.zeros(network.inputs)
    return Net(
        unit=unit,
        relu=relu,
        square=square,
        squared=np.repeat(square, widths),
        bottom=relu & np.array([False, *(read == [0] for read in reads)]),
        first=np.array(first),
        bias=np.concatenate([nothing, *(block.bias for block in network.blocks)]),
        bias_error=np.concatenate([nothing, *(block.bias_error for block in network.blocks)]),
        needs=needs,
        order=np.argsort(costs, kind="stable"),
        column=columns,
        rounding=gamma(int(unit[-1]) + len(store.source)),
        **store.arrays(),
    )


class _Store:
    """Collects matrices into the flat data array.

    Writes: its own fields; `arrays` hands them out.
    """

    def __init__(self) -> None:
        self.source: list[int] = []
        self.weight: list[int] = []
        self.turned: list[int] = []
        self.error: list[int] = []
        self.pieces: list[Array] = [np.zeros(1)]
        self.size = 1

    def edge(self, source: int, matrix: Array, error: Array | None) -> None:
        """Append what a block reads of one value."""
        self.source.append(source)
        self.weight.append(self._put(matrix))
        self.turned.append(self._put(matrix.T))
        self.error.append(-1 if error is None else self._put(error.T))

    def _put(self, part: Array) -> int:
        self.pieces.append(np.ascontiguousarray(part).ravel())
        self.size += part.size
        return self.size - part.size

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fields of `Net` that are about edges."""
        parts = {name: getattr(self, name) for name in ("source", "weight", "turned", "error")}
        edges = {name: np.array(part, dtype=np.int64) for name, part in parts.items()}
        return edges | {"data": np.concatenate(self.pieces)}


def _needs(network: BlockNetwork, row: int) -> NDArray[np.bool_]:
    """Which values one output depends on: unit by unit, but a block of units as a whole."""
    values = len(network.blocks) + 1
    used = [np.zeros(network.width(number), np.bool_) for number in range(values)]
    used[-1][row] = True
    for number in range(values - 1, 0, -1):
        block = network.blocks[number - 1]
        used[number][:] |= (block.relu or block.square) and used[number].any()
        for (source, matrix), error in zip(block.terms, block.weight_errors, strict=True):
            read = matrix != 0.0 if error is None else (matrix != 0.0) | (error != 0.0)
            used[source] |= read[used[number]].any(axis=0)
    return np.array([part.any() for part in used])


def too_large(network: BlockNetwork, lower: Array, upper: Array, most: float) -> bool:
    """Whether magnitudes on a box come so near to overflow that floats cannot be trusted."""
    reach = [box_magnitude(lower, upper)]
    with np.errstate(over="ignore", invalid="ignore"):
        for block in network.blocks:
            total = np.abs(block.bias) + block.bias_error
            for (number, weight), error in zip(block.terms, block.weight_errors, strict=True):
                size = np.abs(weight) if error is None else np.abs(weight) + error
                total = total + size @ reach[number]
            reach.append(total * total if block.square else total)
    return not all((part < most).all() for part in reach)


# ---- rows of loops


def row_network(row: Row, shift: float = 0.0) -> BlockNetwork:
    """The network from a state to g + shift."""
    blocks: list[Block] = []
    parts = [(0, row.form.direct)]
    for layers, final in zip(row.hidden[::-1], row.form.finals[::-1], strict=True):
        source = 0
        for layer in layers:
            blocks.append(_block([(source, layer)], relu=True))
            source = len(blocks)
        if layers:
            parts.append((source, final))
    blocks.append(_block(parts, relu=False, shift=shift))
    return BlockNetwork(row.n, tuple(blocks))


def _block(parts: list[tuple[int, Affine]], *, relu: bool, shift: float = 0.0) -> Block:
    """The sum of some maps, the rounding of their biases' sum in its error."""
    biases = [np.full(parts[0][1].n_out, shift), *(layer.bias for _, layer in parts)]
    error = np.sum([errors_of(layer)[1] for _, layer in parts], axis=0)
    if len(parts) > 1 or shift:
        error = (error + 2.0**-49 * np.abs(biases).sum(axis=0)) * (1.0 + 2.0**-49) + TINY
    terms = tuple((source, layer.weight) for source, layer in parts)
    errors = tuple(layer.weight_error for _, layer in parts)
    return Block(terms, np.sum(biases, axis=0), relu, errors, error)


def first_layers(row: Row) -> list[int]:
    """The values of V∘F's and of V's first hidden layers, of which leaves store slopes."""
    after, before = row.hidden
    return [*([len(before) + 1] if after else []), *([1] if before else [])]


def no_coupling(n: int) -> Coupling:
    """The coupling that changes nothing, for states of n coordinates."""
    none = np.zeros(0)
    allowed = np.zeros(0, np.bool_)
    return Coupling(-1, -1, 0, allowed, np.zeros((0, 0)), np.zeros((n, 0)), none, none, none)


def accepts_coupling(row: Row) -> bool:
    """Whether V∘F and V can be compared unit by unit: V has one hidden layer and F at least one."""
    after, before = row.hidden
    return row.name == "decrease" and len(before) == 1 and len(after) >= 2


def pack_coupling(row: Row, theta: Array, number: int) -> Coupling:
    """Multiply a coupling out, its rounding and V's own errors in `error` and `slack`."""
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
        after=1 + len(after),
        before=1,
        number=number,
        allowed=(v >= v_error) & theta.any(axis=1),
        theta=np.ascontiguousarray(theta),
        skip=np.ascontiguousarray(-(theta @ first.weight).T),
        bias=-(theta @ first.bias),
        error=(error + TINY) * (1.0 + rounding),
        slack=slack * (1.0 + rounding),
    )
