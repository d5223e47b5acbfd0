"""The same upper bound for one box in exact arithmetic: for leaves whose margin is within float
rounding.

Slopes are chosen in floats, which are rational numbers like any other; everything that is claimed
of them is then decided in exact integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from graphkeel.certificate.dyadic import Bools, Dyadic, Floats
from graphkeel.certificate.rows import Branch, Row
from graphkeel.certificate.schema import Layer

Lines = tuple[Dyadic, Dyadic, Dyadic]  # lower slope, upper slope, upper intercept


@dataclass(frozen=True, eq=False)
class Tilt:
    """What a lens adds to the pre-activations of V∘F: −Θ(Ry + r), with its error."""

    linear: Dyadic
    constant: Dyadic
    error: Dyadic


def exact_upper(
    row: Row, lower: Floats, upper: Floats, slopes: Floats | None = None, lens: Floats | None = None
) -> Fraction:
    """An exact upper bound of the row on one box."""
    low, high = Dyadic.of(lower), Dyadic.of(upper)
    reach = abs(low).maximum(abs(high))
    linear = Dyadic.of(row.linear)
    constant = (
        Dyadic.of(row.constant)
        + Dyadic.of(row.constant_error)
        + Dyadic.of(row.linear_error) @ reach
    )
    theta = None if lens is None else Dyadic.of(lens)
    column = 0
    for index, branch in enumerate(row.branches):
        width = branch.hidden[0].weight.shape[0]
        chosen = None if slopes is None else slopes[column : column + width]
        column += width
        final, final_error = Dyadic.of(branch.final), Dyadic.of(branch.final_error)
        tilt = None
        if theta is not None and index == 0:
            tilt = _tilt(row.branches[1].hidden[0], theta, reach)
        elif theta is not None:
            final = final + Dyadic.of(row.branches[0].final) @ theta
            final_error = final_error + Dyadic.of(row.branches[0].final_error) @ theta
        coefficients, offset = _branch(branch, low, high, chosen, final, final_error, tilt)
        linear, constant = linear + coefficients[0], constant + offset[0]
    return (_maximum(linear, low, high) + constant).fraction()


def _tilt(layer: Layer, theta: Dyadic, reach: Dyadic) -> Tilt:
    error = Dyadic.of(layer.weight_error) @ reach + Dyadic.of(layer.bias_error)
    return Tilt(-(theta @ Dyadic.of(layer.weight)), -(theta @ Dyadic.of(layer.bias)), theta @ error)


def _branch(
    branch: Branch,
    low: Dyadic,
    high: Dyadic,
    slopes: Floats | None,
    final: Dyadic,
    final_error: Dyadic,
    tilt: Tilt | None,
) -> tuple[Dyadic, Dyadic]:
    lines: list[Lines] = []
    errors: list[Dyadic] = []
    unstable: list[Bools] = []
    reach = abs(low).maximum(abs(high))
    for k, layer in enumerate(branch.hidden):
        tilted = tilt if k + 1 == len(branch.hidden) else None
        errors.append(Dyadic.of(layer.weight_error) @ reach + Dyadic.of(layer.bias_error))
        if tilted is not None:
            errors[k] = errors[k] + tilted.error
        least, most = _enclosure(branch.hidden, k, lines, errors, low, high, tilted)
        line, open_units = _lines(least, most)
        lines.append(line)
        unstable.append(open_units)
        reach = most.relu()
    if slopes is not None:
        lower_slope = Dyadic.of(slopes).where(unstable[0], lines[0][0])
        lines[0] = (lower_slope, *lines[0][1:])
    coefficients, constant = _substituted(branch.hidden, _row(final), lines, errors, tilt)
    return coefficients, constant + _row(final_error) @ reach


def _row(vector: Dyadic) -> Dyadic:
    return Dyadic(vector.mantissa[None, :], vector.exponent)


def _enclosure(
    hidden: tuple[Layer, ...],
    k: int,
    lines: list[Lines],
    errors: list[Dyadic],
    low: Dyadic,
    high: Dyadic,
    tilt: Tilt | None,
) -> tuple[Dyadic, Dyadic]:
    weight, bias = Dyadic.of(hidden[k].weight), Dyadic.of(hidden[k].bias)
    ends = []
    for sign in (1, -1):
        rows = weight if sign > 0 else -weight
        constant = errors[k]
        if k > 0:
            rows, offset = _substituted(hidden[:k], rows, lines, errors, None)
            constant = constant + offset
        if tilt is not None:
            rows = rows + tilt.linear if sign > 0 else rows - tilt.linear
            constant = constant + tilt.constant if sign > 0 else constant - tilt.constant
        ends.append(_maximum(rows, low, high) + constant)
    return bias - ends[1], bias + ends[0]


def _substituted(
    hidden: tuple[Layer, ...],
    rows: Dyadic,
    lines: list[Lines],
    errors: list[Dyadic],
    tilt: Tilt | None,
) -> tuple[Dyadic, Dyadic]:
    constant = Dyadic.of(np.zeros(rows.shape[0]))
    linear = None
    for k in range(len(hidden) - 1, -1, -1):
        lower_slope, upper_slope, intercept = lines[k]
        positive, negative = rows.relu(), -((-rows).relu())
        slanted = positive * upper_slope + negative * lower_slope
        constant = (
            constant
            + positive @ intercept
            + slanted @ Dyadic.of(hidden[k].bias)
            + abs(slanted) @ errors[k]
        )
        if tilt is not None and k + 1 == len(hidden):
            linear, constant = slanted @ tilt.linear, constant + slanted @ tilt.constant
        rows = slanted @ Dyadic.of(hidden[k].weight)
    return rows if linear is None else rows + linear, constant


def _maximum(rows: Dyadic, low: Dyadic, high: Dyadic) -> Dyadic:
    return rows.relu() @ high - (-rows).relu() @ low


def _lines(least: Dyadic, most: Dyadic) -> tuple[Lines, Bools]:
    zero = Dyadic.of(np.zeros(least.shape))
    active = zero <= least
    unstable = ~(active | (most <= zero))
    lower, upper = active.astype(float), active.astype(float)
    for j in np.flatnonzero(unstable):
        low, high = least[j].fraction(), most[j].fraction()
        lower[j] = float(np.clip(float(Fraction(1, 2) + 4 * (high + low) / (high - low)), 0.0, 1.0))
        upper[j] = _not_below(high / (high - low))
    slopes = Dyadic.of(upper)
    intercept = (-(slopes * least)).where(unstable, zero)
    return (Dyadic.of(lower), slopes, intercept), unstable


def _not_below(value: Fraction) -> float:
    slope = float(value)
    return slope if Fraction(slope) >= value else float(np.nextafter(slope, np.inf))
