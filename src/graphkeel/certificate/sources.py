"""Source networks: shipped weights as chains of affine factors, with no number rounded.

f(y) = h + B(relu(A(y − Y) + a) − relu(a)) is stored as

    [[(None, −Y), (A, a)], [(None, −relu(a)), (B, h)]]:

a list of layers with a ReLU between each two, each layer a list of factors (weight, bias) that are
applied from the first to the last; None stands for the identity or for zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkeel.certificate.encoding import decode_array, encode_array
from graphkeel.checker import networks
from graphkeel.checker.exact import Vector, Work

Floats = NDArray[np.float64]
_Pair = tuple[ArrayLike | None, ArrayLike | None]
Factor = tuple[Floats | None, Floats | None]  # weight (out, in) and bias (out,)
Source = tuple[tuple[Factor, ...], ...]


@dataclass(frozen=True)
class WriterSettings:
    """Attributes:
    rounding: a rounding bound measured here is stated so many times as large, since another
        machine sums in another order.
    products: limit on the exact arithmetic of one statement, more than the checker allows.
    """

    rounding: float = 4.0
    products: int = 10**12

    def work(self) -> Work:
        """The limit on products, to be spent."""
        return Work(self.products)


class Layer(NamedTuple):
    """A layer rounded to floats; the exact one lies within the errors, entry by entry."""

    weight: Floats
    bias: Floats
    weight_error: Floats
    bias_error: Floats


def chain(*pairs: _Pair) -> tuple[Factor, ...]:
    """One layer as the product of its factors.

    Args:
        pairs: (weight, bias) each, applied from the first to the last.
    """
    return tuple((_stored(weight), _stored(bias)) for weight, bias in pairs)


def mlp(layers: Iterable[_Pair]) -> Source:
    """A plain ReLU network: heads, and controller and V of the paper's form.

    Args:
        layers: (weight, bias) of each layer.
    """
    return tuple(chain(layer) for layer in layers)


def anchored_controller(
    A: ArrayLike, a: ArrayLike, B: ArrayLike, h: ArrayLike, equilibrium: ArrayLike
) -> Source:
    """f(y) = h + B(relu(A(y − Y) + a) − relu(a)), of inner weight A (hidden, n) and bias a, outer
    weight B (d, hidden), anchor h (d,) and equilibrium Y (n,)."""
    shift = np.maximum(np.asarray(a), 0)
    return (chain((None, -np.asarray(equilibrium)), (A, a)), chain((None, -shift), (B, h)))


def source_to_json(source: Source) -> list[list[dict[str, Any]]]:
    def encoded(values: Floats | None) -> dict[str, Any] | None:
        return None if values is None else encode_array(values)

    return [[{"weight": encoded(w), "bias": encoded(b)} for w, b in layer] for layer in source]


def source_from_json(value: list[list[dict[str, Any]]]) -> Source:
    return tuple(
        tuple((_decoded(part["weight"]), _decoded(part["bias"])) for part in layer)
        for layer in value
    )


def _decoded(value: dict[str, Any] | None) -> Floats | None:
    return None if value is None else decode_array(value)


def collapsed_loop(controller: Source, head: Source) -> tuple[Layer, ...]:
    """F = C∘f with one weight and one bias a layer."""
    seam = (*controller[-1], *head[0])
    return collapsed((*controller[:-1], seam, *head[1:]))


def collapsed(source: Source) -> tuple[Layer, ...]:
    """Every layer multiplied out exactly, then rounded once, with the distance as its error."""
    exact = networks.read_source(source_to_json(source), "a network")
    product = networks.collapsed(exact, "a network", WriterSettings().work())
    return tuple(_rounded(layer) for layer in product)


def _rounded(layer: networks.Layer) -> Layer:
    height, width = layer.weight.height, layer.weight.width
    flat = [value for row in layer.weight.rows for value in row]
    weight, weight_error = _nearest(Vector(flat, layer.weight.exp))
    bias, bias_error = _nearest(layer.bias)
    shape = (height, width)
    return Layer(weight.reshape(shape), bias, weight_error.reshape(shape), bias_error)


def _nearest(vector: Vector) -> tuple[Floats, Floats]:
    """The nearest floats, and floats that are not below the distances."""
    exact = vector.fractions()
    values = np.array([value.numerator / value.denominator for value in exact])
    gaps = [abs(Fraction(near) - value) for near, value in zip(values.tolist(), exact, strict=True)]
    errors = [np.nextafter(float(gap), np.inf) if gap else 0.0 for gap in gaps]
    return values, np.array(errors)


def _stored(values: ArrayLike | None) -> Floats | None:
    return None if values is None else np.asarray(values, dtype=np.float64)
