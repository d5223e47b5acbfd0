"""Squares that suit a box, in place of those that a network's outputs are made of.

A quadratic form of the inputs and the units is a sum of squares Σ d_k·(l_k·z)² in many ways. On a
small box the chord or the tangent of one of them is off by about |d_k| times the squared width of
l_k·z. With M the second moment of how z varies there, Σ |d_k|·l_k·M·l_kᵀ is smallest for the
eigenvectors of M^½·Q·M^½: x and what a ReLU makes of it then vary together in few of the squares.

Eigenvectors are floats. The outputs with other squares differ from those of the network by a
polynomial with coefficients near 1e-16, which are known exactly; a bound of it on the box is an
error of the outputs. A proof holds the squares and the outputs, and a checker finds the bound
itself (docs/formats.md, 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import Block, BlockNetwork, pruned
from graphkeel.verify.rational import rational, rationals, rounded_down
from graphkeel.verify.settings import SQUARES

if TYPE_CHECKING:
    from graphkeel.verify.property.question import Case

Exact = NDArray[Any]  # of rationals


@dataclass(frozen=True, eq=False)
class Rewritten:
    """A network over a box whose outputs are sums of squares that suit it, and what a proof says of
    them: both over the inputs, the units, the squares, and 1."""

    network: BlockNetwork
    squares: Array | None = None  # (count, inputs + units + 1); None: the network as it was
    outputs: Array | None = None  # (outputs, inputs + units + count + 1)


def rewritten(case: Case, network: BlockNetwork) -> Rewritten:
    """The network whose outputs are a case's inequalities, with other squares in place of those
    that no unit depends on."""
    places = _places(network)
    if places is None:
        return Rewritten(case.joined(network))
    wanted = [places.inequality(*row) for row in zip(case.weight, case.constant, strict=True)]
    squares, outputs, made = _decomposed(wanted, *_moments(case, network, places))
    if not len(squares):
        return Rewritten(case.joined(network))
    reach = places.reach(case.lower, case.upper)
    error = [_largest(a - b, reach) for a, b in zip(wanted, made, strict=True)]
    most = [_largest(matrix, reach) * rational(SQUARES.most_error) for matrix in wanted]
    if any(a > b for a, b in zip(error, most, strict=True)):
        return Rewritten(case.joined(network))
    return Rewritten(places.rebuilt(squares, outputs, error), squares, outputs)


@lru_cache(maxsize=1)
def _places(network: BlockNetwork) -> _Places | None:
    """The places of a network that has squares which no unit depends on."""
    needed = pruned(network.inputs, list(network.blocks), len(network.blocks))
    loose = _loose(needed)
    total = needed.inputs + sum(needed.width(number) for number in needed.unit_blocks)
    if not loose or total > SQUARES.most_places:
        return None
    places = _Places(needed, loose)
    return places if places.every_square_is_read() else None


def _loose(network: BlockNetwork) -> list[int]:
    """The values that are squares and that no unit depends on."""
    used: set[int] = set()
    for number in range(len(network.blocks), 0, -1):
        block = network.blocks[number - 1]
        if block.relu or block.square or number in used:
            used |= {source for source, _ in block.terms}
    return [k for k in network.unit_blocks if network.blocks[k - 1].square and k not in used]


class _Places:
    """A network over its *places*: the inputs, all units that are not loose, then 1."""

    def __init__(self, network: BlockNetwork, loose: list[int]) -> None:
        self.network = network
        self.kept = [k for k in network.unit_blocks if k not in loose]
        self.first = {0: 0}  # of every value that is a place
        self.size = network.inputs
        for number in self.kept:
            self.first[number] = self.size
            self.size += network.width(number)
        squares = {}  # where the loose ones stand, behind the places
        end = self.size + 1
        for number in loose:
            squares[number] = end
            end += network.width(number)
        self.maps: dict[int, Exact] = {}  # of a value before its ReLU or square
        ones: dict[int, Exact] = {0: self._unit_rows(0, network.inputs, end)}
        for number, block in enumerate(network.blocks, 1):
            rows = np.full((block.width, end), 0, dtype=object)
            rows[:, self.size] = rationals(block.bias)
            for source, weight in block.terms:
                rows += _product(weight, ones[source])
            self.maps[number] = ones[number] = rows
            if number in self.first or number in squares:
                at = self.first.get(number, squares.get(number, 0))
                ones[number] = self._unit_rows(at, block.width, end)
        forms: Exact = np.array([row[: self.size + 1] for k in loose for row in self.maps[k]])
        self.outputs = [
            _symmetric(row[: self.size + 1], row[self.size + 1 :], forms)
            for row in self.maps[len(network.blocks)]
        ]
        self.blocks = [self._block(self.maps[k][:, : self.size + 1], k) for k in self.kept]

    @staticmethod
    def _unit_rows(first: int, width: int, end: int) -> Exact:
        rows = np.full((width, end), 0, dtype=object)
        rows[np.arange(width), first + np.arange(width)] = Fraction(1)
        return rows

    def every_square_is_read(self) -> bool:
        """Whether some unit depends on every square that is a place, its weights not all zero; a
        checker takes any other for one of those that are rewritten."""
        read = [self.maps[k] != 0 for k in self.network.unit_blocks]
        places = np.flatnonzero(np.concatenate(read).sum(axis=0))
        kept = [k for k in self.kept if self.network.blocks[k - 1].square]
        squares = [self.first[k] + i for k in kept for i in range(self.network.width(k))]
        return bool(np.isin(squares, places).all())

    def inequality(self, weight: Array, constant: float) -> Exact:
        """The matrix of the polynomial weight·(x, N(x)) + constant."""
        linear = np.full(self.size + 1, 0, dtype=object)
        linear[: self.network.inputs] = rationals(weight[: self.network.inputs])
        linear[-1] = rational(constant)
        matrix = _symmetric(linear, linear[:0], self.outputs[0][:0])
        for factor, own in zip(weight[self.network.inputs :], self.outputs, strict=True):
            matrix = matrix + rational(factor) * own if factor else matrix
        return matrix

    def values(self, points: Array) -> Array:
        """The places at some inputs, shape (count, places)."""
        values = self.network.forward(points)
        return np.hstack([values[number] for number in (0, *self.kept)])

    def reach(self, lower: Array, upper: Array) -> list[Fraction]:
        """A bound on the absolute value of every place on a box."""
        ends = zip(rationals(lower), rationals(upper), strict=True)
        reach = [max(abs(low), abs(high)) for low, high in ends] + [Fraction(0)] * self.size
        reach[self.size :] = [Fraction(1)]
        for number in self.kept:
            block, first = self.network.blocks[number - 1], self.first[number]
            for i, row in enumerate(self.maps[number][:, : self.size + 1]):
                size = sum((abs(c) * r for c, r in zip(row, reach, strict=True) if c), Fraction(0))
                reach[first + i] = size * size if block.square else size
        return reach

    def rebuilt(self, squares: Array, outputs: Array, error: list[Fraction]) -> BlockNetwork:
        """The network with these squares and outputs, all between units multiplied out."""
        blocks = [*self.blocks]
        weights = outputs[:, self.size : -1]
        terms = []
        # one block for the squares that one output reads: it may need few of the units
        for first, end in pairwise([*np.flatnonzero(_differ(weights)), len(squares)]):
            blocks.append(replace(self._block(_exact(squares[first:end])), square=True))
            terms.append((len(blocks), weights[:, first:end]))
        last = self._block(_exact(np.delete(outputs, np.s_[self.size : -1], axis=1)))
        terms = [*last.terms, *terms]
        above = np.array([-rounded_down(-value) for value in error])
        blocks.append(Block(tuple(terms), last.bias, relu=False, bias_error=above))
        return BlockNetwork(self.network.inputs, tuple(blocks))

    def _block(self, exact: Exact, like: int | None = None) -> Block:
        """A block over the places, with the ReLU or square of another, the rounding of its numbers
        in its errors."""
        other = None if like is None else self.network.blocks[like - 1]
        near = exact.astype(np.float64)
        away = np.abs(exact - _exact(near))
        error = np.vectorize(lambda value: -rounded_down(-value), otypes=[float])(away)
        terms, errors = [], []
        for k, number in enumerate([0, *self.kept]):
            part = np.s_[:, self.first[number] : self.first[number] + self.network.width(number)]
            if near[part].any() or error[part].any():
                terms.append((k, near[part]))
                errors.append(error[part] if error[part].any() else None)
        made = Block(tuple(terms), near[:, -1], False, tuple(errors), error[:, -1])
        return made if other is None else replace(made, relu=other.relu, square=other.square)


def _differ(weights: Array) -> NDArray[np.bool_]:
    """Whether a column has other zeros than the one before it; the first one has."""
    used = weights != 0.0
    return np.array([k == 0 or (used[:, k] != used[:, k - 1]).any() for k in range(used.shape[1])])


def _exact(numbers: Array) -> Exact:
    """Floats as rationals; zeros as integers, which are faster."""
    rows = [[rational(value) if value else 0 for value in row] for row in numbers]
    return np.array(rows, dtype=object).reshape(numbers.shape)


def _product(weight: Array, rows: Exact) -> Exact:
    """weight @ rows, of which most entries are 0."""
    total = np.full((len(weight), rows.shape[1]), 0, dtype=object)
    used = [np.flatnonzero(row) for row in rows]
    for i, j in zip(*np.nonzero(weight), strict=True):
        total[i, used[j]] += rational(weight[i, j]) * rows[j, used[j]]
    return total


def _symmetric(linear: Exact, weights: Exact, forms: Exact) -> Exact:
    """The matrix of a linear form, the last coefficient that of 1, and Σ weights·forms²."""
    half = linear * Fraction(1, 2)
    matrix: Exact = np.full((len(linear), len(linear)), 0, dtype=object)
    matrix[-1] += half
    matrix[:, -1] += half
    for weight, form in zip(weights, forms, strict=True):
        if weight:
            used = np.flatnonzero(form)
            matrix[np.ix_(used, used)] += weight * np.outer(form[used], form[used])
    return matrix


def _polynomial(output: Array, squares: Array) -> Exact:
    """The matrix of an output over the places, the squares and 1."""
    size = squares.shape[1] - 1
    exact = _exact(output[None])[0]
    linear = np.concatenate([exact[:size], exact[-1:]])
    return _symmetric(linear, exact[size:-1], _exact(squares))


def _largest(matrix: Exact, reach: list[Fraction]) -> Fraction:
    """A bound on a polynomial's absolute value."""
    rows = (
        sum((abs(c) * b for c, b in zip(row, reach, strict=True) if c), Fraction(0)) * a
        for row, a in zip(matrix, reach, strict=True)
    )
    return sum(rows, Fraction(0))


def _moments(case: Case, network: BlockNetwork, places: _Places) -> tuple[Array, Array]:
    """The mean of the places, and the second moment of how they vary within a small box, where the
    outputs are nearest to being ≥ 0 all of them."""
    rng = np.random.default_rng(0)
    lower, upper = case.lower, case.upper
    points = rng.uniform(lower, upper, (SQUARES.samples, len(lower)))
    joined = np.hstack([points, network.outputs_at(points)])
    margins = (joined @ case.weight.T + case.constant).min(axis=1, initial=np.inf)
    points = points[np.argsort(-margins)[: SQUARES.nearest]]
    moved = points + rng.uniform(-1.0, 1.0, points.shape) * (SQUARES.width * (upper - lower))
    here, there = (places.values(one) for one in (points, moved))
    step = there - here
    moment = step.T @ step / len(step)
    size = np.diag(moment)
    ridge = SQUARES.ridge * (size + SQUARES.floor * size.mean()) + 1e-200
    return here.mean(axis=0), moment + np.diag(ridge)


def _decomposed(
    wanted: list[Exact], centre: Array, moment: Array
) -> tuple[Array, Array, list[Exact]]:
    """Squares, every output over the places, the squares and 1, and its polynomial."""
    size = len(centre)
    forms: list[Array] = []
    weights: list[tuple[int, Array]] = []  # of every output: where its squares begin, their signs
    for j, matrix in enumerate(wanted):
        same = next(
            ((i, s) for i in range(j) for s in (1, -1) if _alike(matrix, wanted[i], s)), None
        )
        if same is not None:
            first, signs = weights[same[0]]
            weights.append((first, same[1] * signs))
            continue
        lines, signs = _squares_of(matrix[:size, :size].astype(np.float64), moment)
        weights.append((len(forms), signs))
        forms += list(np.hstack([lines, -(lines @ centre)[:, None]]))
    squares = np.array(forms).reshape(len(forms), size + 1)
    outputs = np.zeros((len(wanted), size + len(forms) + 1))
    made = []
    for row, matrix, (first, signs) in zip(outputs, wanted, weights, strict=True):
        row[size + first : size + first + len(signs)] = signs
        quadratic = _polynomial(row, squares)
        rest = matrix - quadratic
        row[:size] = (rest[:size, size] * 2).astype(np.float64)
        row[-1] = float(rest[size, size])
        straight = _exact(np.append(row[:size], row[-1])[None])[0]
        made.append(quadratic + _symmetric(straight, straight[:0], quadratic[:0]))
    return squares, outputs, made


def _squares_of(quadratic: Array, moment: Array) -> tuple[Array, Array]:
    """Forms, one a row, and signs: the sum of their squares is nearly a quadratic form."""
    read = np.flatnonzero(quadratic.any(axis=1))
    values, vectors = np.linalg.eigh(moment[np.ix_(read, read)])
    root = (vectors * np.sqrt(values)) @ vectors.T
    back = (vectors / np.sqrt(values)) @ vectors.T
    sizes, turned = np.linalg.eigh(root @ quadratic[np.ix_(read, read)] @ root)
    used = np.abs(sizes) > SQUARES.least * np.abs(sizes).max(initial=0.0)
    lines = np.zeros((int(used.sum()), len(quadratic)))
    lines[:, read] = (back @ turned[:, used]).T * np.sqrt(np.abs(sizes[used]))[:, None]
    return lines, np.sign(sizes[used])


def _alike(a: Exact, b: Exact, sign: int) -> bool:
    """Whether two polynomials have the same squares, up to a sign."""
    return bool((a[:-1, :-1] == sign * b[:-1, :-1]).all())
