"""Upper bounds of a row over many boxes at once, in float64, with rounding counted in.

The relaxation is that of docs/proof-format.md section 2. Soundness does not rest on how the lines
are chosen, only on these facts: the upper line s·z + t has s >= u/(u − l) and t >= −s·l for floats
l, u that enclose the unit, the lower line has a slope in [0, 1], and a substitution step with float
coefficients μ errs by less than γ·(|μ|·mag + Σ λ⁺t), where mag bounds |W|·|x| + |b| over the root
box. γ = (N + 16)·2⁻⁵¹, with N the number of inputs and units, is more than the sum of the roundings
of all steps (a dot product of k terms costs at most k + 2 of the unit 2⁻⁵³).

A *lens* θ >= 0 on unit k of V∘F replaces relu(z_k) by relu(z_k − θ·z_B) + θ·relu(z_B), which is
never smaller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.certificate.dyadic import Floats
from graphkeel.certificate.rows import Branch, Row
from graphkeel.certificate.schema import Layer

_TINY = 1e-250  # more than all underflows together
_UP = 1 + 2.0**-38  # covers the roundings of a sum of up to 8000 non-negative products
_CHUNK = 1_000_000  # entries of the largest intermediate array


@dataclass(frozen=True, eq=False)
class Lines:
    """Per box and unit: lower slope (its intercept is 0), upper slope and upper intercept."""

    lower: Floats
    upper: Floats
    intercept: Floats


@dataclass(frozen=True, eq=False)
class Tilt:
    """What lenses add to the pre-activations of V∘F: −Θ(Ry + r), per box and unit."""

    linear: Floats  # (boxes, units, n)
    constant: Floats  # (boxes, units)
    error: Floats
    scale: Floats


@dataclass(frozen=True, eq=False)
class Boxes:
    """A batch of boxes and what is needed of them again and again."""

    lower: Floats
    upper: Floats

    @property
    def middle(self) -> Floats:
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> Floats:
        return (self.upper - self.lower) / 2

    @property
    def reach(self) -> Floats:
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def largest(self, linear: Floats) -> Floats:
        """The maximum of linear forms (boxes, rows, n) over each box."""
        centre = np.matmul(linear, self.middle[:, :, None])[:, :, 0]
        return centre + np.matmul(np.abs(linear), self.radius[:, :, None])[:, :, 0]


@dataclass(eq=False)
class Form:
    """Linear forms in y per box: linear·y + constant + error, with `scale` the magnitude the
    roundings refer to."""

    linear: Floats  # (boxes, rows, n)
    constant: Floats  # (boxes, rows)
    error: Floats
    scale: Floats

    @staticmethod
    def zero(boxes: int, rows: int, n: int) -> Form:
        return Form(np.zeros((boxes, rows, n)), *(np.zeros((boxes, rows)) for _ in range(3)))

    @staticmethod
    def of_row(row: Row, root_reach: Floats, reach: Floats) -> Form:
        form = Form.zero(reach.shape[0], 1, row.linear.shape[0])
        form.linear += row.linear
        form.constant += row.constant
        form.error += (reach @ row.linear_error)[:, None] + row.constant_error
        form.scale += np.abs(row.linear) @ root_reach + abs(row.constant)
        return form

    def add(self, other: Form) -> None:
        self.linear += other.linear
        self.constant += other.constant
        self.error += other.error
        self.scale += other.scale + other.error


class RowBound:
    """Bounds of one row over boxes inside a root box."""

    def __init__(self, row: Row, lower: Floats, upper: Floats) -> None:
        self.row = row
        widths = [layer.weight.shape[0] for branch in row.branches for layer in branch.hidden]
        self._gamma = (lower.shape[0] + sum(widths) + 16) * 2.0**-51
        self._reach = Boxes(lower, upper).reach
        self._chunk = max(1, _CHUNK // (2 * max([lower.shape[0], *widths]) ** 2))
        with np.errstate(
            all="ignore"
        ):  # an infinite magnitude refuses every leaf, which is the safe side
            self._magnitudes = [_magnitudes(branch, self._reach) for branch in row.branches]

    def upper(
        self,
        lower: Floats,
        upper: Floats,
        slopes: Floats | None = None,
        lenses: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """(bounds, slack): g <= bound on each box, and the part of the bound that is rounding
        slack."""
        parts = []
        for start in range(0, lower.shape[0], self._chunk):
            chosen = slice(start, start + self._chunk)
            extras = (None if array is None else array[chosen] for array in (slopes, lenses))
            with np.errstate(
                all="ignore"
            ):  # an overflow ends in a bound that is not <= 0, so the leaf is refused
                parts.append(self._upper(Boxes(lower[chosen], upper[chosen]), *extras))
        if not parts:
            return np.zeros(0), np.zeros(0)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _upper(
        self, boxes: Boxes, slopes: Floats | None, lenses: Floats | None
    ) -> tuple[Floats, Floats]:
        form = Form.of_row(self.row, self._reach, boxes.reach)
        column = 0
        for index, branch in enumerate(self.row.branches):
            width = branch.hidden[0].weight.shape[0]
            chosen = None if slopes is None else slopes[:, column : column + width]
            column += width
            form.add(self._branch(index, boxes, chosen, lenses))
        slack = self._gamma * form.scale[:, 0] + _TINY
        return boxes.largest(form.linear)[:, 0] + form.constant[:, 0] + form.error[
            :, 0
        ] + slack, slack

    def _branch(
        self, index: int, boxes: Boxes, slopes: Floats | None, lenses: Floats | None
    ) -> Form:
        """A branch as a linear form in y that lies above it on each box."""
        branch, magnitudes = self.row.branches[index], self._magnitudes[index]
        tilt = self._tilt(boxes, lenses) if lenses is not None and index == 0 else None
        lines: list[Lines] = []
        errors: list[Floats] = []
        reach = boxes.reach
        for k, layer in enumerate(branch.hidden):
            errors.append((reach @ layer.weight_error.T + layer.bias_error) * _UP)
            tilted = tilt if k + 1 == len(branch.hidden) else None
            if tilted is not None:
                errors[k] = (errors[k] + tilted.error) * _UP
            low, high = self._enclosure(branch.hidden, k, lines, errors, magnitudes, boxes, tilted)
            lines.append(_lines(low, high))
            reach = np.maximum(high, 0.0)
        if slopes is not None:
            lines[0] = _with_lower_slopes(lines[0], slopes)
        final, final_error = branch.final[None, None, :], branch.final_error[None, :]
        if lenses is not None and index == 1:
            final, final_error = self._lensed(final, final_error, lenses)
        form = _substituted(branch.hidden, final, lines, errors, magnitudes, tilt)
        form.error += (reach * final_error).sum(axis=1)[:, None] * _UP
        return form

    def _tilt(self, boxes: Boxes, lenses: Floats) -> Tilt:
        layer, magnitudes = self.row.branches[1].hidden[0], self._magnitudes[1][0]
        own_error = (boxes.reach @ layer.weight_error.T + layer.bias_error) * _UP
        return Tilt(
            -(lenses @ layer.weight),
            -(lenses @ layer.bias),
            np.matmul(lenses, own_error[:, :, None])[:, :, 0],
            lenses @ magnitudes,
        )

    def _lensed(self, final: Floats, final_error: Floats, lenses: Floats) -> tuple[Floats, Floats]:
        """The coefficients of relu(z_B) after what the lenses moved there; the moved part has
        errors, too."""
        outer = self.row.branches[0]
        moved = outer.final @ lenses  # (boxes, K): Σ_k v_k θ_ki
        sizes = np.abs(outer.final) @ lenses
        error = (
            final_error + outer.final_error @ lenses + self._gamma * (np.abs(final[:, 0]) + sizes)
        )
        return final + moved[:, None, :], error

    def _enclosure(
        self,
        hidden: tuple[Layer, ...],
        k: int,
        lines: list[Lines],
        errors: list[Floats],
        magnitudes: list[Floats],
        boxes: Boxes,
        tilt: Tilt | None,
    ) -> tuple[Floats, Floats]:
        """Bounds of the pre-activations of layer k."""
        weight, bias = hidden[k].weight, hidden[k].bias
        own = errors[k] + (self._gamma * 2 * magnitudes[k] + _TINY)
        if k == 0 and tilt is None:
            centre = boxes.middle @ weight.T + bias
            widened = boxes.radius @ np.abs(weight).T + own
            return centre - widened, centre + widened
        both = np.concatenate([weight, -weight])
        if k == 0:
            form = Form.zero(boxes.lower.shape[0], both.shape[0], weight.shape[1])
            form.linear += both
        else:
            form = _substituted(hidden[:k], both[None], lines, errors, magnitudes, None)
        if tilt is not None:
            form.linear += np.concatenate([tilt.linear, -tilt.linear], axis=1)
            form.constant += np.concatenate([tilt.constant, -tilt.constant], axis=1)
            form.scale += 2 * np.concatenate([tilt.scale, tilt.scale], axis=1)
        value = (
            boxes.largest(form.linear)
            + form.constant
            + form.error
            + self._gamma * (form.scale + form.error)
        )
        width = weight.shape[0]
        return bias - (value[:, width:] + own), bias + (value[:, :width] + own)


def _substituted(
    hidden: tuple[Layer, ...],
    rows: Floats,
    lines: list[Lines],
    errors: list[Floats],
    magnitudes: list[Floats],
    tilt: Tilt | None,
) -> Form:
    """rows @ x of the last hidden layer (rows: one set for all boxes, or one per box), substituted
    down to y."""
    coefficients, boxes = rows, lines[0].lower.shape[0]
    form = Form.zero(boxes, rows.shape[1], hidden[0].weight.shape[1])
    for k in range(len(hidden) - 1, -1, -1):
        positive, negative = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
        lifted = np.matmul(positive, lines[k].intercept[:, :, None])[:, :, 0]
        slanted = positive * lines[k].upper[:, None] + negative * lines[k].lower[:, None]
        size = np.abs(slanted)
        form.constant += lifted + slanted @ hidden[k].bias
        form.error += np.matmul(size, errors[k][:, :, None])[:, :, 0]
        form.scale += lifted + size @ magnitudes[k]
        if tilt is not None and k + 1 == len(hidden):
            form.linear += slanted @ tilt.linear
            form.constant += np.matmul(slanted, tilt.constant[:, :, None])[:, :, 0]
            form.scale += 2 * np.matmul(size, tilt.scale[:, :, None])[:, :, 0]
        coefficients = slanted @ hidden[k].weight
    form.linear += coefficients
    return form


def _magnitudes(branch: Branch, reach: Floats) -> list[Floats]:
    """Per hidden layer a bound on |W|·|x| + |b| + errors over the root box."""
    magnitudes = []
    for layer in branch.hidden:
        weight, bias = (
            np.abs(layer.weight) + layer.weight_error,
            np.abs(layer.bias) + layer.bias_error,
        )
        reach = (weight @ reach + bias) * _UP + _TINY
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
