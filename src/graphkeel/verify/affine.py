"""Arithmetic on affine maps in float64 that loses nothing: roundings go into the error bounds."""

from __future__ import annotations

import numpy as np

from graphkeel.verify.problem import Affine, Array

TINY = 1e-300  # an absolute allowance for underflow, far above 2^-1074 times any layer size
ROUND = 2.0**-51  # more than the relative rounding of two operations


def gamma(terms: int) -> float:
    """A relative bound on the rounding of a float64 sum of `terms` products, in any order,
    about four times as large as needed."""
    return (terms + 16) * 2.0**-51


def errors_of(layer: Affine) -> tuple[Array, Array]:
    """(weight error, bias error) with zeros for exact layers."""
    weight = np.zeros_like(layer.weight) if layer.weight_error is None else layer.weight_error
    bias = np.zeros_like(layer.bias) if layer.bias_error is None else layer.bias_error
    return weight, bias


def box_magnitude(lower: Array, upper: Array) -> Array:
    """The largest absolute value of every coordinate on a box."""
    return np.maximum(np.abs(lower), np.abs(upper))


def highest_on(forms: Array, lower: Array, upper: Array) -> Array:
    """The maximum of each linear form over a box, in floats, shape (m,)."""
    return np.asarray(np.maximum(forms, 0.0) @ upper + np.minimum(forms, 0.0) @ lower)


def zero(n_in: int) -> Affine:
    """The map that is 0 for every one of its n_in inputs; one output."""
    return Affine(np.zeros((1, n_in)), np.zeros(1))


def compose(outer: Affine, inner: Affine) -> Affine:
    """outer ∘ inner as one affine map, its rounding and both maps' errors in the error bounds."""
    weight_error, bias_error = errors_of(outer)
    inner_weight_error, inner_bias_error = errors_of(inner)
    rounding = gamma(outer.n_in)
    size = np.abs(outer.weight)
    inner_size = np.abs(inner.weight)
    inner_offset = np.abs(inner.bias)
    product_error = (
        size @ inner_weight_error
        + weight_error @ inner_size
        + weight_error @ inner_weight_error
        + rounding * (size @ inner_size)
        + TINY
    )
    offset_error = (
        size @ inner_bias_error
        + weight_error @ inner_offset
        + weight_error @ inner_bias_error
        + bias_error
        + rounding * (size @ inner_offset + np.abs(outer.bias))
        + TINY
    )
    up = 1.0 + rounding  # the error bounds are float sums themselves
    return Affine(
        outer.weight @ inner.weight,
        outer.weight @ inner.bias + outer.bias,
        product_error * up,
        offset_error * up,
    )


def scaled(layer: Affine, factor: float) -> Affine:
    """factor · layer."""
    weight = factor * layer.weight
    bias = factor * layer.bias
    if abs(factor) == 1.0:
        return Affine(weight, bias, layer.weight_error, layer.bias_error)
    weight_error, bias_error = errors_of(layer)
    size = abs(factor) * (1.0 + 2.0**-50)
    return Affine(
        weight,
        bias,
        size * weight_error + np.abs(weight) * 2.0**-52 + TINY,
        size * bias_error + np.abs(bias) * 2.0**-52 + TINY,
    )


def added(a: Affine, b: Affine) -> Affine:
    """a + b, for maps of one shape."""
    (weight_a, bias_a), (weight_b, bias_b) = errors_of(a), errors_of(b)
    weight = a.weight + b.weight
    bias = a.bias + b.bias
    weight_error = (weight_a + weight_b + np.abs(weight) * ROUND) * (1 + ROUND)
    bias_error = (bias_a + bias_b + np.abs(bias) * ROUND) * (1 + ROUND)
    return Affine(weight, bias, weight_error, bias_error)


def output_row(layer: Affine, index: int) -> Affine:
    """One output of a layer as a map of its own."""
    one = slice(index, index + 1)
    weight_error, bias_error = errors_of(layer)
    return Affine(layer.weight[one], layer.bias[one], weight_error[one], bias_error[one])
