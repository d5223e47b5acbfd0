"""A network and the inequalities of one case, flattened into the arrays that the kernels read.

The inequalities are one more block, s = a·x + b·N(x) + c, so the kernels know blocks only. Values
are numbered as in `network.py`; their units stand one after the other in all arrays, the inputs
first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.affine import box_magnitude
from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.property.question import Case


class Net(NamedTuple):
    """Blocks as arrays; block v reads the edges first[v] … first[v + 1]."""

    unit: NDArray[np.int64]  # (values + 1,): the first unit of each value
    relu: NDArray[np.bool_]  # (values,)
    first: NDArray[np.int64]  # (values + 1,)
    source: NDArray[np.int64]  # (edges,)
    weight: NDArray[np.int64]  # (edges,): where the edge's matrix begins in `data`
    data: Array
    bias: Array  # (units,)
    needs: NDArray[np.bool_]  # (inequalities, values): what an inequality depends on
    order: NDArray[np.int64]  # (inequalities,): those that need few units first
    rounding: float


def with_inequalities(network: BlockNetwork, case: Case) -> BlockNetwork:
    """The network whose outputs are the inequalities of a case."""
    inputs = network.inputs
    terms = ((0, case.weight[:, :inputs]), (len(network.blocks), case.weight[:, inputs:]))
    used = tuple((number, weight) for number, weight in terms if weight.any())
    return BlockNetwork(inputs, (*network.blocks, Block(used, case.constant, relu=False)))


def pack(network: BlockNetwork) -> Net:
    """Flatten a network whose outputs are inequalities."""
    values = len(network.blocks) + 1
    widths = [network.width(number) for number in range(values)]
    unit = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    first = [0, 0]
    source: list[int] = []
    weight: list[int] = []
    pieces: list[Array] = [np.zeros(0)]
    size = 0
    for block in network.blocks:
        for number, matrix in block.terms:
            source.append(number)
            weight.append(size)
            pieces.append(np.ascontiguousarray(matrix).ravel())
            size += matrix.size
        first.append(len(source))
    needs = np.array([_needs(network, row) for row in range(network.outputs)])
    relu = np.array([False, *(block.relu for block in network.blocks)])
    costs = (needs * (np.array(widths) * relu)).sum(axis=1)
    return Net(
        unit,
        relu,
        np.array(first, dtype=np.int64),
        np.array(source, dtype=np.int64),
        np.array(weight, dtype=np.int64),
        np.concatenate(pieces),
        np.concatenate([np.zeros(network.inputs), *(block.bias for block in network.blocks)]),
        needs,
        np.argsort(costs, kind="stable").astype(np.int64),
        (int(unit[-1]) + len(source) + 64) * 2.0**-50,
    )


def _needs(network: BlockNetwork, row: int) -> NDArray[np.bool_]:
    """Which values one output depends on, unit by unit."""
    values = len(network.blocks) + 1
    used = [np.zeros(network.width(number), np.bool_) for number in range(values)]
    used[-1][row] = True
    for number in range(values - 1, 0, -1):
        for source, matrix in network.blocks[number - 1].terms:
            used[source] |= (matrix[used[number]] != 0.0).any(axis=0)
    return np.array([part.any() for part in used])


def too_large(network: BlockNetwork, case: Case, most: float) -> bool:
    """Whether magnitudes on the box come so near to overflow that floats cannot be trusted."""
    reach = [box_magnitude(case.lower, case.upper)]
    with np.errstate(over="ignore", invalid="ignore"):
        for block in network.blocks:
            total = np.abs(block.bias)
            for number, weight in block.terms:
                total = total + np.abs(weight) @ reach[number]
            reach.append(total)
    return not all((part < most).all() for part in reach)
