"""The same upper bound for one box in exact arithmetic: for leaves whose margin is within float rounding.

Slopes are chosen in floats, which are rational numbers like any other; everything that is claimed of them is then
decided in exact integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from graphkeel.certificates.dyadic import Bools, Dyadic, Floats
from graphkeel.certificates.rows import Branch, Row
from graphkeel.certificates.schema import Layer

Lines = tuple[Dyadic, Dyadic, Dyadic]  # lower slope, upper slope, upper intercept


def exact_upper(row: Row, lower: Floats, upper: Floats, slopes: Floats | None = None) -> Fraction:
    """An exact upper bound of the row on one box."""
    low, high = Dyadic.of(lower), Dyadic.of(upper)
    reach = abs(low).maximum(abs(high))
    linear = Dyadic.of(row.linear)
    constant = Dyadic.of(row.constant) + Dyadic.of(row.constant_error) + Dyadic.of(row.linear_error) @ reach
    column = 0
    for branch in row.branches:
        width = branch.hidden[0].weight.shape[0]
        chosen = None if slopes is None else slopes[column : column + width]
        column += width
        coefficients, offset = _branch(branch, low, high, chosen)
        linear, constant = linear + coefficients[0], constant + offset[0]
    return (_maximum(linear, low, high) + constant).fraction()


def _branch(branch: Branch, low: Dyadic, high: Dyadic, slopes: Floats | None) -> tuple[Dyadic, Dyadic]:
    lines: list[Lines] = []
    errors: list[Dyadic] = []
    unstable: list[Bools] = []
    reach = abs(low).maximum(abs(high))
    for k, layer in enumerate(branch.hidden):
        errors.append(Dyadic.of(layer.weight_error) @ reach + Dyadic.of(layer.bias_error))
        least, most = _enclosure(branch.hidden, k, lines, errors, low, high)
        line, open_units = _lines(least, most)
        lines.append(line)
        unstable.append(open_units)
        reach = most.relu()
    if slopes is not None:
        lower_slope = Dyadic.of(slopes).where(unstable[0], lines[0][0])
        lines[0] = (lower_slope, *lines[0][1:])
    coefficients, constant = _substituted(branch.hidden, Dyadic.of(branch.final[None, :]), lines, errors)
    return coefficients, constant + Dyadic.of(branch.final_error[None, :]) @ reach


def _enclosure(
    hidden: tuple[Layer, ...], k: int, lines: list[Lines], errors: list[Dyadic], low: Dyadic, high: Dyadic
) -> tuple[Dyadic, Dyadic]:
    weight, bias = Dyadic.of(hidden[k].weight), Dyadic.of(hidden[k].bias)
    ends = []
    for rows in (weight, -weight):
        if k == 0:
            ends.append(_maximum(rows, low, high) + errors[0])
            continue
        coefficients, constant = _substituted(hidden[:k], rows, lines, errors)
        ends.append(_maximum(coefficients, low, high) + constant + errors[k])
    return bias - ends[1], bias + ends[0]


def _substituted(
    hidden: tuple[Layer, ...], rows: Dyadic, lines: list[Lines], errors: list[Dyadic]
) -> tuple[Dyadic, Dyadic]:
    constant = Dyadic.of(np.zeros(rows.shape[0]))
    for k in range(len(hidden) - 1, -1, -1):
        lower_slope, upper_slope, intercept = lines[k]
        positive, negative = rows.relu(), -((-rows).relu())
        slanted = positive * upper_slope + negative * lower_slope
        constant = constant + positive @ intercept + slanted @ Dyadic.of(hidden[k].bias) + abs(slanted) @ errors[k]
        rows = slanted @ Dyadic.of(hidden[k].weight)
    return rows, constant


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
