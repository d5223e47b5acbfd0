"""A small exact re-prover of branch proofs, written from docs/proof-format.md alone: plain
Fractions, no speed. It shares nothing with the engine, so a leaf that it accepts is a fact."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from graphkeel.verify import Problem

ZERO = Fraction(0)
HALF = Fraction(1, 2)


class NotProved(AssertionError):
    """A proof that does not show what it claims."""


def exact(values: Any) -> Any:
    """A float array as an object array of Fractions."""
    array = np.asarray(values, dtype=np.float64)
    return np.array([Fraction(float(x)) for x in array.ravel()], dtype=object).reshape(array.shape)


def decoded(entry: dict[str, Any]) -> Any:
    raw = base64.b64decode(entry["base64"], validate=True)
    return np.frombuffer(raw, dtype=np.dtype(entry["dtype"])).reshape(entry["shape"])


@dataclass
class Layer:
    w: Any
    b: Any
    e: Any
    c: Any

    @classmethod
    def of(cls, affine: Any) -> Layer:
        e = np.zeros_like(affine.weight) if affine.weight_error is None else affine.weight_error
        c = np.zeros_like(affine.bias) if affine.bias_error is None else affine.bias_error
        return cls(exact(affine.weight), exact(affine.bias), exact(e), exact(c))

    def after(self, inner: Layer) -> Layer:
        size = np.abs(self.w)
        return Layer(
            self.w.dot(inner.w),
            self.w.dot(inner.b) + self.b,
            size.dot(inner.e) + self.e.dot(np.abs(inner.w)) + self.e.dot(inner.e),
            size.dot(inner.c) + self.e.dot(np.abs(inner.b)) + self.e.dot(inner.c) + self.c,
        )

    def times(self, factor: Fraction) -> Layer:
        size = abs(factor)
        return Layer(factor * self.w, factor * self.b, size * self.e, size * self.c)

    def row(self, i: int) -> Layer:
        one = slice(i, i + 1)
        return Layer(self.w[one], self.b[one], self.e[one], self.c[one])


@dataclass
class ExactRow:
    name: str
    direct: Any  # (n,)
    constant: Fraction
    chains: list[list[Layer]]  # hidden layers
    finals: list[Layer | None]
    strict: bool = False
    holed: bool = False
    direct_error: Any = None  # (n,)
    error: Fraction = ZERO
    side: tuple[int, int] | None = None


def nothing(n: int) -> Any:
    return np.array([ZERO] * n, dtype=object)


def rows_of(problem: Problem, proof: dict[str, Any]) -> list[ExactRow]:
    f = [Layer.of(a) for a in problem.closed_loop.layers]
    v = [Layer.of(a) for a in problem.lyapunov.layers]
    n, condition = problem.n, proof["condition"]
    if condition == "decrease":
        joined = [*f[:-1], v[0].after(f[-1]), *v[1:]]
        finals = [joined[-1], v[-1].times(-Fraction(problem.rho))]
        row = ExactRow("decrease", nothing(n), ZERO, [joined[:-1], v[:-1]], finals)
        row.strict, row.holed = problem.rho == 1.0, True
        rows = [row]
    elif condition == "positivity":
        rows = _positivity(problem, v)
    elif condition == "invariance":
        rows = []
        for i in range(n):
            for name, sign, end in (("upper", 1, problem.upper), ("lower", -1, problem.lower)):
                final = f[-1].row(i).times(Fraction(sign))
                constant = -sign * Fraction(float(end[i]))
                rows.append(
                    ExactRow(f"{name} {i}", nothing(n), constant, [f[:-1], []], [final, None])
                )
    else:
        rows = _region(problem, f, exact(decoded(proof["multipliers"])))
    return [_folded(row) for row in rows]


def _positivity(problem: Problem, v: list[Layer]) -> list[ExactRow]:
    minus = v[-1].times(Fraction(-1))
    if problem.positivity == 0.0:
        row = ExactRow("positivity", nothing(problem.n), ZERO, [[], v[:-1]], [None, minus])
        row.strict = row.holed = True
        return [row]
    rows, c = [], Fraction(problem.positivity)
    for i in range(problem.n):
        for sign in (1, -1):
            direct = nothing(problem.n)
            direct[i] = sign * c
            constant = -sign * c * Fraction(float(problem.equilibrium[i]))
            name = f"{'+' if sign > 0 else '-'}{i}"
            row = ExactRow(name, direct, constant, [[], v[:-1]], [None, minus])
            row.side = (i, sign)
            rows.append(row)
    return rows


def _region(problem: Problem, f: list[Layer], multipliers: Any) -> list[ExactRow]:
    c, margin = problem.region.axis, Fraction(problem.region.margin)
    rivals = [k for k in range(problem.n) if k != c]
    assert multipliers.shape == (len(rivals), problem.n) and (multipliers >= 0).all()
    rows = []
    for k, pull in zip(rivals, multipliers, strict=True):
        assert pull[c] == 0
        last, other = f[-1].row(k), f[-1].row(c)
        final = Layer(last.w - other.w, last.b - other.b, last.e + other.e, last.c + other.c)
        direct = -pull
        direct[c] = pull.sum()
        constant = margin * (1 - pull.sum())
        row = ExactRow(f"class {k}", direct, constant, [f[:-1], []], [final, None])
        row.strict = margin == 0
        rows.append(row)
    return rows


def _folded(row: ExactRow) -> ExactRow:
    """Chains without hidden layers join the affine part."""
    row.direct_error = nothing(len(row.direct))
    for chain, final in zip(row.chains, row.finals, strict=True):
        if final is not None and not chain:
            row.direct = row.direct + final.w[0]
            row.constant += final.b[0]
            row.direct_error = row.direct_error + final.e[0]
            row.error += final.c[0]
    row.finals = [
        final if chain else None for chain, final in zip(row.chains, row.finals, strict=True)
    ]
    return row


# ---- the bound of a leaf


@dataclass
class Units:
    """One hidden layer on a box."""

    layer: Layer
    low: Any
    high: Any
    error: Any
    chord: Any = None
    lift: Any = None
    alpha: Any = None
    skip: Any = None  # (units, n) for coupled units: more coefficients of y
    offset: Any = None

    def __post_init__(self) -> None:
        lines = [_lines(low, high) for low, high in zip(self.low, self.high, strict=True)]
        chord, lift, alpha = zip(*lines, strict=True)
        self.chord = np.array(chord, dtype=object)
        self.lift = np.array(lift, dtype=object)
        self.alpha = np.array(alpha, dtype=object)


def _lines(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    if low >= 0:
        return Fraction(1), ZERO, Fraction(1)
    if high <= 0:
        return ZERO, ZERO, ZERO
    chord = high / (high - low)
    alpha = min(Fraction(1), max(ZERO, HALF + 4 * (high + low) / (high - low)))
    return chord, -chord * low, alpha


@dataclass
class Leaf:
    """Everything a leaf may choose."""

    slopes: list[Any] | None = None  # per chain, of its first hidden layer
    theta: dict[int, Any] = field(default_factory=dict)  # coupled unit -> its row of Θ


def upper_bound(row: ExactRow, lower: Any, upper: Any, leaf: Leaf) -> Fraction:
    """An upper bound of g over the box, by the formulas of section 2."""
    before = _hidden(row.chains[1], lower, upper, {}, None)
    after = _hidden(row.chains[0], lower, upper, leaf.theta, before)
    finals = [None if f is None else f.w[0].copy() for f in row.finals]
    errors = [None if f is None else f.e[0].copy() for f in row.finals]
    for k, theta in leaf.theta.items():
        v, slack = row.finals[0].w[0][k], row.finals[0].e[0][k]
        if v < slack:
            raise NotProved("a coupling on a unit whose weight may be negative")
        finals[1] = finals[1] + v * theta
        errors[1] = errors[1] + slack * theta
    form, total = row.direct.copy(), row.constant + row.error
    total += row.direct_error.dot(np.maximum(np.abs(lower), np.abs(upper)))
    for number, (units, final) in enumerate(zip((after, before), finals, strict=True)):
        if final is None:
            continue
        total += row.finals[number].b[0] + row.finals[number].c[0]
        total += errors[number].dot(np.maximum(units[-1].high, ZERO))
        first = None if leaf.slopes is None else leaf.slopes[number]
        part, constant = _substituted(units, final, first)
        form = form + part
        total += constant
    return total + np.maximum(form * lower, form * upper).sum()


def _hidden(
    chain: list[Layer], lower: Any, upper: Any, theta: dict[int, Any], before: list[Units] | None
) -> list[Units]:
    units: list[Units] = []
    reach = np.maximum(np.abs(lower), np.abs(upper))
    for index, layer in enumerate(chain):
        error = layer.e.dot(reach) + layer.c
        skip = np.zeros((len(layer.b), len(lower)), dtype=object) * ZERO + ZERO
        offset = nothing(len(layer.b))
        if index + 1 == len(chain):
            for k, row in theta.items():
                first = before[0]
                skip[k] = -row.dot(first.layer.w)
                offset[k] = -row.dot(first.layer.b)
                error[k] += row.dot(first.error)
        ends = []
        for sign in (1, -1):
            column = []
            for j in range(len(layer.b)):
                form, constant = _substituted(units, sign * layer.w[j], None)
                form = form + sign * skip[j]
                constant += sign * (layer.b[j] + offset[j])
                column.append(np.maximum(form * lower, form * upper).sum() + constant + error[j])
            ends.append(sign * np.array(column, dtype=object))
        units.append(Units(layer, ends[1], ends[0], error, skip=skip, offset=offset))
        reach = np.maximum(ends[0], ZERO)
    return units


def _substituted(units: list[Units], row: Any, first: Any) -> tuple[Any, Fraction]:
    """row·x of the last of the units, as a form in y and a constant that bound it from above."""
    total, extra = ZERO, None
    for index in range(len(units) - 1, -1, -1):
        unit = units[index]
        alpha = unit.alpha
        if index == 0 and first is not None:
            stable = (unit.low >= 0) | (unit.high <= 0)
            alpha = np.where(stable, unit.alpha, first)
        slanted = np.where(row > 0, row * unit.chord, row * alpha)
        total += np.where(row > 0, row * unit.lift, ZERO).sum()
        total += slanted.dot(unit.layer.b + unit.offset) + np.abs(slanted).dot(unit.error)
        skipped = slanted.dot(unit.skip)
        extra = skipped if extra is None else extra + skipped
        row = slanted.dot(unit.layer.w)
    return (row if extra is None else row + extra), total


# ---- trees


def reprove(problem: Problem, proof: dict[str, Any], most: int = 60) -> int:
    """The number of leaves, or NotProved; of large trees about `most` leaves are re-proved."""
    assert proof["version"] == 3
    rows = {row.name: row for row in rows_of(problem, proof)}
    if proof["kind"] == "homogeneous":
        return sum(_tree(problem, rows[t["row"]], t, proof["margin"], most) for t in proof["faces"])
    assert proof["kind"] == "branch"
    assert [tree["row"] for tree in proof["trees"]] == list(rows)
    return sum(_tree(problem, rows[tree["row"]], tree, 0.0, most) for tree in proof["trees"])


def _tree(problem: Problem, row: ExactRow, tree: dict[str, Any], margin: float, most: int) -> int:
    if tree.get("empty"):
        return 0
    axis, cut = decoded(tree["axis"]).tolist(), decoded(tree["cut"]).tolist()
    slopes, couplings = decoded(tree["slopes"]), decoded(tree["couplings"])
    stack = [(exact(tree["lower"]), exact(tree["upper"]))]
    leaves = cuts = sloped = 0
    every = max(1, len(axis) // (2 * most))
    for code in axis:
        lower, upper = stack.pop()
        if code >= 0:
            at = Fraction(cut[cuts])
            cuts += 1
            if not lower[code] < at < upper[code]:
                raise NotProved("a cut outside its box")
            left, right = upper.copy(), lower.copy()
            left[code] = right[code] = at
            stack += [(right, upper), (lower, left)]
            continue
        leaves += 1
        leaf = Leaf()
        if code == -3:
            leaf = _stored(row, slopes[sloped], couplings)
            sloped += 1
        if code == -1:
            _in_hole(problem, row, lower, upper)
        elif code in (-2, -3):
            if leaves % every:
                continue
            bound = upper_bound(row, lower, upper, leaf) + Fraction(margin)
            if bound > 0 or (row.strict and not margin and bound >= 0):
                raise NotProved(f"{row.name}: the bound of a leaf is {float(bound):.3g}")
        else:
            assert code == -4  # the cells' own tests look at these
    if stack or cuts != len(cut) or sloped != len(slopes):
        raise NotProved("a tree with entries left over")
    return leaves


def _stored(row: ExactRow, line: Any, couplings: Any) -> Leaf:
    widths = [len(chain[0].b) if chain else 0 for chain in row.chains]
    numbers = line[sum(widths) :]
    scale = np.array([Fraction(int(q), 255) for q in line[: sum(widths)]], dtype=object)
    theta = {k: exact(couplings[m - 1][k]) for k, m in enumerate(numbers) if m}
    return Leaf([scale[: widths[0]], scale[widths[0] :]], theta)


def _in_hole(problem: Problem, row: ExactRow, lower: Any, upper: Any) -> None:
    centre, radius = exact(problem.equilibrium), Fraction(problem.hole_radius)
    far = np.maximum(np.abs(lower - centre), np.abs(upper - centre))
    inside = far.max() < radius if problem.hole_norm == "inf" else far.dot(far) < radius**2
    if not (row.holed and inside):
        raise NotProved("a hole leaf that is not in the hole")
