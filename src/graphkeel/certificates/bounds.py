"""Upper bounds of a row over many boxes at once, in float64, with rounding counted in.

The relaxation is that of docs/proof-format.md section 2. Soundness does not rest on how the lines are chosen, only on
these facts: the upper line s·z + t has s >= u/(u − l) and t >= −s·l for floats l, u that enclose the unit, the lower
line has a slope in [0, 1], and a substitution step with float coefficients μ errs by less than γ·(|μ|·mag + Σ λ⁺t),
where mag bounds |W|·|x| + |b| over the root box. γ = (N + 16)·2⁻⁵¹ is more than the sum of the roundings of all steps
(each dot product has at most N terms and costs at most N + 2 of the unit 2⁻⁵³).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.certificates.dyadic import Floats
from graphkeel.certificates.rows import Branch, Row
from graphkeel.certificates.schema import Layer

_TINY = 1e-250  # more than all underflows together
_CHUNK = 2_000_000  # entries of the largest intermediate array


@dataclass(frozen=True, eq=False)
class Lines:
    """Per box and unit: lower slope (its intercept is 0), upper slope and upper intercept."""

    lower: Floats
    upper: Floats
    intercept: Floats


class RowBound:
    """Bounds of one row over boxes inside a root box."""

    def __init__(self, row: Row, lower: Floats, upper: Floats) -> None:
        self.row = row
        sizes = [lower.shape[0], *(layer.weight.shape[0] for b in row.branches for layer in b.hidden)]
        self._gamma = (max(sizes) + 16) * 2.0**-51
        self._reach = np.maximum(np.abs(lower), np.abs(upper))
        self._magnitudes = [_magnitudes(branch, self._reach) for branch in row.branches]
        self._chunk = max(1, _CHUNK // (2 * max(sizes) ** 2))

    def upper(self, lower: Floats, upper: Floats, slopes: Floats | None = None) -> tuple[Floats, Floats]:
        """(bounds, slack): g <= bound on each box, and the part of the bound that is rounding slack."""
        parts = []
        for start in range(0, lower.shape[0], self._chunk):
            box = slice(start, start + self._chunk)
            parts.append(self._upper(lower[box], upper[box], None if slopes is None else slopes[box]))
        if not parts:
            return np.zeros(0), np.zeros(0)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _upper(self, lower: Floats, upper: Floats, slopes: Floats | None) -> tuple[Floats, Floats]:
        row, middle, radius = self.row, (lower + upper) / 2, (upper - lower) / 2
        reach = np.maximum(np.abs(lower), np.abs(upper))
        with np.errstate(all="ignore"):  # an overflow ends in a bound that is not <= 0, so the leaf is refused
            form = _Form.of_row(row, self._reach, reach)
            column = 0
            for branch, magnitudes in zip(row.branches, self._magnitudes, strict=True):
                width = branch.hidden[0].weight.shape[0]
                chosen = None if slopes is None else slopes[:, column : column + width]
                column += width
                form.add(self._branch(branch, magnitudes, lower, upper, chosen))
            value = (form.linear[:, 0] * middle).sum(1) + (np.abs(form.linear[:, 0]) * radius).sum(1)
            slack = self._gamma * form.scale[:, 0] + _TINY
            return value + form.constant[:, 0] + form.error[:, 0] + slack, slack

    def _branch(
        self, branch: Branch, magnitudes: list[Floats], lower: Floats, upper: Floats, slopes: Floats | None
    ) -> _Form:
        """The branch as a linear form in y that lies above it on each box."""
        lines: list[Lines] = []
        errors: list[Floats] = []
        reach = np.maximum(np.abs(lower), np.abs(upper))
        for k, layer in enumerate(branch.hidden):
            errors.append((reach @ layer.weight_error.T + layer.bias_error) * (1 + 2.0**-20))
            low, high = self._enclosure(branch.hidden, k, lines, errors, magnitudes, lower, upper)
            lines.append(_lines(low, high))
            reach = np.maximum(high, 0.0)
        if slopes is not None:
            lines[0] = _with_lower_slopes(lines[0], slopes)
        form = self._substituted(branch.hidden, branch.final[None, :], lines, errors, magnitudes)
        form.error += (reach @ branch.final_error)[:, None]
        return form

    def _enclosure(
        self,
        hidden: tuple[Layer, ...],
        k: int,
        lines: list[Lines],
        errors: list[Floats],
        magnitudes: list[Floats],
        lower: Floats,
        upper: Floats,
    ) -> tuple[Floats, Floats]:
        """Bounds of the pre-activations of layer k."""
        weight, bias = hidden[k].weight, hidden[k].bias
        middle, radius = (lower + upper) / 2, (upper - lower) / 2
        if k == 0:
            centre, spread = middle @ weight.T + bias, radius @ np.abs(weight).T
            widened = spread + errors[0] + (self._gamma * 2 * magnitudes[0] + _TINY)
            return centre - widened, centre + widened
        form = self._substituted(hidden[:k], np.concatenate([weight, -weight]), lines, errors, magnitudes)
        value = np.einsum("bmi,bi->bm", form.linear, middle) + np.einsum("bmi,bi->bm", np.abs(form.linear), radius)
        own = errors[k] + (self._gamma * 2 * magnitudes[k] + _TINY)
        value += form.constant + form.error + self._gamma * (form.scale + form.error)
        value += np.concatenate([own, own], axis=1)
        width = weight.shape[0]
        return bias - value[:, width:], bias + value[:, :width]

    @staticmethod
    def _substituted(
        hidden: tuple[Layer, ...], rows: Floats, lines: list[Lines], errors: list[Floats], magnitudes: list[Floats]
    ) -> _Form:
        """rows @ x of the last hidden layer, substituted backwards down to y."""
        coefficients: Floats = rows[None]
        boxes = lines[0].lower.shape[0]
        form = _Form.zero(boxes, rows.shape[0], hidden[0].weight.shape[1])
        for k in range(len(hidden) - 1, -1, -1):
            positive, negative = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
            lifted = np.einsum(
                "bmh,bh->bm", np.broadcast_to(positive, (boxes, *positive.shape[1:])), lines[k].intercept
            )
            slanted = positive * lines[k].upper[:, None] + negative * lines[k].lower[:, None]
            size = np.abs(slanted)
            form.constant += lifted + slanted @ hidden[k].bias
            form.error += np.einsum("bmh,bh->bm", size, errors[k])
            form.scale += lifted + size @ magnitudes[k]
            coefficients = slanted @ hidden[k].weight
        form.linear += coefficients
        return form


@dataclass(eq=False)
class _Form:
    """Linear forms in y per box: linear·y + constant + error, with `scale` the magnitude the roundings refer to."""

    linear: Floats  # (boxes, rows, n)
    constant: Floats  # (boxes, rows)
    error: Floats
    scale: Floats

    @staticmethod
    def zero(boxes: int, rows: int, n: int) -> _Form:
        return _Form(np.zeros((boxes, rows, n)), *(np.zeros((boxes, rows)) for _ in range(3)))

    @staticmethod
    def of_row(row: Row, root_reach: Floats, reach: Floats) -> _Form:
        form = _Form.zero(reach.shape[0], 1, row.linear.shape[0])
        form.linear += row.linear
        form.constant += row.constant
        form.error += (reach @ row.linear_error)[:, None] + row.constant_error
        form.scale += np.abs(row.linear) @ root_reach + abs(row.constant)
        return form

    def add(self, other: _Form) -> None:
        self.linear += other.linear
        self.constant += other.constant
        self.error += other.error
        self.scale += other.scale + other.error


def _magnitudes(branch: Branch, reach: Floats) -> list[Floats]:
    """Per hidden layer a bound on |W|·|x| + |b| + errors over the root box."""
    magnitudes = []
    for layer in branch.hidden:
        weight, bias = np.abs(layer.weight) + layer.weight_error, np.abs(layer.bias) + layer.bias_error
        with np.errstate(all="ignore"):  # an infinite magnitude refuses every leaf, which is the safe side
            reach = (weight @ reach + bias) * (1 + 2.0**-20) + _TINY
        magnitudes.append(reach)
    return magnitudes


def _lines(low: Floats, high: Floats) -> Lines:
    active, inactive = low >= 0, high <= 0
    unstable = ~(active | inactive)
    width = np.where(unstable, high - low, 1.0)
    slope = np.where(unstable, high / width * (1 + 2.0**-49), 0.0)
    intercept = np.where(unstable, -slope * low * (1 + 2.0**-49) + 1e-300, 0.0)
    default = np.clip(0.5 + 4 * (high + low) / width, 0.0, 1.0)
    fixed = active.astype(np.float64)
    return Lines(np.where(unstable, default, fixed), np.where(unstable, slope, fixed), intercept)


def _with_lower_slopes(lines: Lines, slopes: Floats) -> Lines:
    """Stored slopes for the unstable units; the stable ones keep their exact line."""
    unstable = lines.intercept > 0
    return Lines(np.where(unstable, slopes, lines.lower), lines.upper, lines.intercept)
