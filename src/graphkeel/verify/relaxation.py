"""The linear relaxation of ReLU networks over one box, in numpy, with rounding counted in.

The formulas are those of docs/formats.md, section 2, with default slopes. `relu_lines` is the
one home of a unit's lines: the compiled kernels of the branch engine are built of it, too. Whole
matrices of rows that share their hidden layers are bounded at once, which takes microseconds and no
compiler: training, the choice of multipliers and the big-M constants need no more.

γ = (N + 16)·2⁻⁵⁰, N the number of inputs and units, times the magnitudes |coefficient|·(|W|·|x| +
|b|) is more than the roundings of all steps together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphkeel.verify.affine import box_magnitude, errors_of
from graphkeel.verify.problem import Affine, Array

_PAD = 2.0**-50  # four units in the last place
_TINY = 1e-250  # more than all underflows together
_UP = 1 + 2.0**-38  # covers the roundings of a sum of up to 8000 non-negative products


def relu_lines(low: float, high: float) -> tuple[float, float, float]:
    """The lines around one ReLU with input in [low, high]: (chord, lift, slope).

    slope·z ≤ relu(z) ≤ chord·z + lift; the lower line passes through the origin. Both ends of the
    chord lie above the ReLU although its slope is rounded."""
    if low >= 0.0:
        return 1.0, 0.0, 1.0
    if high <= 0.0:
        return 0.0, 0.0, 0.0
    chord = high / (high - low)
    lift = (-chord * low + _PAD * high) * (1.0 + _PAD)
    slope = min(1.0, max(0.0, 0.5 + 4.0 * (high + low) / (high - low)))
    return chord, lift, slope


def square_lines(low: float, high: float, place: float) -> tuple[float, float, float, float]:
    """The lines around the square of an input in [low, high]: (chord, lift, slope, drop).

    slope·z + drop ≤ z² ≤ chord·z + lift; the lower line is the tangent at low + place·(high − low).
    """
    chord = low + high
    size = max(abs(low), abs(high))
    lift = -low * high + 8.0 * _PAD * size * size
    at = low + place * (high - low)
    return chord, lift, 2.0 * at, -at * at * (1.0 + _PAD) - _TINY


lines_of = np.vectorize(relu_lines, otypes=[float, float, float])


def through_relu(rows: Array, chord: Array, lift: Array, slope: Array) -> tuple[Array, Array]:
    """An upper bound of rows·relu(z), linear in z: (its coefficients, its constants)."""
    rising = np.maximum(rows, 0.0)
    return rising * chord + np.minimum(rows, 0.0) * slope, rising @ lift


@dataclass(frozen=True, eq=False)
class RelaxedLayer:
    """A hidden layer on the box: bounds before the ReLU, the lines around it, and its error.

    All but `layer` have shape (out,).
    """

    layer: Affine
    low: Array
    high: Array
    chord: Array
    lift: Array
    slope: Array
    error: Array  # of the layer's input to the ReLU, by its own error bounds
    magnitude: Array  # a bound on its absolute value


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Hidden layers over one box, first to last; `of` makes it."""

    lower: Array
    upper: Array
    layers: tuple[RelaxedLayer, ...]
    rounding: float

    @classmethod
    def of(cls, hidden: Sequence[Affine], lower: Array, upper: Array) -> Relaxation:
        """Relax hidden layers over a box."""
        units = sum(layer.n_out for layer in hidden)
        rounding = (lower.shape[0] + units + 16) * 2.0**-50
        relaxation = cls(lower, upper, (), rounding)
        with np.errstate(all="ignore"):  # an overflow ends in a bound that is not ≤ 0
            for layer in hidden:
                layers = (*relaxation.layers, relaxation._relaxed(layer))
                relaxation = cls(lower, upper, layers, rounding)
        return relaxation

    @property
    def reach(self) -> Array:
        """A bound on the absolute values of the last hidden layer (the state if there is none)."""
        if self.layers:
            return np.maximum(self.layers[-1].high, 0.0)
        return self._state_reach

    @property
    def _state_reach(self) -> Array:
        return box_magnitude(self.lower, self.upper)

    def _relaxed(self, layer: Affine) -> RelaxedLayer:
        weight_error, bias_error = errors_of(layer)
        largest = self.layers[-1].magnitude if self.layers else self._state_reach
        size = (np.abs(layer.weight) + weight_error) @ largest + np.abs(layer.bias) + bias_error
        error = (weight_error @ self.reach + bias_error) * _UP
        rows = np.concatenate([layer.weight, -layer.weight])
        constant = np.concatenate([layer.bias, -layer.bias])
        bounds, _ = self.upper_bounds(rows, constant, np.concatenate([error, error]))
        low, high = -bounds[layer.n_out :], bounds[: layer.n_out]
        chord, lift, slope = lines_of(low, high)
        magnitude = size * _UP + _TINY
        return RelaxedLayer(layer, low, high, chord, lift, slope, error, magnitude)

    def upper_bounds(
        self, rows: Array, constant: Array, error: Array, direct: Array | None = None
    ) -> tuple[Array, Array]:
        """(bounds, slack): rows·x + direct·y + constant stays below its bound on the box.

        Returns:
            Both of shape (m,); slack is the part of the bound that covers rounding.
        """
        with np.errstate(all="ignore"):
            form, constant, error, scale = self._substituted(rows, constant, error)
            scale = scale + np.abs(form) @ self._state_reach
            if direct is not None:
                scale = scale + np.abs(direct) @ self._state_reach
                form = form + direct
            slack = self.rounding * (scale + error) + _TINY
            middle = (self.lower + self.upper) / 2
            radius = np.maximum(self.upper - middle, middle - self.lower) * _UP + _TINY
            largest = form @ middle + np.abs(form) @ radius
            return largest + constant + error + slack, slack

    def upper_forms(self, rows: Array) -> Array:
        """Coefficients of linear forms in y that, with a constant, lie above rows·x on the box."""
        zeros = np.zeros(rows.shape[0])
        return self._substituted(rows, zeros, zeros)[0]

    def _substituted(
        self, rows: Array, constant: Array, error: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Backwards through every ReLU: (form in y, constant, error, magnitude of all terms)."""
        scale = np.abs(constant)
        for relaxed in reversed(self.layers):
            slanted, lifted = through_relu(rows, relaxed.chord, relaxed.lift, relaxed.slope)
            size = np.abs(slanted)
            constant = constant + lifted + slanted @ relaxed.layer.bias
            error = error + size @ relaxed.error
            scale = scale + lifted + size @ relaxed.magnitude
            rows = slanted @ relaxed.layer.weight
        return rows, constant, error, scale
