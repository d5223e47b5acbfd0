"""Upper bounds of many rows over one box, in float64, with rounding counted in (proof kind "box").

The relaxation is that of docs/proof-format.md section 2 with default slopes, for rows that share
the hidden layers of F, so that all of them are one matrix product a layer. γ = (N + 16)·2⁻⁵⁰, with
N the number of inputs and units, times the magnitudes |coefficient|·(|W|·|x| + |b|) is more than
the roundings of all steps together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkeel.certificate.dyadic import Floats
from graphkeel.certificate.schema import Layer

_TINY = 1e-250  # more than all underflows together
_UP = 1 + 2.0**-38  # covers the roundings of a sum of up to 8000 non-negative products


@dataclass(frozen=True, eq=False)
class Fan:
    """Rows g(y) = linear·y + constant + final·x over the same hidden layers, x the last of them (or
    y itself)."""

    hidden: tuple[Layer, ...]
    final: Floats  # (rows, units)
    final_error: Floats
    linear: Floats  # (rows, n)
    linear_error: Floats
    constant: Floats  # (rows,)
    constant_error: Floats


@dataclass(frozen=True, eq=False)
class _Unit:
    """A hidden layer on the box: the lines around each ReLU, the error of its input, and its
    magnitude."""

    layer: Layer
    lower: Floats  # slope of the lower line, which has no intercept
    upper: Floats
    intercept: Floats
    error: Floats
    magnitude: Floats


@dataclass(frozen=True, eq=False)
class _Box:
    middle: Floats
    radius: Floats
    reach: Floats
    gamma: float


def upper_bounds(fan: Fan, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """(bounds, slack): each row lies below its bound on the box; slack is the part of it that is
    rounding."""
    with np.errstate(all="ignore"):  # an overflow ends in a bound that is not <= 0
        middle = (lower + upper) / 2
        radius = np.maximum(upper - middle, middle - lower) * _UP + _TINY
        size = lower.shape[0] + sum(layer.bias.shape[0] for layer in fan.hidden) + 16
        box = _Box(middle, radius, np.maximum(np.abs(lower), np.abs(upper)), size * 2.0**-50)
        units, reach = _units(fan.hidden, box)
        error = (fan.final_error @ reach + fan.linear_error @ box.reach + fan.constant_error) * _UP
        return _largest(fan.final, units, box, fan.linear, fan.constant, error)


def _units(hidden: tuple[Layer, ...], box: _Box) -> tuple[list[_Unit], Floats]:
    """The hidden layers with their lines, and a bound on the last one's values."""
    units: list[_Unit] = []
    reach, largest = box.reach, box.reach
    for layer in hidden:
        largest = (
            (np.abs(layer.weight) + layer.weight_error) @ largest
            + np.abs(layer.bias)
            + layer.bias_error
        ) * _UP
        largest = largest + _TINY
        error = (layer.weight_error @ reach + layer.bias_error) * _UP
        low, high = _enclosure(layer, units, box, error)
        units.append(_unit(layer, low, high, error, largest))
        reach = np.maximum(high, 0.0)
    return units, reach


def _enclosure(layer: Layer, units: list[_Unit], box: _Box, error: Floats) -> tuple[Floats, Floats]:
    """Bounds of a layer's values before the ReLU."""
    rows = np.concatenate([layer.weight, -layer.weight])
    constant = np.concatenate([layer.bias, -layer.bias])
    bounds, _ = _largest(rows, units, box, None, constant, np.concatenate([error, error]))
    width = layer.bias.shape[0]
    return -bounds[width:], bounds[:width]


def _unit(layer: Layer, low: Floats, high: Floats, error: Floats, magnitude: Floats) -> _Unit:
    bent = (low < 0) & (high > 0)
    width = np.where(bent, high - low, 1.0)
    fixed = (low >= 0).astype(np.float64)
    # Slope and intercept are rounded up: the upper line has to stay above the chord.
    slope = np.where(bent, high / width * (1 + 2.0**-49), fixed)
    intercept = np.where(bent, -slope * low * (1 + 2.0**-49) + 1e-300, 0.0)
    default = np.clip(0.5 + 4 * (high + low) / width, 0.0, 1.0)
    return _Unit(layer, np.where(bent, default, fixed), slope, intercept, error, magnitude)


def _largest(
    rows: Floats,
    units: list[_Unit],
    box: _Box,
    linear: Floats | None,
    constant: Floats,
    error: Floats,
) -> tuple[Floats, Floats]:
    """rows @ x of the last of the units, substituted down to y, plus linear·y + constant, at most,
    over the box."""
    scale = np.abs(constant)
    for unit in reversed(units):
        rising, falling = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
        lifted = rising @ unit.intercept
        slanted = rising * unit.upper + falling * unit.lower
        size = np.abs(slanted)
        constant = constant + lifted + slanted @ unit.layer.bias
        error = error + size @ unit.error
        scale = scale + lifted + size @ unit.magnitude
        rows = slanted @ unit.layer.weight
    scale = scale + np.abs(rows) @ box.reach
    if linear is not None:
        scale = scale + np.abs(linear) @ box.reach
        rows = rows + linear
    slack = box.gamma * (scale + error) + _TINY
    return rows @ box.middle + np.abs(rows) @ box.radius + constant + error + slack, slack
